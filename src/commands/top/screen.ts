import { styleText } from 'node:util';
import { maxOf } from '../../objects/lists.ts';
import { plain } from '../../objects/plain.ts';
import { rowsIn } from '../../view/stored-rows.ts';
import { counted, detailsOf } from './details.ts';
import {
  type Column,
  type Content,
  type LastAnswer,
  type List,
  listFor,
  type ListRow,
  targetOf,
} from './lists.ts';
import { type Look, type Seen, selectedIndex, selectedKey, type Tab } from './state.ts';
import { firstWithin, fold, folded, height, type Line, rowsOf, widthOf } from './text.ts';
import { eventText, usageText } from './words.ts';

/** The live view as lines of text for a screen of a size. Pure. */

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** What does not come from the cluster. */
export interface Frame {
  /** The first lines. */
  readonly title: readonly string[];
  /** Commands to try, the most helpful first. */
  readonly hints: readonly string[];
  readonly size: ScreenSize;
  readonly colour: boolean;
}

/** Characters of a pool's bar. */
const barLength = 20;
/** Lines of Events under the Services, if there is room. */
const maxEvents = 8;
const minEvents = 3;
/** Lines of pools, and of last answers. */
const maxLines = 4;
/** Lines that stay for Services and Events before hints get any. */
const minRows = 10;

/**
 * The lines to show, which take no more than the rows of the screen, and what keys then mean. Nothing is cut: of a table
 * whole columns are left out, the least important first, and cells and sentences go on in further lines. What is to be
 * copied as a whole (title, commands) is one line, which the terminal shows in several rows ({@link rowsOf}).
 */
export function renderScreen(
  content: Content,
  look: Look,
  { title, hints, size, colour }: Frame,
): { readonly lines: readonly string[]; readonly seen: Seen } {
  const { columns } = size;
  const head = [
    ...title.map((text): Line => ({ text, style: 'bold', isCopied: true })),
    ...folded([...statusLines(content), tabLine(content, look), ...filterLine(look)], columns),
    { text: '' },
  ];
  const foot: Line[] = [{ text: '' }, { text: footer(look, columns), style: 'dim' }];
  const room = Math.max(1, size.rows - height(head, columns) - height(foot, columns));
  const shown = look.hasHints ? firstWithin(hints.map(hintLine), room - minRows - 1, columns) : [];
  const tried = shown.length === 0 ? [] : [{ text: '' }, ...shown];
  const text = textOver(content, look);
  const { body, seen: drawn } =
    text === undefined
      ? listBody(content, look, Math.max(1, room - height(tried, columns)), columns)
      : textBody(text, look, room, columns);
  const selected = look.over === 'answer' ? undefined : selectedKey(look, drawn.keys);
  const target = selected === undefined ? undefined : targetOf(content, look, selected);
  const seen = { ...drawn, target };
  const lines = firstWithin([...head, ...body, ...tried, ...foot], size.rows, columns);
  return { lines: lines.map((line) => painted(line, colour)), seen };
}

/** How they are on the screen. */
function painted({ text, style }: Line, colour: boolean): string {
  return colour && style !== undefined && text !== ''
    ? styleText(style, text, { validateStream: false })
    : text;
}

function hintLine(text: string): Line {
  return { text, style: 'dim', isCopied: true };
}

/** How it stands: counts, or why nothing is heard; what is still read, and what may not be. */
function statusLines({ tables, status }: Content): readonly Line[] {
  const { disconnected, loading, forbidden } = status;
  const services = rowsIn(tables.service);
  const nodes = rowsIn(tables.node);
  const waiting = services.filter(({ external }) => external === '<pending>').length;
  const empty = services.filter(({ endpoints }) => endpoints !== undefined && endpoints.ready === 0).length;
  const parts = [
    counted(services.length, 'Service'),
    ...(empty > 0 ? [`${empty} without ready endpoints`] : []),
    ...(waiting > 0 ? [`${waiting} waiting for an address`] : []),
    `${nodes.filter(({ isReady }) => isReady).length} of ${counted(nodes.length, 'node')} ready`,
  ];
  const read = loading.map(({ kind, read: count }) => `${kind} ${count.toLocaleString('en-US')}`);
  return [
    disconnected === undefined
      ? { text: parts.join(', ') }
      : { text: `${disconnected.message} (since ${disconnected.since.slice(11, 19)})`, style: 'red' },
    ...(read.length === 0 ? [] : [{ text: `reading: ${read.join(', ')}`, style: 'dim' } as const]),
    ...(forbidden.length === 0
      ? []
      : [{ text: `may not be read: ${forbidden.join(', ')}`, style: 'yellow' } as const]),
  ];
}

