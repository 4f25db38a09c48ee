import { stripVTControlCharacters, styleText } from 'node:util';
import { maxOf } from '../../objects/lists.ts';
import type { EventLine, LastAnswer, PoolRow, ServiceRow, View } from './model.ts';
import type { EgressRow } from '../tables.ts';

/**
 * Text for a terminal. Values from a cluster may contain control characters, with which an Event could draw over the
 * screen: they are shown as `?`.
 */

/** The text on one line, without control characters. */
export function plain(text: string): string {
  let result = '';
  for (const character of stripVTControlCharacters(text)) {
    result += isCommand(character.codePointAt(0) ?? 0) ? '?' : character;
  }
  return result;
}

/** C0 and C1 controls, line and paragraph separators, and marks that change the direction of text. */
function isCommand(code: number): boolean {
  return (
    code < 0x20 ||
    (code >= 0x7f && code <= 0x9f) ||
    code === 0x200e ||
    code === 0x200f ||
    (code >= 0x2028 && code <= 0x202e) ||
    (code >= 0x2066 && code <= 0x2069)
  );
}

/** The text cut to a width, with `…` where it was cut. */
export function fit(text: string, width: number): string {
  if (width <= 0) return '';
  let kept = '';
  let count = 0;
  for (const character of text) {
    count++;
    if (count > width) return `${kept}…`;
    if (count < width) kept += character;
  }
  return text;
}

/** How many rows of a screen a line takes. */
export function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(stripVTControlCharacters(line).length / columns));
}

/** The live view as lines of text for a screen of a size. Pure. */

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const heading = ['NAMESPACE', 'NAME', 'TYPE', 'CLUSTER-IP', 'EXTERNAL-IP', 'PORT(S)', 'READY'];
/** Columns to leave out where the screen is narrow, the least important one first. */
const dispensable = ['TYPE', 'PORT(S)', 'CLUSTER-IP', 'NAMESPACE', 'EXTERNAL-IP'];
/** Characters of a pool's bar. */
const barLength = 20;
/** Lines of Events that are shown if there is room. */
const maxEvents = 8;
const minEvents = 3;
/** Lines of egress addresses that are shown. */
const maxEgress = 4;
/** Lines that stay for Services and Events before hints get any. */
const minRows = 10;

/**
 * The lines to show: a summary, the pools, the egress addresses, the last answers, the Services, the last Events,
 * commands to try. Together they take no more than `size.rows`. What is to be read or copied as a whole (title, problem,
 * commands) is not cut: on a narrow screen it takes several rows ({@link rowsOf}).
 *
 * @param hints the commands, the most helpful first.
 */
