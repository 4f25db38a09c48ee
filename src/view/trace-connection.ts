import { lookup } from 'node:dns/promises';
import { performance } from 'node:perf_hooks';
import { dnsServiceKey } from '../network/dns/dns-service.ts';
import { parseResolvConf, resolvConf } from '../network/dns/resolv-conf.ts';
import { Zone } from '../network/dns/zone.ts';
import type { Protocol } from '../network/forwarding/forwarding-plan.ts';
import { addressesOfNode, addressesOfPod, type ClusterView } from '../network/path/cluster-view.ts';
import {
  DestinationError,
  type GivenDestination,
  noPod,
  outsideTargets,
  parseDestination,
  podOf,
  type ResolvedDestination,
  resolveDestination,
  targetsOfFamilies,
} from '../network/path/destination.ts';
import { type HttpObjects, parseHttpRequest, planRequest, withBackends } from '../network/path/http.ts';
import type { HttpPlan } from '../network/path/stages.ts';
import { comparePacket, type PacketOutcome, seenBeside } from '../network/path/packet.ts';
import type { CheckedPacket, TracedDestination, TraceReport } from '../network/path/report.ts';
import {
  nodePlanSteps,
  type Trace,
  type TraceDestination,
  type TraceSource,
  tracePath,
} from '../network/path/trace.ts';
import { hopsOf, type SeenConnection } from '../network/path/way.ts';
import { ipFamilies, joinHostPort, parseAddress } from '../objects/address.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import { runInSlices } from '../telemetry/time-slice.ts';
import type { TracedCluster } from './trace-cluster.ts';

const clusterDomain = 'cluster.local';

/** One connection, and how it is traced. */
export interface TracedConnection {
  /** `deploy/shop/cart`, `outside`, an address. */
  readonly source: string;
  readonly destination: string;
  /** Of names without one. */
  readonly namespace: string;
  readonly protocol: Protocol;
  /** The addresses of the machine `outside`; undefined: some that are free. */
  readonly outsideAddresses: readonly string[] | undefined;
  /** Undefined: no packet is sent. */
  readonly checker: ConnectionChecker | undefined;
}

/** Opens real connections. */
export interface ConnectionChecker {
  /** @throws {Error} where the source is at no place that can be entered. */
  check(source: TraceSource, destination: TraceDestination, plan: Trace): Promise<SentConnection>;
}

/** A connection that was tried, beside its plan. */
export interface SentConnection {
  readonly packet: CheckedPacket;
  /** What nodes know of it; undefined: they do not tell. */
  readonly seen: readonly SeenConnection[] | undefined;
}

/** A connection that was tried. */
export interface TriedConnection {
  readonly outcome: PacketOutcome;
  readonly seen?: readonly SeenConnection[];
}

/** Where a connection may be opened from. */
export type PacketPlace =
  | { readonly kind: 'pod'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'outside' };

/** A place that was entered. */
export interface PlaceOfPackets {
  /** @throws {Error} where no connection could be tried. */
  open(address: string, port: number): Promise<TriedConnection>;
  end(): void;
}

/**
 * Opens the connection of a plan from where its source is; where that does not come about against the plan, also to the
 * endpoints themselves.
 */
export function connectionChecker(enter: (place: PacketPlace) => Promise<PlaceOfPackets>): ConnectionChecker {
  return {
    check: async (source, destination, plan) => {
      const place = await enter(placeOf(source));
      try {
        const begun = performance.now();
        const { outcome, seen } = await place.open(destination.address, destination.port);
        const milliseconds = Math.round(performance.now() - begun);
        const isLost = plan.reachable === true && outcome !== 'connected';
        const others = plan.endpoints.filter(({ address }) => address !== destination.address);
        const direct = isLost
          ? await Promise.all(
              others.map(async ({ address, port }) => (await place.open(address, port)).outcome),
            )
          : [];
        return { packet: { ...comparePacket(plan, outcome, direct), milliseconds }, seen };
      } finally {
        place.end();
      }
    },
  };
}

