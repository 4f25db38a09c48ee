import { maxOf } from '../../../objects/lists.ts';
import {
  dotColors,
  dotText,
  mermaidClasses,
  mermaidText,
  type PictureVerdict,
  svgStyle,
  xmlText,
} from '../../../view/pictures/texts.ts';
import { type MapRow, type numberedNodes, stateOf } from './map-rows.ts';

/** Boxes in columns with lines between them, as a picture of the Map. */
export interface Columns {
  readonly columns: readonly { readonly title: string; readonly boxes: readonly ColumnBox[] }[];
  /** By the names of boxes; from a column to one further to the right. */
  readonly lines: readonly { readonly from: string; readonly to: string }[];
}

export interface ColumnBox {
  /** No two boxes of a picture have the same. */
  readonly id: string;
  /** The first one is its title. */
  readonly texts: readonly string[];
  readonly verdict: PictureVerdict;
}

interface Placed {
  readonly box: ColumnBox;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const charWidth = 7.2;
const lineHeight = 16;
const padding = 8;
/** Between columns, with the lines. */
const columnGap = 72;
const rowGap = 10;
const headHeight = 28;

/** One picture without script, fonts or links. A box more in a column moves none above it. */
export function columnsSvg({ columns, lines }: Columns): string {
  const placed = new Map<string, Placed>();
  let x = padding;
  let bottom = headHeight;
  const heads: string[] = [];
  for (const { title, boxes } of columns) {
    heads.push(
      `<text x="${x}" y="${padding + lineHeight * 0.75}" font-weight="bold">${xmlText(title)}</text>`,
    );
    const texts = [title, ...boxes.flatMap((box) => box.texts)];
    const longest = maxOf(texts.map(widthOf));
    const width = Math.ceil(longest * charWidth) + 2 * padding;
    let y = headHeight + padding;
    for (const box of boxes) {
      const height = box.texts.length * lineHeight + 2 * padding;
      placed.set(box.id, { box, x, y, width, height });
      y += height + rowGap;
    }
    bottom = Math.max(bottom, y);
    x += width + columnGap;
  }
  const [fullWidth, fullHeight] = [x - columnGap + padding, bottom - rowGap + padding];
  const paths = drawn(lines, placed).map(({ from, to }) => {
    const [startX, startY] = [from.x + from.width, from.y + from.height / 2];
    const [endX, endY] = [to.x, to.y + to.height / 2];
    const middle = (startX + endX) / 2;
    return `<path d="M${startX} ${startY}C${middle} ${startY} ${middle} ${endY} ${endX} ${endY}"/>`;
  });
  const boxes = [...placed.values()].flatMap((each) => [
    `<rect class="${each.box.verdict}" x="${each.x}" y="${each.y}" width="${each.width}" height="${each.height}" rx="4"/>`,
    ...each.box.texts.map(
      (text, index) =>
        `<text x="${each.x + padding}" y="${each.y + padding + lineHeight * (index + 0.75)}"${index === 0 ? ' font-weight="bold"' : ''}>${xmlText(text)}</text>`,
    ),
  ]);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${fullWidth} ${fullHeight}" width="${fullWidth}" height="${fullHeight}" font-family="monospace" font-size="12">`,
    `<style>${svgStyle}</style>`,
    ...heads,
    ...paths,
    ...boxes,
    '</svg>',
    '',
  ].join('\n');
}

/** A flowchart that GitHub draws. */
export function columnsMermaid(picture: Columns): string {
  const numbers = numbersOf(picture);
  const boxes = picture.columns.flatMap(({ boxes: of }) => of);
  return `${[
    'flowchart LR',
    ...boxes.map(
      ({ id, texts, verdict }) =>
        `  n${numbers.get(id) ?? 0}["${texts.map(mermaidText).join('<br/>')}"]:::${verdict}`,
    ),
    ...drawn(picture.lines, numbers).map(({ from, to }) => `  n${from} --> n${to}`),
    ...mermaidClasses.map((each) => `  ${each}`),
  ].join('\n')}\n`;
}