export function renderScreen(
  view: View,
  title: readonly string[],
  size: ScreenSize,
  colour: boolean,
  hints: readonly string[] = [],
): string[] {
  const paint = (style: 'bold' | 'dim' | 'red' | 'yellow' | 'green', text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const { problem } = view;
  const rows = (lines: readonly string[]): number =>
    lines.reduce((sum, line) => sum + rowsOf(line, size.columns), 0);
  const head = [
    ...title.map((line) => paint('bold', line)),
    problem === undefined ? fit(summary(view), size.columns) : paint('red', plain(problem)),
  ];
  const pools = view.pools.slice(0, 4).map((pool) => fit(poolLine(pool), size.columns));
  const egress = view.egress.slice(0, maxEgress).map((row) => fit(egressText(row), size.columns));
  const answers = view.answers.slice(0, 4).map((answer) => fit(answerLine(answer), size.columns));
  const above = rows(head) + pools.length + egress.length + answers.length + 4;
  const tried = firstWithin(hints, size.rows - above - minRows - 1, size.columns);
  const tail = tried.length === 0 ? [] : ['', ...tried.map((hint) => paint('dim', hint))];
  const fixed = above + rows(tail);
  const room = Math.max(0, size.rows - fixed);
  const wanted = Math.min(view.events.length, maxEvents);
  const events = Math.min(wanted, Math.max(Math.min(minEvents, wanted), room - view.services.length));
  const services = Math.max(0, room - events);
  const shown = view.services.slice(
    0,
    services < view.services.length ? Math.max(0, services - 1) : services,
  );
  const cells = [heading, ...shown.map(cellsOf)];
  const widths = heading.map((_name, column) => maxOf(cells.map((row) => (row[column] ?? '').length)));
  const columns = columnsWithin(widths, size.columns);
  const table = cells.map((row, index) => {
    const line = columns.map((column) => (row[column] ?? '').padEnd(widths[column] ?? 0)).join('  ');
    const text = fit(line.trimEnd(), size.columns);
    const service = shown[index - 1];
    if (service === undefined) return paint('dim', text);
    return isTroubled(service) ? paint('red', text) : text;
  });
  const left = view.services.length - shown.length;
  const lines = [
    ...head,
    ...pools,
    ...egress,
    ...answers,
    '',
    ...table,
    ...(left > 0 ? [paint('dim', fit(`… and ${left} more`, size.columns))] : []),
    '',
    ...view.events.slice(view.events.length - events).map((event) => {
      const text = fit(eventText(event), size.columns);
      return event.warning ? paint('yellow', text) : text;
    }),
    ...tail,
  ];
  return firstWithin(lines, size.rows, size.columns);
}

/** The first lines, as many as have room. */
function firstWithin(lines: readonly string[], rows: number, columns: number): string[] {
  const shown: string[] = [];
  let left = rows;
  for (const line of lines) {
    left -= rowsOf(line, columns);
    if (left < 0) break;
    shown.push(line);
  }
  return shown;
}

/** The columns, by their indexes, that a screen has room for. */
function columnsWithin(widths: readonly number[], room: number): readonly number[] {
  let columns = heading.map((_name, index) => index);
  const length = () => columns.reduce((sum, column) => sum + (widths[column] ?? 0) + 2, -2);
  for (const name of dispensable) {
    if (length() <= room) break;
    columns = columns.filter((column) => heading[column] !== name);
  }
  return columns;
}

/** The summary line. */
function summary({ services, nodes }: View): string {
  const waiting = services.filter(({ external }) => external === '<pending>').length;
  const empty = services.filter(({ endpoints }) => endpoints !== undefined && endpoints.ready === 0).length;
  const parts = [
    `${services.length} Services`,
    ...(empty > 0 ? [`${empty} without ready endpoints`] : []),
    ...(waiting > 0 ? [`${waiting} waiting for an address`] : []),
    `${nodes.ready} of ${nodes.total} nodes ready`,
  ];
  return parts.join(', ');
}

/** True for a Service that should have endpoints but has none ready, or that waits for an address. */
function isTroubled({ endpoints, external }: ServiceRow): boolean {
  return (
    external === '<pending>' || (endpoints !== undefined && endpoints.ready < Math.max(1, endpoints.total))
  );
}

function cellsOf({ namespace, name, type, clusterIP, external, ports, endpoints }: ServiceRow): string[] {
  const ready = endpoints === undefined ? '-' : `${endpoints.ready}/${endpoints.total}`;
  return [namespace, name, type, clusterIP, external, ports, ready].map(plain);
}

function poolLine({ name, family, used, total }: PoolRow): string {
  // At least one mark for one used address of millions.
  const filled = used === 0 ? 0 : Math.max(1, Math.floor((used / total) * barLength));
  const bar = `${'#'.repeat(filled)}${'.'.repeat(barLength - filled)}`;
  return `pool ${plain(name)}  ${family}  [${bar}]  ${used} of ${total.toLocaleString('en-US')} used`;
}

function answerLine({ service, pod, count, all }: LastAnswer): string {
  return `last answer of ${plain(service)}: ${plain(pod)}, ${count} of ${all}`;
}

/** `12:34:56  shop  service/web  Assigned  192.0.2.1 from pool default`. */
export function eventText({ time, namespace, object, reason, message }: EventLine): string {
  return [time.slice(11, 19), namespace, object, reason, message].map(plain).join('  ');
}

/** A Service as one line, for outputs that are not a terminal. */
export function serviceText(row: ServiceRow): string {
  const ready = row.endpoints === undefined ? '' : `  ${row.endpoints.ready}/${row.endpoints.total} ready`;
  const parts = [`${row.namespace}/${row.name}`, row.type, row.clusterIP, row.external, row.ports].map(plain);
  return `${parts.join('  ')}${ready}`;
}

/** An egress address as one line. */
export function egressText({ address, egressIP, node }: EgressRow): string {
  return `egress ${plain(address)}  ${plain(egressIP)}  ${node === undefined ? 'on no node' : `on ${plain(node)}`}`;
}

/** A pool as one line. */
export function poolText(row: PoolRow): string {
  return `pool/${plain(row.name)}  ${row.family}  ${row.used} of ${row.total} used`;
}
