import { destinationText, type ReachQuestion } from '../network/path/reach-ends.ts';
import { type ReachChange, reachPlanSteps } from '../network/path/reach-plan.ts';
import { type Reach, type ReachDecider, type ReachVerdict, reachSteps } from '../network/path/reach.ts';
import type { Hop } from '../network/path/way.ts';
import type { PacketOutcome } from '../network/path/packet.ts';
import type { CheckedPacket, TraceReport } from '../network/path/report.ts';
import type { Stage } from '../network/path/stages.ts';
import { maxOf, pushAll } from '../objects/lists.ts';
import { columns } from './tables.ts';
import { hiddenObjects, readHttpObjects, readTracedCluster } from '../view/trace-cluster.ts';
import { reachabilityWords, seenText, sentText, boxOf } from '../view/pictures/way.ts';
import { controlSocketPath } from '../host/control-client.ts';
import type { TraceConfig } from '../flags/reports.ts';
import { DestinationError } from '../network/path/destination.ts';
import type { ClusterView } from '../network/path/cluster-view.ts';
import { runInSlices } from '../telemetry/time-slice.ts';
import { connectionChecker, traceConnection } from '../view/trace-connection.ts';
import { kubeconfigOfUp } from './choices.ts';
import { connectCluster, reportedCluster } from './connect.ts';
import { enterForPackets } from './packets.ts';
import { dotPicture, mermaidPicture, svgPicture, treePicture } from '../view/pictures/tree-of-boxes.ts';
import { editPolicies } from '../view/policy-edit.ts';
import { readManifests } from './apply.ts';

/** The socket of the `up` that a kubeconfig is of; by default that of `servicenet run`. */
function socketOf({ cluster }: TraceConfig): string {
  const path = cluster.kind === 'kubeconfig' ? cluster.path : undefined;
  const named = path ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
  return controlSocketPath(named === '' ? kubeconfigOfUp() : named);
}

/**
 * Prints the way of a connection through a cluster, or who reaches whom in a namespace.
 *
 * @returns the exit code: 0 reachable, 1 not, 2 when the objects do not decide it; 0 for a matrix.
 */
export async function trace(given: TraceConfig): Promise<0 | 1 | 2> {
  const config = { ...given, cluster: await reportedCluster(given.cluster) };
  const transport = await connectCluster(config.cluster);
  const { subject, namespace, protocol, output } = config;
  try {
    const cluster = await readTracedCluster(transport, config.proxy);
    if (subject.kind === 'matrix') {
      if (!cluster.view.hasNamespace(namespace))
        throw new DestinationError(`there is no namespace ${namespace}`);
      const { port, by, plan } = subject;
      const question = { namespace, protocol, port, by };
      if (plan === undefined) {
        const reach = await runInSlices(reachSteps(cluster.view, question));
        process.stdout.write(output === 'json' ? json(reach) : matrixText(reach, process.stdout.columns));
        return 0;
      }
      const planned = await planPolicies(cluster.view, plan, question);
      process.stdout.write(output === 'json' ? json(planned) : planText(planned));
      return 0;
    }
    const checker = config.check
      ? connectionChecker((place) => enterForPackets(socketOf(config), place))
      : undefined;
    const { source, destination } = subject;
    const { outsideAddresses } = config;
    const report = await traceConnection(
      cluster,
      { source, destination, namespace, protocol, outsideAddresses, checker },
      () => readHttpObjects(transport),
    );
    process.stdout.write(printed(report, source, output));
    return report.reachable === undefined ? 2 : report.reachable ? 0 : 1;
  } finally {
    await transport.close();
  }
}

/** What policies would change. @throws {Error} naming the file whose content is refused. */
async function planPolicies(
  view: ClusterView,
  { files, deleted }: { readonly files: readonly string[]; readonly deleted: readonly string[] },
  question: ReachQuestion,
): Promise<{ readonly changes: readonly ReachChange[]; readonly problems: readonly string[] }> {
  const manifests = await readManifests(files);
  const objects = manifests.flatMap(({ objects: list }) => list);
  const { policies, namespaces, problems } = editPolicies(view, objects, deleted, question.namespace);
  return { changes: await runInSlices(reachPlanSteps(view, policies, namespaces, question)), problems };
}

function printed(report: TraceReport, source: string, output: TraceConfig['output']): string {
  switch (output) {
    case 'json':
      return json(report);
    case 'table':
    case 'wide':
      return reportText(report, output === 'wide');
    case 'tree':
      return treePicture(boxOf(report, source));
    case 'mermaid':
      return mermaidPicture(boxOf(report, source));
    case 'dot':
      return dotPicture(boxOf(report, source));
    case 'svg':
      return svgPicture(boxOf(report, source));
  }
}

/** Traces as text. */

