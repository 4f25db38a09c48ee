import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { askFlows, controlSocketPath } from '../host/control-client.ts';
import type { FlowsConfig } from '../flags/flows.ts';
import {
  endText,
  type Flow,
  type FlowLine,
  flowWords,
  readFlowLine,
  sampledText,
  workloadText,
} from '../network/flows/flow.ts';
import { type FlowGroup, FlowGrouping, historyText } from '../network/flows/groups.ts';
import { setYoungest } from '../network/flows/oldest.ts';
import { plain } from '../objects/plain.ts';
import { createLog } from '../telemetry/log.ts';
import { reportedCluster } from './connect.ts';
import { untilSignal } from './signals.ts';
import { columns } from './tables.ts';

/**
 * Prints the flows of the cluster network of an `up` or of the nodes of a cluster, or waits for one.
 *
 * @returns the exit code: with `--expect`, 0 where the flow is seen, 1 where it is not in time, 2 where that is not known.
 * @throws {Error} where there is no such `up` and no agent, or there can be no flows.
 */
export async function flows(config: FlowsConfig): Promise<0 | 1 | 2> {
  const signal = untilSignal(createLog({ level: 'silent', format: 'json' }));
  const ending = new AbortController();
  const end = (): void => ending.abort();
  void signal.received.then(end);
  const late = config.expect === undefined ? undefined : setTimeout(end, config.timeoutMs);
  try {
    const lines = await linesOf(config, ending.signal);
    if (config.expect !== undefined) return await expected(config, lines);
    return config.groups ? await printGroups(config, lines) : await print(config, lines);
  } finally {
    clearTimeout(late);
    signal.release();
  }
}

/** Of an `up` where its kubeconfig is named or nothing is, else of the agents of a cluster. @throws {Error} */
async function linesOf(config: FlowsConfig, signal: AbortSignal): Promise<AsyncGenerator<FlowLine>> {
  const { cluster, kubeconfigPath } = config;
  const isOfUp = cluster.kind === 'kubeconfig' && cluster.context === undefined;
  if (isOfUp && existsSync(controlSocketPath(kubeconfigPath))) return readUp(config, signal);
  const found = await reportedCluster(cluster);
  const isThere = found.kind === 'endpoint' || existsSync(kubeconfigPath) || hasOtherCluster();
  if (!isThere) return readUp(config, signal);
  const { clusterFlows } = await import('./cluster-flows.ts');
  return clusterFlows(found, config, signal);
}

/** Whether the client library finds a cluster by itself. */
function hasOtherCluster(): boolean {
  const { HOME: home = '', KUBECONFIG: named = '', KUBERNETES_SERVICE_HOST: host = '' } = process.env;
  return named === '' && (host !== '' || (home !== '' && existsSync(join(home, '.kube', 'config'))));
}

/** @throws {Error} of the `up`. */
async function* readUp(config: FlowsConfig, signal: AbortSignal): AsyncGenerator<FlowLine> {
  const { kubeconfigPath, namespace, from, to, outcomes, by, all, groups, expect } = config;
  const last = groups || expect !== undefined ? 10_000 : config.last;
  // A place without a namespace is of that one; what is expected may be between others.
  const request = { namespace, from, to, outcomes, by, all, last };
  for await (const line of askFlows(controlSocketPath(kubeconfigPath), request, signal))
    yield readFlowLine(line);
}

async function print(config: FlowsConfig, lines: AsyncGenerator<FlowLine>): Promise<0> {
  const { follow, output } = config;
  const printed = new FollowedFlows();
  const widths: number[] = [];
  let lost = 0;
  for await (const line of lines) {
    if (output === 'json')
      process.stdout.write(line.flows.map((flow) => `${JSON.stringify(flow)}\n`).join(''));
    else {
      const rows = line.flows.filter((flow) => printed.isNews(flow)).map((flow) => row(flow, output));
      process.stdout.write(columns(line.known ? [heading(output), ...rows] : rows, widths));
    }
    if (line.lost > lost) sayLost(line.lost - lost);
    lost = Math.max(lost, line.lost);
    if (!follow) break;
  }
  return 0;
}