const titles: Readonly<Record<Tab, string>> = {
  ...{ services: 'Services', pods: 'Pods', nodes: 'Nodes', policies: 'Policies', addresses: 'Addresses' },
  ...{ flows: 'Flows', problems: 'Problems', events: 'Events' },
};

function tabLine({ tables }: Content, { tabs, tab }: Look): Line {
  const words = tabs.map((each, index) => {
    const count = each === 'problems' && tables.problem.size > 0 ? ` ${tables.problem.size}` : '';
    const word = `${index + 1} ${titles[each]}${count}`;
    // A sign as well as a style: a tab has to differ from the others without colours too.
    return each === tab ? `[${word}]` : word;
  });
  return { text: words.join('  '), style: 'bold' };
}

function filterLine({ filter, isTyping, namespace, isProblemsFirst, over, target }: Look): readonly Line[] {
  const parts = [
    ...(namespace === undefined ? [] : [`namespace: ${namespace}`]),
    ...(filter !== '' || isTyping ? [`filter: ${filter}${isTyping ? '_' : ''}`] : []),
    ...(isProblemsFirst ? [] : ['by name']),
    ...(over === 'sources' && target !== undefined ? [`the way to ${target.to}, from:`] : []),
  ];
  return parts.length === 0 ? [] : [{ text: parts.join('   '), style: 'yellow' }];
}

/** As many as fit, the most important first. */
function footer({ over, isTyping, isProblemsFirst }: Look, columns: number): string {
  const words = isTyping
    ? ['Enter keeps the filter', 'Esc ends it']
    : over === 'nothing'
      ? [
          ...['? keys', 'q quit', 'Tab next', 'Enter details', '/ filter', 'n namespace'],
          isProblemsFirst ? 'p by name' : 'p problems first',
          ...['t way', 'o page'],
        ]
      : over === 'namespaces' || over === 'sources'
        ? ['Enter chooses', 'Esc back', 'q quit']
        : ['Esc back', '↑ ↓ scroll', 'q quit'];
  let text = '';
  for (const word of words) {
    const longer = text === '' ? word : `${text}  ${word}`;
    if (widthOf(longer) > columns) break;
    text = longer;
  }
  return text;
}

const keyLines: readonly Line[] = (
  [
    ['1, 2 …, Tab, ← →', 'the lists, by their numbers'],
    ['↑ ↓ or j k', 'through the rows; PgUp, PgDn, Home and End too'],
    ['Enter', 'all about the selected row, and why something is missing'],
    ['Esc', 'back; the list without its filter'],
    ['/', 'a filter: rows that have all the words, in names, addresses, labels, reasons'],
    ['n', 'one namespace, or all'],
    ['p', 'problems first, or all by name'],
    [
      't',
      'the way of a connection to the selected Service or Pod, or of the selected flow, as servicenet trace plans it',
    ],
    ['o', 'the link to the page, where it shows what is selected'],
    ['?', 'these keys'],
    ['Ctrl-Z', 'pause; fg goes on'],
    ['q, Ctrl-C', 'the end'],
  ] as const
).map(([key, does]) => ({ text: `${key.padEnd(18)}${does}`, indent: 18 }));

/** The text that is shown in place of a list; undefined: none. */
function textOver(content: Content, look: Look): readonly Line[] | undefined {
  switch (look.over) {
    case 'details':
      return detailsOf(content, look, look.selected[look.tab]?.key ?? '');
    case 'keys':
      return keyLines;
    case 'answer':
      return content.answer ?? [{ text: 'asking …', style: 'dim' }];
    default:
      return undefined;
  }
}

interface Body {
  readonly body: readonly Line[];
  readonly seen: Omit<Seen, 'target'>;
}

function textBody(all: readonly Line[], { offset }: Look, room: number, columns: number): Body {
  const lines = folded(all, columns);
  // The lines from the last offset on fill the screen.
  let lastOffset = lines.length;
  let left = room;
  while (lastOffset > 0) {
    left -= rowsOf(lines[lastOffset - 1]?.text ?? '', columns);
    if (left < 0) break;
    lastOffset--;
  }
  const body = firstWithin(lines.slice(Math.min(offset, lastOffset)), room, columns);
  return { body, seen: { keys: [], page: Math.max(1, body.length - 1), lastOffset } };
}