/** A line of the table. */
type PrintedStage =
  | Stage
  | (Omit<Stage, 'stage' | 'verdict'> & { readonly stage: 'real packet'; readonly verdict: PacketOutcome });

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function reportText({ proxyOptions, reachable, stages, traces }: TraceReport, isWide: boolean): string {
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

function hopLines(hops: readonly Hop[]): readonly string[] {
  return hops.map(({ at, sends, seen }) => {
    const sent = sends === undefined ? at : `${at}: ${sentText(sends)}`;
    return seen === undefined ? sent : `${sent} (${seenText(seen)})`;
  });
}

/** Who reaches whom, and what policies would change. */

const marks: Readonly<Record<ReachVerdict, readonly [string, string]>> = {
  open: ['.', 'open: nothing isolates the Pods'],
  allowed: ['+', 'a rule allows'],
  denied: ['X', 'denied'],
  differs: ['~', 'Pods differ (--by pod)'],
  unknown: ['?', 'objects do not tell'],
  unasked: [' ', ''],
};

/**
 * A table with a number for each column, cut where the terminal ends, and below it who decides.
 *
 * @param terminalWidth characters; undefined: no terminal.
 */
export function matrixText(reach: Reach, terminalWidth = 80): string {
  const { namespace, sources, destinations, cells } = reach;
  if (!sources.some(({ name }) => !name.startsWith('namespace/') && name !== 'nodes'))
    return `There are no Pods with addresses in namespace ${namespace}.\n`;
  const short = (name: string): string => name.replace(`/${namespace}/`, '/');
  const rows = sources.map(({ name, count }) => [short(name), String(count)]);
  const left = columns([['FROM \\ TO', 'PODS'], ...rows]).split('\n');
  const leftWidth = maxOf(left.map(({ length }) => length)) + 2;
  const numbers = destinations.map((_, index) => String(index + 1));
  const cellWidth = String(numbers.length).length + 1;
  const perBlock = Math.max(1, Math.floor((terminalWidth - leftWidth) / cellWidth));
  const lines = [numbers, ...cells.map((row) => row.map(({ verdict }) => marks[verdict][0]))];
  const blocks: string[] = [];
  for (let from = 0; from < numbers.length; from += perBlock) {
    const block = lines.map((line, index) => {
      const part = line.slice(from, from + perBlock).map((cell) => cell.padStart(cellWidth));
      return `${(left[index] ?? '').padEnd(leftWidth)}${part.join('')}`.trimEnd();
    });
    blocks.push(`${block.join('\n')}\n`);
  }
  const named = columns(destinations.map((each, index) => [String(index + 1), short(destinationText(each))]));
  const used = new Set(cells.flatMap((row) => row.map(({ verdict }) => verdict)));
  const legend = Object.entries(marks)
    .filter(([verdict, [mark]]) => mark !== ' ' && [...used].some((each) => each === verdict))
    .map(([, [mark, words]]) => `${mark} ${words}`);
  return [...blocks, named, `${legend.join(', ')}\n`, decidersText(reach)]
    .filter((part) => part !== '')
    .join('\n');
}

/** Objects that decide, and how many cells each does. */
function decidersText({ cells }: Reach): string {
  const counts = new Map<string, number>();
  for (const { deciders } of cells.flat()) {
    const lines = deciders.filter(({ verdict }) => verdict !== 'open').map(deciderLine);
    for (const line of new Set(lines)) counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts]
    .map(([line, count]) => `${line} (${count} ${count === 1 ? 'cell' : 'cells'})\n`)
    .join('');
}

function deciderLine(decider: ReachDecider): string {
  return `${marks[decider.verdict][0]} ${deciderText(decider)}`;
}

function deciderText({ object, field, message }: ReachDecider): string {
  const by = [object, field].filter((part) => part !== undefined).join(' ');
  return by === '' ? message : `${by}: ${message}`;
}

/** The cells that policies would change. */
export function planText({
  changes,
  problems,
}: {
  readonly changes: readonly ReachChange[];
  readonly problems: readonly string[];
}): string {
  const notes = problems.map((problem) => `${problem}\n`);
  const shown = changes.filter(({ before, after }) => before.verdict !== after.verdict);
  const others = changes.length - shown.length;
  const heading = ['FROM', 'TO', 'BEFORE', 'AFTER', 'DECIDED BY'];
  const rows = shown.map(({ source, destination, before, after }) => {
    const decider = after.deciders.find(({ verdict }) => verdict === 'denied') ?? after.deciders[0];
    const by = decider === undefined ? '' : deciderText(decider);
    return [source, destination, before.verdict, after.verdict, by];
  });
  return [
    ...notes,
    rows.length === 0 ? 'No verdict changes.\n' : columns([heading, ...rows]),
    ...(others === 0
      ? []
      : [
          `${others} more ${others === 1 ? 'cell keeps its verdict, and is' : 'cells keep their verdict, and are'} decided by others.\n`,
        ]),
  ].join('');
}
