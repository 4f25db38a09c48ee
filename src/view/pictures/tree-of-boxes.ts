import { plain } from '../../objects/plain.ts';
import {
  dotColors,
  dotText,
  mermaidClasses,
  mermaidText,
  type PictureVerdict,
  svgStyle,
  xmlText,
} from './texts.ts';

/** A way as boxes and lines, for terminals, GitHub (Mermaid), Graphviz (DOT) and browsers (SVG). */

/** A place, and what is decided there. */
export interface Box {
  readonly title: string;
  readonly lines: readonly { readonly text: string; readonly verdict: PictureVerdict }[];
  /** The next places: more than one where any of them may be chosen. */
  readonly next: readonly Arrow[];
}

/** A packet on its way to a place. */
export interface Arrow {
  readonly label: string;
  readonly to: Box;
}

/** Lines with branches, as those of tree(1). */
export function treePicture(root: Box): string {
  const lines: string[] = [];
  const draw = (box: Box, indent: string): void => {
    for (const { text, verdict } of box.lines) {
      lines.push(`${indent}${box.next.length > 0 ? '│' : ' '}  ${verdict.padEnd(7)}  ${plain(text)}`);
    }
    for (const [index, { label, to }] of box.next.entries()) {
      const isLast = index === box.next.length - 1;
      lines.push(`${indent}${isLast ? '└─' : '├─'} ${plain(label)}`);
      const below = `${indent}${isLast ? '   ' : '│  '}`;
      lines.push(`${below}${plain(to.title)}`);
      draw(to, below);
    }
  };
  lines.push(plain(root.title));
  draw(root, '');
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

interface Numbered {
  readonly id: number;
  readonly box: Box;
  readonly depth: number;
  /** The box before it, and the label of the arrow from there. */
  readonly before: { readonly id: number; readonly label: string } | undefined;
}

function numbered(root: Box): readonly Numbered[] {
  const all: Numbered[] = [];
  const visit = (box: Box, depth: number, before: Numbered['before']): void => {
    const id = all.length;
    all.push({ id, box, depth, before });
    for (const { label, to } of box.next) visit(to, depth + 1, { id, label });
  };
  visit(root, 0, undefined);
  return all;
}

/** Denied if anything there is, else unknown if anything is. */
function verdictOf({ lines }: Box): PictureVerdict {
  const order = ['deny', 'unknown', 'allow'] as const;
  return order.find((verdict) => lines.some((line) => line.verdict === verdict)) ?? 'pass';
}

/** Characters of a line in a box. */
const maxLine = 64;

/** The lines of a box, its title first. */
function texts({ title, lines }: Box): readonly string[] {
  return [title, ...lines.flatMap(({ text, verdict }) => wrapped(`${verdict}: ${text}`))];
}

function wrapped(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of plain(text).split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > maxLine) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** A flowchart that GitHub draws. */
export function mermaidPicture(root: Box): string {
  const lines = numbered(root).flatMap(({ id, box, before }) => [
    `  n${id}["${texts(box).map(mermaidText).join('<br/>')}"]:::${verdictOf(box)}`,
    ...(before === undefined ? [] : [`  n${before.id} -->|"${mermaidText(before.label)}"| n${id}`]),
  ]);
  return `flowchart TD\n${[...lines, ...mermaidClasses.map((each) => `  ${each}`)].join('\n')}\n`;
}

/** For `dot -Tpng`. */
export function dotPicture(root: Box): string {
  const lines = numbered(root).flatMap(({ id, box, before }) => {
    const label = texts(box).map((text) => `${dotText(text)}\\l`);
    const style = verdictOf(box) === 'unknown' ? ', style=dashed' : '';
    return [
      `  n${id} [label="${label.join('')}", color="${dotColors[verdictOf(box)]}"${style}];`,
      ...(before === undefined ? [] : [`  n${before.id} -> n${id} [label="${dotText(before.label)}"];`]),
    ];
  });
  return `digraph way {\n  node [shape=box, fontname="sans-serif"];\n${lines.join('\n')}\n}\n`;
}

const charWidth = 7.2;
const lineHeight = 16;
const padding = 8;
/** Of an arrow, with its label. */
const gap = 44;

/** One picture without script, fonts or links, in the colours of both schemes. */
export function svgPicture(root: Box): string {
  const boxes = numbered(root);
  const width = new Map(boxes.map(({ id, box }) => [id, boxWidth(box)]));
  const labelled = new Map(
    boxes.map(({ id, before }) => [id, (before?.label.length ?? 0) * charWidth + gap]),
  );
  const heights: number[] = [];
  for (const { box, depth } of boxes) heights[depth] = Math.max(heights[depth] ?? 0, boxHeight(box));
  const top = (depth: number): number =>
    heights.slice(0, depth).reduce((sum, height) => sum + height + gap, padding);
  // A box is as far to the right as the leaves before it need.
  const left = new Map<number, number>();
  const place = (id: number, from: number): number => {
    left.set(id, from);
    let end = from;
    for (const child of boxes.filter(({ before }) => before?.id === id)) end = place(child.id, end);
    const own = Math.max(width.get(id) ?? 0, labelled.get(id) ?? 0);
    return Math.max(end, from + own + 2 * padding);
  };
  const fullWidth = Math.ceil(place(0, padding));
  const fullHeight = Math.ceil(top(heights.length) - gap + padding);
  const drawn = boxes.flatMap(({ id, box, depth, before }) => {
    const [x, y] = [left.get(id) ?? 0, top(depth)];
    const lines = texts(box).map(
      (text, index) =>
        `<text x="${x + padding}" y="${y + padding + lineHeight * (index + 0.75)}"${index === 0 ? ' font-weight="bold"' : ''}>${xmlText(text)}</text>`,
    );
    const rectangle = `<rect class="${verdictOf(box)}" x="${x}" y="${y}" width="${width.get(id) ?? 0}" height="${boxHeight(box)}" rx="4"/>`;
    if (before === undefined) return [rectangle, ...lines];
    const [fromX, fromY] = [(left.get(before.id) ?? 0) + 20, top(depth - 1) + boxHeightOf(boxes, before.id)];
    const line = `<path d="M${fromX} ${fromY} V${y - gap / 2 - 6} H${x + 20} V${y}" marker-end="url(#end)"/>`;
    const label = `<text x="${x + 26}" y="${y - 12}">${xmlText(before.label)}</text>`;
    return [line, label, rectangle, ...lines];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${fullWidth} ${fullHeight}" width="${fullWidth}" height="${fullHeight}" font-family="monospace" font-size="12">`,
    `<style>${svgStyle}</style>`,
    '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8"/></marker></defs>',
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function boxWidth(box: Box): number {
  return (
    Math.ceil(texts(box).reduce((most, text) => Math.max(most, text.length), 0) * charWidth) + 2 * padding
  );
}

function boxHeight(box: Box): number {
  return texts(box).length * lineHeight + 2 * padding;
}

function boxHeightOf(boxes: readonly Numbered[], id: number): number {
  const found = boxes[id];
  return found === undefined ? 0 : boxHeight(found.box);
}