function listBody(content: Content, look: Look, room: number, columns: number): Body {
  const list = listFor(content, look);
  const isFirst = look.tab === 'services' && look.over === 'nothing';
  const hasPools = isFirst || (look.tab === 'addresses' && look.over === 'nothing');
  const notices = [
    ...(look.tab === 'flows' && look.over === 'nothing' ? flowLines(content) : []),
    ...(hasPools ? poolLines(content).slice(0, maxLines) : []),
    ...(isFirst ? content.answers.slice(0, maxLines).map(answerLine) : []),
  ];
  const above = notices.length === 0 ? [] : folded([...notices, { text: '' }], columns);
  // On a small screen the list itself counts most.
  const kept = height(above, columns) + minRows / 2 > room ? [] : above;
  const left = room - height(kept, columns);
  const table = tableOf(list, columns);
  const wanted = Math.max(minEvents, Math.min(maxEvents, left - table.heading.length - list.rows.length - 1));
  const events = isFirst && left >= minRows ? newestEvents(content, wanted, columns) : [];
  const below = events.length === 0 ? [] : [{ text: '' }, ...events];
  const rows = drawnRows(list, table, look, Math.max(1, left - below.length), columns);
  return { body: [...kept, ...rows.body, ...below], seen: rows.seen };
}

/** Why there are none, or not all; what is denied is denied by packets. */
function flowLines({ flows }: Content): readonly Line[] {
  const { state, whyEnded, trouble } = flows?.watch ?? {};
  if (whyEnded !== undefined) return [{ text: `no flows: ${whyEnded}`, style: 'yellow' }];
  if (trouble !== undefined) return [{ text: `${trouble.reason}: ${trouble.message}`, style: 'yellow' }];
  return state === 'watching' ? [] : [{ text: 'asking the nodes …', style: 'dim' }];
}

function poolLines({ tables }: Content): readonly Line[] {
  return rowsIn(tables.pool).flatMap(({ name, families }) =>
    families.map((family) => {
      const { used, total } = family;
      // At least one mark for one used address of millions.
      const filled =
        used === 0 ? 0 : Math.min(barLength, Math.max(1, Math.floor((used / total) * barLength)));
      const bar = `${'#'.repeat(filled)}${'.'.repeat(barLength - filled)}`;
      return { text: `pool ${name}  ${family.family}  [${bar}]  ${usageText(family)}` };
    }),
  );
}

function answerLine({ service, pod, count, all }: LastAnswer): Line {
  return { text: `last answer of ${service}: ${pod}, ${count} of ${all}` };
}

/** The newest Events last, in so many lines. */
function newestEvents({ tables }: Content, room: number, columns: number): readonly Line[] {
  const byTime = rowsIn(tables.event).toSorted((a, b) => (a.time < b.time ? 1 : -1));
  const shown: (readonly Line[])[] = [];
  let left = room;
  for (const event of byTime.slice(0, room)) {
    const style = event.warning ? ({ style: 'yellow' } as const) : {};
    const lines = folded([{ text: eventText(event), indent: eventIndent, ...style }], columns);
    left -= lines.length;
    if (left < 0) break;
    shown.unshift(lines);
  }
  return shown.flat();
}

/** Behind the time. */
const eventIndent = 10;
/** In front of each row: whether it is selected, and whether something is wrong with it. */
const marks = 3;
const gap = 2;

interface DrawnTable {
  readonly heading: readonly Line[];
  /** The lines of a row, without its marks. */
  readonly lines: (row: ListRow) => readonly string[];
}