async function printGroups({ output }: FlowsConfig, lines: AsyncGenerator<FlowLine>): Promise<0> {
  const grouping = new FlowGrouping();
  for await (const { flows } of lines) {
    for (const flow of flows) grouping.take(flow);
    break;
  }
  const { groups, total } = grouping.groups(Date.now());
  if (output === 'json') process.stdout.write(groups.map((group) => `${JSON.stringify(group)}\n`).join(''));
  else {
    const wide = output === 'wide' ? ['PROTOCOL'] : [];
    const heading = [
      'LAST',
      'FROM',
      'SERVICE',
      'TO',
      'OUTCOME',
      'COUNT',
      '/S',
      '5 MIN',
      ...wide,
      'DECIDED BY',
    ];
    process.stdout.write(columns([heading, ...groups.map((group) => groupRow(group, output))]));
    if (total > groups.length) process.stdout.write(`and ${total - groups.length} more\n`);
  }
  return 0;
}

function groupRow(group: FlowGroup, output: FlowsConfig['output']): readonly string[] {
  const { time, from, service, to, outcomeText, count, perSecond, history, protocol, decidedBy } = group;
  return [
    ...[localTime(time), from, service || '-', to || '-', outcomeText, String(count), String(perSecond)],
    ...[historyText(history), ...(output === 'wide' ? [protocol] : []), decidedBy || '-'],
  ].map(plain);
}

function sayLost(count: number): void {
  process.stderr.write(`servicenet: FlowsSampled: ${sampledText(count)}\n`);
}

async function expected(config: FlowsConfig, lines: AsyncGenerator<FlowLine>): Promise<0 | 1 | 2> {
  let lost = 0;
  let isAnswered = false;
  let isWhole = true;
  for await (const line of lines) {
    isAnswered = true;
    isWhole &&= line.isPart !== true;
    ({ lost } = line);
    const [found] = line.flows;
    if (found === undefined) continue;
    process.stdout.write(
      config.output === 'json' ? `${JSON.stringify(found)}\n` : columns([row(found, config.output)]),
    );
    return 0;
  }
  const seconds = config.timeoutMs / 1000;
  process.stderr.write(`servicenet: within ${seconds} s there was no flow ${config.expect ?? ''}\n`);
  if (lost > 0) sayLost(lost);
  return isAnswered && isWhole && lost === 0 ? 1 : 2;
}

/** Milliseconds after which more packets of a denied connection are worth a line: its client repeats the first one. */
const quietMs = 60_000;

/** Tells what is worth a line from what only has more packets. */
class FollowedFlows {
  readonly #last = new Map<number, { readonly outcome: string; readonly timeMs: number }>();

  isNews({ id, outcome, time }: Flow): boolean {
    const timeMs = Date.parse(time);
    const before = this.#last.get(id);
    if (before?.outcome === outcome && timeMs - before.timeMs < quietMs) return false;
    setYoungest(this.#last, id, { outcome, timeMs }, 10_000);
    return true;
  }
}

function heading(output: FlowsConfig['output']): readonly string[] {
  const wide = output === 'wide' ? ['NODE', 'PROTOCOL', 'ADDRESSES'] : [];
  return ['TIME', 'FROM', 'SERVICE', 'TO', 'OUTCOME', 'PACKETS', ...wide, 'DECIDED BY'];
}

function row(flow: Flow, output: FlowsConfig['output']): readonly string[] {
  const { from, to, packets, node = '-', protocol, service } = flow;
  const words = flowWords(flow, output === 'wide' ? endText : workloadText);
  const ends = [
    address(from),
    ...(service === undefined ? [] : [service.address]),
    ...(to === undefined ? [] : [address(to)]),
  ];
  return [
    ...[localTime(words.time), words.from, words.service || '-', words.to || '-', words.outcomeText],
    packets === undefined ? '-' : String(packets),
    ...(output === 'wide' ? [node, protocol, ends.join(' > ')] : []),
    words.decidedBy || '-',
  ].map(plain);
}

function address({ address, port }: Flow['from']): string {
  if (port === undefined) return address;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** `20:47:01`, as the clock on the wall. */
function localTime(time: string): string {
  return new Date(time).toTimeString().slice(0, 8);
}