/** For `dot -Tpng`. */
export function columnsDot(picture: Columns): string {
  const numbers = numbersOf(picture);
  const boxes = picture.columns.flatMap(({ boxes: of }) => of);
  return `${[
    'digraph map {',
    '  rankdir=LR;',
    '  node [shape=box, fontname="sans-serif"];',
    ...boxes.map(
      ({ id, texts, verdict }) =>
        `  n${numbers.get(id) ?? 0} [label="${texts.map((text) => `${dotText(text)}\\l`).join('')}", color="${dotColors[verdict]}"];`,
    ),
    ...drawn(picture.lines, numbers).map(({ from, to }) => `  n${from} -> n${to};`),
    '}',
  ].join('\n')}\n`;
}

function numbersOf({ columns }: Columns): ReadonlyMap<string, number> {
  return new Map(columns.flatMap(({ boxes }) => boxes).map(({ id }, index) => [id, index]));
}

/** Lines both of whose ends are there. */
function drawn<End>(
  lines: Columns['lines'],
  ends: ReadonlyMap<string, End>,
): readonly { from: End; to: End }[] {
  return lines.flatMap(({ from: a, to: b }) => {
    const [from, to] = [ends.get(a), ends.get(b)];
    return from === undefined || to === undefined ? [] : [{ from, to }];
  });
}

/** Characters of a text of a fixed width: those of East Asia and emoji take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const sign of text) width += (sign.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2;
  return width;
}

/** The Map to take along: all of its rows, also those that are not in sight. */
export function mapPictureOf(
  rows: readonly MapRow[],
  nodes: ReturnType<typeof numberedNodes>,
): Record<'svg' | 'mermaid' | 'dot', string> {
  const columns = columnsOf(rows, nodes);
  return { svg: columnsSvg(columns), mermaid: columnsMermaid(columns), dot: columnsDot(columns) };
}

function columnsOf(rows: readonly MapRow[], nodes: ReturnType<typeof numberedNodes>): Columns {
  // A Pod may be behind several Services.
  const members = new Map(rows.flatMap(({ members: of }) => of).map((member) => [member.key, member]));
  const used = new Set([...members.values()].flatMap(({ node }) => node ?? []));
  return {
    columns: [
      {
        title: 'Services',
        boxes: rows.map(({ key, service: { type, clusterIP, external, ports, endpoints, trouble } }) => ({
          id: `service ${key}`,
          texts: [
            `${key}${endpoints === undefined ? '' : `  ${endpoints.ready}/${endpoints.total}`}`,
            [type, clusterIP, external, ports].filter((text) => text !== '<none>').join('  '),
            ...(trouble === undefined ? [] : [trouble.reason]),
          ],
          verdict: trouble === undefined ? 'pass' : 'deny',
        })),
      },
      {
        title: 'Slices',
        boxes: rows.flatMap(({ slices }) =>
          slices.map(({ key, name, addressType, ports }) => ({
            ...({
              id: `slice ${key}`,
              texts: [name, [addressType, ...ports].join('  ')],
              verdict: 'pass',
            } as const),
          })),
        ),
      },
      {
        title: 'Pods',
        boxes: [...members.values()].map((member) => ({
          id: `member ${member.key}`,
          texts: [
            member.key,
            [member.address, stateOf(member)].filter((text) => text !== member.key).join('  '),
          ],
          verdict: member.isReady ? 'allow' : 'deny',
        })),
      },
      {
        title: 'Nodes',
        boxes: nodes
          .filter(({ node }) => used.has(node.name))
          .map(({ node }) => ({
            id: `node ${node.name}`,
            texts: [node.name, node.isReady ? 'Ready' : 'NotReady'],
            verdict: node.isReady ? 'pass' : 'deny',
          })),
      },
    ],
    lines: [
      ...rows.flatMap(({ key, slices }) =>
        slices.map((slice) => ({ from: `service ${key}`, to: `slice ${slice.key}` })),
      ),
      ...rows.flatMap(({ slices, members: of }) =>
        of.flatMap((member) =>
          member.slices.map((index) => ({
            from: `slice ${slices[index]?.key ?? ''}`,
            to: `member ${member.key}`,
          })),
        ),
      ),
      ...[...members.values()].map(({ key, node }) => ({ from: `member ${key}`, to: `node ${node ?? ''}` })),
    ],
  };
}
