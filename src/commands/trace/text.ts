import { type Hop } from '../../network/path/way.ts';
import type { Reach, ReachabilityMatrix } from '../../network/path/matrix.ts';
import type { PacketOutcome } from '../../network/path/packet.ts';
import type { CheckedPacket, TraceReport } from '../../network/path/report.ts';
import type { Stage } from '../../network/path/stages.ts';
import { maxOf, pushAll } from '../../objects/lists.ts';
import { columns } from '../tables.ts';
import { hiddenObjects } from '../../view/trace-cluster.ts';
import { reachabilityWords, sentText } from '../../view/pictures/way.ts';

/** Traces as text, and as boxes of a picture. */

/** A line of the table. */
type PrintedStage =
  | Stage
  | (Omit<Stage, 'stage' | 'verdict'> & { readonly stage: 'real packet'; readonly verdict: PacketOutcome });

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

export function reportText(
  { proxyOptions, reachable, stages, traces }: TraceReport,
  isWide: boolean,
): string {
  const lines: (PrintedStage | string)[] = [...stages];
  for (const { destination, hops, stages: own, endpoints, packet } of traces) {
    if (traces.length > 1) lines.push(`${destination}:`);
    pushAll(lines, own);
    for (const [
      index,
      { address, port, object = 'endpoint', stages: of, reachable: is },
    ] of endpoints.entries()) {
      if (endpoints.length > 1) lines.push(`${object} (${address} port ${port}): ${reachabilityWords(is)}`);
      pushAll(lines, isWide ? of : of.filter(({ verdict }) => verdict !== 'pass'));
      if (isWide) pushAll(lines, hopLines(hops[index] ?? []));
    }
    if (isWide && endpoints.length === 0) pushAll(lines, hopLines(hops[0] ?? []));
    if (packet !== undefined) lines.push(packetLine(packet));
  }
  const hidden: readonly string[] = Object.values(hiddenObjects);
  const shown = isWide ? proxyOptions : proxyOptions.filter((line) => hidden.includes(line));
  return `${table(lines)}\n${reachabilityWords(reachable)}${shown.length === 0 ? '' : ` (proxy: ${shown.join('; ')})`}\n`;
}

/** The real connection as the last stage. */
function packetLine({ outcome, differsAt, message }: CheckedPacket): PrintedStage {
  const field = differsAt === undefined ? '' : `differs at: ${differsAt}`;
  return { stage: 'real packet', verdict: outcome, object: '', field, message };
}

/** The stages in columns; a text is a heading of those that follow. */
function table(lines: readonly (PrintedStage | string)[]): string {
  const rows = columns([
    ['STAGE', 'VERDICT', 'OBJECT', 'FIELD', 'MESSAGE'],
    ...lines.filter((line) => typeof line !== 'string').map(row),
  ]).split('\n');
  let next = 1;
  const body = lines.map((line) => (typeof line === 'string' ? line : (rows[next++] ?? '')));
  return `${[rows[0], ...body].join('\n')}\n`;
}

function row({ stage, verdict, object = '', field = '', message }: PrintedStage): string[] {
  return [stage, verdict, object, field, message];
}

const marks: Readonly<Record<Reach, string>> = { all: '.', some: '~', none: 'X', unasked: '-' };

/**
 * A table with a number for each column, cut where the terminal ends.
 *
 * @param isWide Pod by Pod instead of workload by workload.
 * @param terminalWidth characters; undefined: no terminal.
 */
export function matrixText(matrix: ReachabilityMatrix, isWide: boolean, terminalWidth = 80): string {
  const { pods, reached, workloads, reach } = matrix;
  if (pods.length === 0) return 'There are no Pods with addresses.\n';
  const names = isWide
    ? pods.map((key) => [key.slice(key.indexOf('/') + 1)])
    : workloads.map((each) => [each.name, String(each.pods.length), each.ports.join(',') || '<none>']);
  const cells = isWide
    ? reached.map((row) => row.map((is) => marks[is ? 'all' : 'none']))
    : reach.map((row) => row.map((each) => marks[each]));
  const heading = isWide ? ['FROM \\ TO'] : ['FROM \\ TO', 'PODS', 'PORTS'];
  const left = columns([['', ...heading], ...names.map((name, index) => [String(index + 1), ...name])]).split(
    '\n',
  );
  const leftWidth = maxOf(left.map(({ length }) => length)) + 2;
  const cellWidth = String(names.length).length + 1;
  const perBlock = Math.max(1, Math.floor((terminalWidth - leftWidth) / cellWidth));
  const blocks: string[] = [];
  for (let from = 0; from < names.length; from += perBlock) {
    const numbers = names.map((_, index) => String(index + 1));
    const lines = [numbers, ...cells].map((row, index) => {
      const part = row.slice(from, from + perBlock).map((cell) => cell.padStart(cellWidth));
      return `${(left[index] ?? '').padEnd(leftWidth)}${part.join('')}`;
    });
    blocks.push(`${lines.join('\n')}\n`);
  }
  const legend = isWide
    ? '. reachable, X not'
    : '. reachable, X not, ~ in part (-o wide), - no port is known';
  return `${blocks.join('\n')}\n${legend}\n`;
}

function hopLines(hops: readonly Hop[]): readonly string[] {
  return hops.map(({ at, sends }) => (sends === undefined ? at : `${at}: ${sentText(sends)}`));
}