function tableOf({ columns: all, rows }: List, columns: number): DrawnTable {
  const width = Math.max(1, columns - marks);
  if (all.length === 0) {
    return { heading: [], lines: ({ cells }) => fold(plain(cells.join('  ')), width, eventIndent) };
  }
  const natural = all.map((column, index) => {
    const most = maxOf(rows.map(({ cells }) => widthOf(plain(cells[index] ?? ''))));
    return {
      column,
      index,
      width: Math.min(column.most ?? Infinity, Math.max(most, widthOf(column.title))),
      most,
    };
  });
  // A column that says nothing takes no room.
  const kept = columnsWithin(
    natural.filter(({ most }) => most > 0),
    width,
  );
  const lines = (cells: readonly string[]): readonly string[] => {
    const parts = kept.map((each) => fold(plain(cells[each.index] ?? ''), each.width, 0));
    const height = maxOf(parts.map((part) => part.length));
    return Array.from({ length: height }, (_line, at) =>
      kept
        .map((each, index) => {
          const text = parts[index]?.[at] ?? '';
          return text + ' '.repeat(Math.max(0, each.width - widthOf(text)));
        })
        .join(' '.repeat(gap))
        .trimEnd(),
    );
  };
  const heading = lines(all.map(({ title }) => title)).map((text): Line => ({
    text: ' '.repeat(Math.min(marks, columns - 1)) + text,
    style: 'dim',
  }));
  return { heading, lines: ({ cells }) => lines(cells) };
}

interface KeptColumn {
  readonly column: Column;
  readonly index: number;
  readonly width: number;
}

/** The columns that there is room for. The widest one that stays becomes narrower where even these are too wide. */
function columnsWithin(all: readonly KeptColumn[], room: number): readonly KeptColumn[] {
  let kept = all;
  const excess = (): number => kept.reduce((sum, { width }) => sum + width + gap, -gap) - room;
  for (const { index } of all.toSorted((a, b) => (a.column.goes ?? Infinity) - (b.column.goes ?? Infinity))) {
    if (excess() <= 0) return kept;
    kept = kept.filter(({ column, index: each }) => each !== index || column.goes === undefined);
  }
  while (excess() > 0) {
    const widest = kept.reduce((a, b) => (b.width > a.width ? b : a));
    if (widest.width <= 1) return kept.slice(0, 1);
    kept = kept.map((each) =>
      each === widest ? { ...each, width: Math.max(1, each.width - excess()) } : each,
    );
  }
  return kept;
}

/** The rows of the page that has the selected one: rows stay where they are while one goes through a page. */
function drawnRows(
  { rows, count }: List,
  table: DrawnTable,
  look: Look,
  room: number,
  columns: number,
): Body {
  const keys = rows.map(({ key }) => key);
  if (rows.length === 0) {
    const text = count > 0 ? 'No row has these words: Esc shows all.' : 'There are none.';
    return {
      body: [{ text: fold(text, columns)[0] ?? '', style: 'dim' }],
      seen: { keys, page: 1, lastOffset: 0 },
    };
  }
  const selected = selectedIndex(look, keys);
  const heading = room > table.heading.length + 1 ? table.heading : [];
  // The last line says where one is.
  const space = Math.max(1, room - heading.length);
  const whole = page(rows, table, selected, space);
  const isWhole = whole.from === 0 && whole.to === rows.length;
  const { from, to } = isWhole ? whole : page(rows, table, selected, Math.max(1, space - 1));
  const body = rows.slice(from, to).flatMap((row, index) => {
    const isSelected = from + index === selected;
    return table.lines(row).map((text, line): Line => {
      const mark = `${line === 0 && isSelected ? '>' : ' '}${line === 0 && row.isTroubled ? '!' : ' '} `;
      const style = isSelected ? 'inverse' : row.isTroubled ? 'red' : undefined;
      return { text: columns > marks ? mark + text : text, ...(style === undefined ? {} : { style }) };
    });
  });
  const filtered = rows.length < count ? ` of ${count} that have the words of the filter` : '';
  const where: Line[] =
    isWhole && filtered === ''
      ? []
      : [{ text: `   rows ${from + 1} to ${to} of ${rows.length}${filtered}`, style: 'dim' }];
  return {
    body: [
      ...heading,
      ...firstWithin([...body], space, columns),
      ...where.flatMap((line) => folded([line], columns)),
    ],
    seen: { keys, page: Math.max(1, to - from), lastOffset: 0 },
  };
}

/** As many rows as fill the room, from the start on: the part with a given row. */
function page(
  rows: readonly ListRow[],
  table: DrawnTable,
  selected: number,
  room: number,
): { readonly from: number; readonly to: number } {
  let from = 0;
  let used = 0;
  for (const [index, row] of rows.entries()) {
    const height = Math.min(room, table.lines(row).length);
    if (used + height > room) {
      if (index > selected) return { from, to: index };
      from = index;
      used = 0;
    }
    used += height;
  }
  return { from, to: rows.length };
}
