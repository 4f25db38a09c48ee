import { homedir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { RunWhere } from '../../flags/run.ts';
import { askControl, controlSocketPath } from '../../emulation/control-socket.ts';
import { run } from '../../host/local-host.ts';
import { comparePacket, type PacketOutcome, type PacketVerdict } from '../../network/path/packet.ts';
import {
  type Trace,
  type TraceDestination,
  type TraceSource,
  reachabilityMatrix,
  type ReachabilityMatrix,
  tracePath,
} from '../../network/path/trace.ts';
import { lookup } from 'node:dns/promises';
import type { TraceConfig } from '../../flags/reports.ts';
import { dnsServiceKey } from '../../network/dns/dns-service.ts';
import { parseResolvConf, resolvConf } from '../../network/dns/resolv-conf.ts';
import { Zone } from '../../network/dns/zone.ts';
import { addressesOfNode, addressesOfPod, type ClusterView } from '../../network/path/cluster-view.ts';
import {
  DestinationError,
  noPod,
  targetsOfFamilies,
  outsideTargets,
  parseDestination,
  type ResolvedDestination,
  resolveDestination,
} from '../../network/path/destination.ts';
import type { Stage } from '../../network/path/stages.ts';
import { parseAddress } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import { keyOf } from '../../objects/meta.ts';
import { connectCluster } from '../connect.ts';
import { columns } from '../tables.ts';
import { readTracedCluster, type TracedCluster } from './cluster.ts';

/** A plan beside the result of a real connection. */
export interface CheckedPacket extends PacketVerdict {
  /** That the connection took. */
  readonly milliseconds: number;
}

/** A connection may take so long. */
const timeoutMs = 2000;

/** Prints the result of a connection to the address and port that follow. */
const program = `
const [address, port] = process.argv.slice(1);
const socket = require('node:net').connect({ host: address, port: Number(port) });
const end = (outcome) => { process.stdout.write(outcome); socket.destroy(); process.exit(0); };
socket.once('connect', () => end('connected'));
socket.once('error', ({ code }) => end(code === 'ETIMEDOUT' ? 'dropped' : 'refused'));
setTimeout(() => end('dropped'), ${timeoutMs});
`;

/**
 * Opens connections from a place of the cluster network of an `up`, as its source would.
 *
 * @throws {Error} where there is no such network, or the source is not in it.
 */
class PacketChecker {
  readonly #socket: string;

  /** @param kubeconfigPath that `up` has written; default that of `servicenet run`. */
  constructor(kubeconfigPath: string | undefined) {
    const named = kubeconfigPath ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
    this.#socket = controlSocketPath(named === '' ? join(homedir(), '.servicenet', 'kubeconfig') : named);
  }

  /** Opens the connection of a plan; where that does not come about against the plan, also to the endpoints themselves. */
  async check(source: TraceSource, destination: TraceDestination, plan: Trace): Promise<CheckedPacket> {
    const place = await askControl(this.#socket, whereOf(source));
    const open = async (address: string, port: number): Promise<PacketOutcome> => {
      const argv = [...place.argv, process.execPath, '-e', program, address, String(port)];
      const { stdout, stderr } = await run(argv[0] ?? '', argv.slice(1));
      if (stdout === 'connected' || stdout === 'refused' || stdout === 'dropped') return stdout;
      throw new Error(`--check: no connection was tried: ${stderr.trim()}`);
    };
    try {
      const begun = performance.now();
      const outcome = await open(destination.address, destination.port);
      const milliseconds = Math.round(performance.now() - begun);
      const isLost = plan.reachable === true && outcome !== 'connected';
      const others = plan.endpoints.filter(({ address }) => address !== destination.address);
      const direct = isLost ? await Promise.all(others.map(({ address, port }) => open(address, port))) : [];
      return { ...comparePacket(plan, outcome, direct), milliseconds };
    } finally {
      place.end();
    }
  }
}

function whereOf(source: TraceSource): RunWhere {
  switch (source.kind) {
    case 'pod': {
      const { namespace = '', name = '' } = source.pod.metadata;
      return { kind: 'pod', namespace, name };
    }
    case 'node':
      return { kind: 'node', name: source.node.metadata.name ?? '' };
    case 'outside':
      return { kind: 'outside' };
  }
}

const clusterDomain = 'cluster.local';

/** A line of the table. */
type PrintedStage =
  | Stage
  | (Omit<Stage, 'stage' | 'verdict'> & { readonly stage: 'real packet'; readonly verdict: PacketOutcome });

/** The plan for one address of the destination. */
interface TracedDestination extends Trace {
  readonly destination: string;
  /** With `--check`. */
  readonly packet?: CheckedPacket;
}

/** The printed result of one connection. */
interface TraceReport {
  readonly proxyOptions: readonly string[];
  /** Undefined: the objects do not decide it. */
  readonly reachable: boolean | undefined;
  readonly stages: readonly Stage[];
  /** One for each address of the destination. */
  readonly traces: readonly TracedDestination[];
}

/**
 * Prints the way of a connection through a cluster, or which Pods of a namespace reach each other.
 *
 * @returns the exit code: 0 reachable, 1 not, 2 when the objects do not decide it; 0 for a matrix.
 */
export async function trace(config: TraceConfig): Promise<0 | 1 | 2> {
  const transport = await connectCluster(config.cluster);
  let cluster: TracedCluster;
  try {
    cluster = await readTracedCluster(transport, config.proxy);
  } finally {
    await transport.close();
  }
  const { subject, namespace, protocol, output } = config;
  if (subject.kind === 'matrix') {
    if (!cluster.view.hasNamespace(namespace))
      throw new DestinationError(`there is no namespace ${namespace}`);
    const matrix = reachabilityMatrix(cluster.view, namespace, protocol, subject.port);
    process.stdout.write(output === 'json' ? json(matrix) : matrixText(matrix));
    return 0;
  }
  const report = await traceConnection(cluster, config, subject);
  process.stdout.write(output === 'json' ? json(report) : reportText(report, output === 'wide'));
  return report.reachable === undefined ? 2 : report.reachable ? 0 : 1;
}

async function traceConnection(
  { view, proxyOptions }: TracedCluster,
  config: TraceConfig,
  given: { readonly source: string; readonly destination: string },
): Promise<TraceReport> {
  const source = parseSource(view, given.source, config);
  const namespace = source.kind === 'pod' ? (source.pod.metadata.namespace ?? '') : config.namespace;
  const destination = parseDestination(given.destination, namespace);
  const zone = zoneOf(view);
  const { protocol, outsideAddresses } = config;
  const searches = searchesOf(source);
  const isOutside = source.kind === 'outside';
  const resolved = resolveDestination(
    ...([view, zone, destination, protocol, searches, outsideAddresses, isOutside] as const),
  );
  const whole: ResolvedDestination =
    resolved.kind === 'outsideName'
      ? outsideTargets(resolved, await addressesOf(resolved.name), protocol)
      : resolved;
  if (whole.kind !== 'found') {
    const cannotTell = whole.stages.some(({ verdict }) => verdict === 'unknown');
    return { proxyOptions, reachable: cannotTell ? undefined : false, stages: whole.stages, traces: [] };
  }
  const names = await firewallNames(view, namespace);
  const targets = targetsOfFamilies(whole.targets, familiesOf(source));
  const checker = config.check ? new PacketChecker(kubeconfigOf(config)) : undefined;
  const traces: TracedDestination[] = [];
  for (const target of targets.length === 0 ? whole.targets : targets) {
    const plan = tracePath(view, source, target, names);
    const packet = await checker?.check(source, target, plan);
    const name = `${target.protocol} ${target.address} port ${target.port}`;
    traces.push({ destination: name, ...plan, ...(packet === undefined ? {} : { packet }) });
  }
  const [first] = traces;
  const isSame = traces.every((each) => reachableOf(each) === (first && reachableOf(first)));
  return {
    proxyOptions,
    reachable: isSame ? first && reachableOf(first) : undefined,
    stages: whole.stages,
    traces,
  };
}

/** The plan's result, and that of a real connection if there was one; undefined if the two differ. */
function reachableOf({ reachable, packet }: TracedDestination): boolean | undefined {
  if (packet === undefined) return reachable;
  return packet.agrees === false ? undefined : packet.outcome === 'connected';
}

function kubeconfigOf({ cluster }: TraceConfig): string | undefined {
  return cluster.kind === 'kubeconfig' ? cluster.path : undefined;
}

/** Reads `pod/shop/cart`, `node/node-1`, `outside` or an address. @throws {DestinationError} */
function parseSource(view: ClusterView, text: string, config: TraceConfig): TraceSource {
  if (text === 'outside') return { kind: 'outside', addresses: config.outsideAddresses };
  const address = parseAddress(text)?.canonical;
  if (address !== undefined) {
    const pod = view.podAt(address);
    if (pod !== undefined) return { kind: 'pod', pod };
    const side = view.sideAt(address);
    const node = side.kind === 'node' ? view.node(side.name) : undefined;
    return node === undefined ? { kind: 'outside', addresses: [address] } : { kind: 'node', node };
  }
  const given = parseDestination(text, config.namespace);
  if (given.port !== undefined) throw new DestinationError(`${JSON.stringify(text)}: a source has no port`);
  if (given.kind === 'pod') {
    const pod = view.pod(given.key);
    if (pod === undefined) throw noPod(view, given.key);
    return { kind: 'pod', pod };
  }
  if (given.kind === 'node') {
    const node = view.node(given.name);
    if (node === undefined) throw new DestinationError(`there is no Node ${given.name}`);
    return { kind: 'node', node };
  }
  throw new DestinationError(
    `${JSON.stringify(text)} is no source: give pod/NAMESPACE/NAME, node/NAME, outside or an address`,
  );
}

function familiesOf(source: TraceSource) {
  const addresses =
    source.kind === 'pod'
      ? addressesOfPod(source.pod)
      : source.kind === 'node'
        ? addressesOfNode(source.node)
        : source.addresses.flatMap((text) => parseAddress(text) ?? []);
  return addresses.map(({ family }) => family);
}

/** The search list that the kubelet gives a Pod; nodes and machines outside do not ask the DNS of the cluster first. */
function searchesOf(source: TraceSource): readonly string[] {
  if (source.kind !== 'pod') return [];
  const node = { nameservers: [], searches: [], options: [] };
  const { text } = resolvConf(source.pod, { servers: ['0.0.0.0'], domain: clusterDomain, node });
  return parseResolvConf(text).searches;
}

function zoneOf({ objects }: ClusterView): Zone {
  const zone = new Zone({ domain: clusterDomain, ttl: 5, pods: 'insecure', service: dnsServiceKey });
  for (const namespace of objects.namespaces) zone.setNamespace(keyOf(namespace), true);
  for (const service of objects.services) zone.setService(keyOf(service), service);
  for (const slice of objects.slices) zone.setSlice(keyOf(slice), slice);
  return zone;
}

async function firewallNames(view: ClusterView, namespace: string): Promise<Map<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (const { to } of view.firewall(namespace)?.rules ?? []) {
    if (to.kind !== 'name') continue;
    const addresses = await addressesOf(to.name);
    if (addresses !== undefined) found.set(to.name, addresses);
  }
  return found;
}

/** As the resolver of this machine has them; undefined where it finds none. */
async function addressesOf(name: string): Promise<readonly string[] | undefined> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    return undefined;
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function reportText({ proxyOptions, reachable, stages, traces }: TraceReport, isWide: boolean): string {
  const lines: (PrintedStage | string)[] = [...stages];
  for (const { destination, stages: own, endpoints, packet } of traces) {
    if (traces.length > 1) lines.push(`${destination}:`);
    pushAll(lines, own);
    for (const { address, port, object = 'endpoint', stages: of, reachable: is } of endpoints) {
      if (endpoints.length > 1) lines.push(`${object} (${address} port ${port}): ${words(is)}`);
      pushAll(lines, isWide ? of : of.filter(({ verdict }) => verdict !== 'pass'));
    }
    if (packet !== undefined) lines.push(packetLine(packet));
  }
  return `${table(lines)}\n${words(reachable)} (proxy: ${proxyOptions.join('; ')})\n`;
}

function words(reachable: boolean | undefined): string {
  return reachable === undefined ? 'cannot tell' : reachable ? 'reachable' : 'not reachable';
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

function matrixText({ pods, reached }: ReachabilityMatrix): string {
  if (pods.length === 0) return 'There are no Pods with addresses.\n';
  const names = pods.map((key) => key.slice(key.indexOf('/') + 1));
  const rows = [
    ['FROM \\ TO', ...names],
    ...names.map((name, index) => [name, ...(reached[index] ?? []).map((is) => (is ? '.' : 'X'))]),
  ];
  return `${columns(rows)}\n. reachable, X not\n`;
}
