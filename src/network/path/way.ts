import { joinHostPort, parseAddress } from '../../objects/address.ts';
import { pushAll } from '../../objects/lists.ts';
import { keyOf } from '../../objects/meta.ts';
import { addressesOfNode, addressesOfPod, type ClusterView, ofFamily } from './cluster-view.ts';
import type { Stage, StageName } from './stages.ts';
import type { EndpointPath, Trace, TraceDestination, TraceSource } from './trace.ts';

/** The way of a packet as places: what each decides, and the packet's addresses as it leaves. */

export interface Hop {
  /** `Pod shop/cart-1`, `node node-1`, `outside` or an address. */
  readonly at: string;
  readonly stages: readonly Stage[];
  /** Absent where the way ends. */
  readonly sends?: SentPacket;
  /** Of a node: what it has seen of a real packet. Absent: none was sent, or the kernel has forgotten it. */
  readonly seen?: SeenHop;
}

export interface SentPacket {
  readonly source: string;
  /** With its port. */
  readonly destination: string;
  /** What this place has changed. */
  readonly changed: readonly ('destination' | 'source')[];
}

/** The addresses and ports of a packet: `10.244.0.39:59434`. */
export interface AddressPair {
  readonly source: string;
  readonly destination: string;
}

/** What the kernel of one node knows of a connection. */
export interface SeenConnection {
  readonly node: string;
  /** Its first packet as it came. */
  readonly received: AddressPair;
  /** And as it left. */
  readonly sent: AddressPair;
}

/** What a node has seen of the packet, beside what was planned there. */
export interface SeenHop {
  /** Absent: it has not seen it pass. */
  readonly packet?: SeenConnection;
  /** Whether that is as planned. */
  readonly agrees: boolean;
  /** A sentence without a full stop. */
  readonly message: string;
}

/** Of a packet from outside that several nodes lead on in the same way. */
export const anyNode = 'any node';

/** Stages that the source's node decides, those of the node that translates, and those of the endpoint's node. */
const placeOf: Readonly<Record<StageName, 'source' | 'sending' | 'translating' | 'receiving' | 'endpoint'>> =
  {
    dns: 'source',
    router: 'source',
    announcement: 'source',
    service: 'translating',
    'egress NetworkPolicy': 'sending',
    EgressFirewall: 'sending',
    EgressIP: 'sending',
    EgressQoS: 'sending',
    'ingress NetworkPolicy': 'receiving',
    'target port': 'endpoint',
  };

/**
 * The places of one way, to where it ends.
 *
 * @param before stages before those of {@link tracePath}.
 * @param path one of those of the trace; undefined where it has none.
 */
export function hopsOf(
  view: ClusterView,
  source: TraceSource,
  destination: TraceDestination,
  before: readonly Stage[],
  trace: Trace,
  path: EndpointPath | undefined,
): readonly Hop[] {
  const family = parseAddress(destination.address)?.family ?? 'IPv4';
  const { name, node, address = '' } = senderOf(source, family);
  const isTranslated =
    path !== undefined && (path.address !== destination.address || path.port !== destination.port);
  const translating = path?.via ?? node ?? (isTranslated ? anyNode : undefined);
  const receiving = path === undefined ? undefined : view.nodeNameAt(path.address);
  const names = {
    source: name,
    sending: node,
    translating,
    receiving: receiving === translating ? undefined : receiving,
    endpoint: path === undefined ? undefined : (path.object ?? path.address),
  };
  const places: { at: string; stages: Stage[]; hasTranslated: boolean }[] = [];
  const stages = [...before, ...trace.stages, ...(path?.stages ?? [])];
  let pending: Stage[] = [];
  for (const place of ['source', 'sending', 'translating', 'receiving', 'endpoint'] as const) {
    const own = names[place];
    const isNode = place !== 'source' && place !== 'endpoint' && own !== anyNode;
    const at = isNode && own !== undefined ? `node ${own}` : own;
    const decided = stages.filter(({ stage }) => placeOf[stage] === place);
    // What a node decides about its own Pod is decided where the packet arrives.
    if (at === undefined) {
      pushAll(pending, decided);
      continue;
    }
    const last = places.at(-1);
    const here = last?.at === at ? last : { at, stages: [], hasTranslated: false };
    if (here !== last) places.push(here);
    here.stages = stages.filter((stage) => [...here.stages, ...pending, ...decided].includes(stage));
    here.hasTranslated ||= place === 'translating' || last?.hasTranslated === true;
    pending = [];
  }
  const last = places.at(-1);
  if (last !== undefined) pushAll(last.stages, pending);
  const end = places.findIndex(({ stages }) => stages.some(({ verdict }) => verdict === 'deny'));
  const passed = end === -1 ? places : places.slice(0, end + 1);
  const asked = { source: address, destination: joinHostPort(destination.address, destination.port) };
  const found =
    path === undefined ? asked : { source: path.seenAs, destination: joinHostPort(path.address, path.port) };
  let packet = asked;
  return passed.map(({ at, stages, hasTranslated: isBehind }, index) => {
    if (index === passed.length - 1) return { at, stages };
    const next = isBehind ? found : asked;
    const changed = (['destination', 'source'] as const).filter((each) => next[each] !== packet[each]);
    packet = next;
    return { at, stages, sends: { ...next, changed } };
  });
}

function senderOf(source: TraceSource, family: 'IPv4' | 'IPv6') {
  switch (source.kind) {
    case 'pod': {
      const { pod } = source;
      const address = ofFamily(addressesOfPod(pod), family);
      return { name: `Pod ${keyOf(pod)}`, node: pod.spec.nodeName, address };
    }
    case 'node': {
      const { name = '' } = source.node.metadata;
      return { name: `node ${name}`, node: name, address: ofFamily(addressesOfNode(source.node), family) };
    }
    case 'outside': {
      const address = source.addresses.find((text) => parseAddress(text)?.family === family);
      return { name: 'outside', node: undefined, address };
    }
  }
}
