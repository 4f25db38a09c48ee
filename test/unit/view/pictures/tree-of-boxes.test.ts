import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Box,
  dotPicture,
  mermaidPicture,
  svgPicture,
  treePicture,
} from '../../../../src/view/pictures/tree-of-boxes.ts';

const denied: Box = {
  title: 'Pod shop/cart-1',
  lines: [],
  next: [
    {
      label: '10.1.1.2 → 10.96.0.10:80',
      to: {
        title: 'node node-1',
        lines: [{ text: 'service: one of 2 endpoints', verdict: 'allow' }],
        next: [
          { label: 'a', to: { title: 'Pod shop/web-1', lines: [{ text: 'no', verdict: 'deny' }], next: [] } },
          {
            label: 'b',
            to: { title: 'Pod shop/web-2', lines: [{ text: 'yes', verdict: 'allow' }], next: [] },
          },
        ],
      },
    },
  ],
};

const verdict = fc.constantFrom('pass', 'allow', 'deny', 'unknown');
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '<script>alert(1)</script>',
    'a"]; b["',
    '`x`',
    '\\n"',
    '\u202ea',
    '\u001b[31mred',
    ']]>',
    '#quot;',
    '%%{init}%%',
  ),
);
const boxes = fc.letrec<{ box: Box }>((tie) => ({
  box: fc.record({
    title: anyText,
    lines: fc.array(fc.record({ text: anyText, verdict }), { maxLength: 3 }),
    next: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant([]),
      fc.array(fc.record({ label: anyText, to: tie('box') }), { maxLength: 3 }),
    ),
  }),
})).box;

function count(box: Box): number {
  return 1 + box.next.reduce((sum, { to }) => sum + count(to), 0);
}

describe('a way', () => {
  test('as a tree', () => {
    expect(treePicture(denied)).toBe(
      [
        'Pod shop/cart-1',
        '└─ 10.1.1.2 → 10.96.0.10:80',
        '   node node-1',
        '   │  allow    service: one of 2 endpoints',
        '   ├─ a',
        '   │  Pod shop/web-1',
        '   │     deny     no',
        '   └─ b',
        '      Pod shop/web-2',
        '         allow    yes',
        '',
      ].join('\n'),
    );
  });

  test('as a flowchart, a graph and a drawing has all boxes', () => {
    expect(mermaidPicture(denied).match(/^ {2}n\d\["/gm)).toHaveLength(4);
    expect(mermaidPicture(denied)).toContain('n0 -->|"10.1.1.2 → 10.96.0.10:80"| n1');
    expect(mermaidPicture(denied)).toMatch(/^ {2}n2\[.*:::deny$/m);
    expect(dotPicture(denied).match(/->/g)).toHaveLength(3);
    expect(svgPicture(denied).match(/<rect /g)).toHaveLength(4);
  });

  test('no text of a cluster ends its label, in any format', () => {
    fc.assert(
      fc.property(boxes, (box) => {
        const nodes = count(box);
        // Every line of the formats is one that we write: a text has added none, and no quote.
        for (const line of mermaidPicture(box).trimEnd().split('\n')) {
          expect(line).toMatch(
            /^(?:flowchart TD| {2}(?:n\d+\["(?:[^"<`]|<br\/>)*"\]:::\w+|n\d+ -->\|"[^"<`]*"\| n\d+|classDef .*))$/,
          );
        }
        for (const line of dotPicture(box).trimEnd().split('\n')) {
          expect(line).toMatch(
            /^(?:digraph way \{|\}| {2}(?:node .*|n\d+ \[label="(?:[^"\\]|\\.)*", color="#\w{6}"(?:, style=dashed)?\];|n\d+ -> n\d+ \[label="(?:[^"\\]|\\.)*"\];))$/,
          );
        }
        const svg = svgPicture(box);
        expect(svg.match(/<rect /g)).toHaveLength(nodes);
        // What is left without our elements holds no markup.
        const texts = [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, text = '']) => text).join('');
        expect(texts).not.toMatch(/[<>"]|&(?!#\d+;)/);
        // oxlint-disable-next-line no-control-regex
        expect(`${treePicture(box)}${svg}`).not.toMatch(/[\u202e\u001b]/);
      }),
    );
  });

  test('no two boxes of a drawing overlap', () => {
    fc.assert(
      fc.property(boxes, (box) => {
        const all = [
          ...svgPicture(box).matchAll(/<rect class="\w+" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/g),
        ]
          .map((found) => found.slice(1).map(Number))
          .map(([x = 0, y = 0, width = 0, height = 0]) => ({ x, y, right: x + width, bottom: y + height }));
        for (const [index, a] of all.entries()) {
          for (const b of all.slice(index + 1)) {
            expect(a.right <= b.x || b.right <= a.x || a.bottom <= b.y || b.bottom <= a.y).toBe(true);
          }
        }
      }),
    );
  });
});