function placeOf(source: TraceSource): PacketPlace {
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

/**
 * The way of a connection.
 *
 * @param http what decides where requests of HTTP go; asked for only where the destination is a URL.
 * @throws {DestinationError} for a source or a destination that is none.
 */
export async function traceConnection(
  { view, proxyOptions }: TracedCluster,
  config: TracedConnection,
  http: () => Promise<HttpObjects>,
): Promise<TraceReport> {
  const request = parseHttpRequest(config.destination);
  if (request !== undefined && config.protocol !== 'TCP')
    throw new DestinationError('HTTP goes by TCP alone');
  if (request !== undefined && config.checker !== undefined)
    throw new DestinationError('--check opens a connection, and sends no request: ask the host with curl');
  const routed = request && planRequest(view, await http(), request);
  const source = parseSource(view, config);
  const namespace = source.kind === 'pod' ? (source.pod.metadata.namespace ?? '') : config.namespace;
  const zone = await runInSlices(zoneSteps(view));
  const { protocol } = config;
  const outsideAddresses = config.outsideAddresses ?? addressesOutside(view);
  const searches = searchesOf(source);
  const resolve = (destination: GivenDestination, isOutside: boolean): ResolvedDestination =>
    resolveDestination(view, zone, destination, protocol, searches, outsideAddresses, isOutside);
  const resolved =
    routed === undefined
      ? resolve(parseDestination(config.destination, namespace), source.kind === 'outside')
      : toRouter(routed, resolve);
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
  const traces: TracedDestination[] = [];
  for (const target of targets.length === 0 ? whole.targets : targets) {
    await runInSlices(nodePlanSteps(view, source, target));
    const plan = withBackends(view, tracePath(view, source, target, names), routed?.backends);
    const sent = await config.checker?.check(source, target, plan);
    const name = `${target.protocol} ${target.address} port ${target.port}`;
    const { stages } = whole;
    const planned = (plan.endpoints.length === 0 ? [undefined] : plan.endpoints).map((path) =>
      hopsOf(view, source, target, stages, plan, path),
    );
    const ends = plan.endpoints.map(({ address, port }) => joinHostPort(address, port));
    const hops = sent?.seen === undefined ? planned : seenBeside(planned, ends, sent.seen);
    traces.push({ destination: name, ...plan, hops, ...(sent === undefined ? {} : { packet: sent.packet }) });
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

/** A host leads to the addresses that its router has outside, from everywhere: the DNS of the cluster does not have it. */
function toRouter(
  { stages, router }: HttpPlan,
  resolve: (destination: GivenDestination, isOutside: boolean) => ResolvedDestination,
): ResolvedDestination {
  if (router === undefined) return { kind: 'none', stages };
  const { port } = router;
  const found = resolve({ kind: 'service', key: keyOf(router.service), port: String(port) }, true);
  return { ...found, stages: [...stages, ...found.stages] };
}

/** The plan's result, and that of a real connection if there was one; undefined if the two differ. */
function reachableOf({ reachable, packet }: TracedDestination): boolean | undefined {
  if (packet === undefined) return reachable;
  return packet.agrees === false ? undefined : packet.outcome === 'connected';
}

/** Reads `cart`, `pod/shop/cart`, `deploy/shop/cart`, `node/node-1`, `outside` or an address. @throws {DestinationError} */
function parseSource(view: ClusterView, { source: text, ...config }: TracedConnection): TraceSource {
  if (text === 'outside') {
    return { kind: 'outside', addresses: config.outsideAddresses ?? addressesOutside(view) };
  }
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
  switch (given.kind) {
    case 'node': {
      const node = view.node(given.name);
      if (node === undefined) throw new DestinationError(`there is no Node ${given.name}`);
      return { kind: 'node', node };
    }
    case 'workload':
      return { kind: 'pod', pod: podOf(view, given.workload) };
    case 'pod':
      return { kind: 'pod', pod: podAtKey(view, given.key) };
    case 'name':
      return { kind: 'pod', pod: podAtKey(view, joinKey(config.namespace, given.text)) };
    default:
      throw new DestinationError(
        `${JSON.stringify(text)} is no source: give pod/NAMESPACE/NAME, deploy/… or another workload, node/NAME, outside or an address`,
      );
  }
}

function podAtKey(view: ClusterView, key: ObjectKey): Pod {
  const pod = view.pod(key);
  if (pod === undefined) throw noPod(view, key);
  return pod;
}

function addressesOutside(view: ClusterView): readonly string[] {
  return ipFamilies.flatMap((family) => view.outsideAddress(family) ?? []);
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

/** Objects that are taken into a zone in one step. */
const eachStep = 200;

/** The DNS of the cluster, in steps. */
function* zoneSteps({ objects }: ClusterView): Generator<undefined, Zone, undefined> {
  const zone = new Zone({ domain: clusterDomain, ttl: 5, pods: 'insecure', service: dnsServiceKey });
  for (const namespace of objects.namespaces) zone.setNamespace(keyOf(namespace), true);
  for (const [index, service] of objects.services.entries()) {
    if (index % eachStep === 0) yield;
    zone.setService(keyOf(service), service);
  }
  for (const [index, slice] of objects.slices.entries()) {
    if (index % eachStep === 0) yield;
    zone.setSlice(keyOf(slice), slice);
  }
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
