import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ColumnBox,
  type Columns,
  columnsDot,
  columnsMermaid,
  columnsSvg,
} from '../../../../../src/page/browser/views/map-picture.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '<script>alert(1)</script>',
    'a"]; b["',
    '`x`',
    '\\n"',
    '\u202ea',
    ']]>',
    '#quot;',
    '&amp;',
    '\ud800',
  ),
);
const picture: fc.Arbitrary<Columns> = fc
  .array(
    fc.record({
      title: anyText,
      boxes: fc.array(
        fc.record({
          texts: fc.array(anyText, { minLength: 1, maxLength: 3 }),
          verdict: fc.constantFrom('pass' as const, 'allow' as const, 'deny' as const, 'unknown' as const),
        }),
        { maxLength: 6 },
      ),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((columns) => {
    const named = columns.map(({ title, boxes }, column) => ({
      title,
      boxes: boxes.map((box, index) => ({ ...box, id: `${column} ${index}` })),
    }));
    // From each box to one of the next column.
    const lines = named.flatMap(({ boxes }, column) =>
      boxes.flatMap(({ id }, index) => {
        const next = named[column + 1]?.boxes ?? [];
        const to = next[index % Math.max(1, next.length)];
        return to === undefined ? [{ from: id, to: 'is not there' }] : [{ from: id, to: to.id }];
      }),
    );
    return { columns: named, lines };
  });

const boxesOf = ({ columns }: Columns): readonly ColumnBox[] => columns.flatMap(({ boxes }) => boxes);
const drawnLines = ({ lines }: Columns): number => lines.filter(({ to }) => to !== 'is not there').length;

function rectangles(svg: string) {
  return [...svg.matchAll(/<rect class="\w+" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"/g)]
    .map((found) => found.slice(1).map(Number))
    .map(([x = 0, y = 0, width = 0, height = 0]) => ({ x, y, right: x + width, bottom: y + height }));
}

describe('boxes in columns', () => {
  test('do not overlap, and every line ends at two of them', () => {
    fc.assert(
      fc.property(picture, (given) => {
        const svg = columnsSvg(given);
        const boxes = rectangles(svg);
        expect(boxes).toHaveLength(boxesOf(given).length);
        for (const [index, a] of boxes.entries()) {
          for (const b of boxes.slice(index + 1)) {
            expect(a.right <= b.x || b.right <= a.x || a.bottom <= b.y || b.bottom <= a.y).toBe(true);
          }
        }
        const lines = [...svg.matchAll(/<path d="M([\d.]+) ([\d.]+)C.* ([\d.]+) ([\d.]+)"/g)];
        expect(lines).toHaveLength(drawnLines(given));
        for (const [, ...numbers] of lines) {
          const [fromX, fromY, toX, toY] = numbers.map(Number);
          expect(boxes.some(({ right, y, bottom }) => right === fromX && (y + bottom) / 2 === fromY)).toBe(
            true,
          );
          expect(boxes.some(({ x, y, bottom }) => x === toX && (y + bottom) / 2 === toY)).toBe(true);
        }
      }),
    );
  });

  test('one more below moves none above it', () => {
    fc.assert(
      fc.property(picture, ({ columns, lines }) => {
        const more = columns.map(({ title, boxes }) => ({
          title,
          boxes: [...boxes, { id: `more ${title}`, texts: [title], verdict: 'pass' as const }],
        }));
        const before = rectangles(columnsSvg({ columns, lines }));
        const after = rectangles(columnsSvg({ columns: more, lines }));
        for (const box of before) expect(after).toContainEqual(box);
      }),
    );
  });

  test('no text of a cluster ends its label, in any format', () => {
    fc.assert(
      fc.property(picture, (given) => {
        const texts = [...columnsSvg(given).matchAll(/<text [^>]*>(.*)<\/text>/g)].map(
          ([, text = '']) => text,
        );
        expect(texts).toHaveLength(
          boxesOf(given).reduce((sum, box) => sum + box.texts.length, given.columns.length),
        );
        expect(texts.join('')).not.toMatch(/[<>"]|&(?!#\d+;)|\p{Surrogate}/u);
        for (const line of columnsMermaid(given).trimEnd().split('\n')) {
          expect(line).toMatch(
            /^(?:flowchart LR| {2}(?:n\d+\["(?:[^"<`]|<br\/>)*"\]:::\w+|n\d+ --> n\d+|classDef .*))$/,
          );
        }
        for (const line of columnsDot(given).trimEnd().split('\n')) {
          expect(line).toMatch(
            /^(?:digraph map \{|\}| {2}(?:rankdir=LR;|node .*|n\d+ \[label="(?:[^"\\]|\\.)*", color="#\w{6}"\];|n\d+ -> n\d+;))$/,
          );
        }
      }),
    );
  });
});
