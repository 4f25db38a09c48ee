import { addressBits, parseStrictAddress, formatV4 } from '../../objects/address.ts';
import { type PeerRoute, prefixKey, type Peer } from '../bgp/route.ts';
import type { BGPAnnouncement, PoolAnnouncement } from './announcement-plan.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import type { BGPPeer } from '../../objects/types/servicenet.ts';
import { errorMessage } from '../../objects/status.ts';

/** An address that the node announces by BGP. */
export interface BGPAddress {
  /** Canonical. */
  readonly address: string;
  readonly announcement: PoolAnnouncement;
}

/**
 * The routes that a node announces to each of its peers. A route shorter than its addresses exists while one of
 * them does.
 *
 * @param peers their names.
 * @returns by the peer's name, and then by `prefixKey`; every peer is there.
 */
export function bgpRoutes(
  addresses: Iterable<BGPAddress>,
  peers: readonly string[],
): ReadonlyMap<string, ReadonlyMap<string, PeerRoute>> {
  const routes = new Map(peers.map((peer) => [peer, new Map<string, PeerRoute>()]));
  for (const { address, announcement } of addresses) {
    if (announcement.bgp === undefined) continue;
    const route = routeTo(address, announcement.bgp);
    if (route === undefined) continue;
    const key = prefixKey(route.prefix);
    for (const peer of announcement.bgp.peers ?? peers) {
      const ofPeer = routes.get(peer);
      const known = ofPeer?.get(key);
      if (known === undefined || precedes(route, known)) ofPeer?.set(key, route);
    }
  }
  return routes;
}

function routeTo(address: string, bgp: BGPAnnouncement): PeerRoute | undefined {
  const parsed = parseStrictAddress(address);
  if (parsed === undefined) return undefined;
  const { family, value } = parsed;
  const length = bgp.prefixLengths[family];
  const hostBits = BigInt(addressBits(family) - length);
  return {
    prefix: { family, network: (value >> hostBits) << hostBits, length },
    ...{ communities: bgp.communities, largeCommunities: bgp.largeCommunities },
    ...(bgp.localPref === undefined ? {} : { localPref: bgp.localPref }),
  };
}

/** Which of two pools' attributes a shared route has: the same on every node, in any order of the pools. */
function precedes(a: PeerRoute, b: PeerRoute): boolean {
  return a.communities !== b.communities && rank(a) < rank(b);
}

function rank({ localPref, communities, largeCommunities }: PeerRoute): string {
  return JSON.stringify([localPref ?? null, communities, largeCommunities]);
}

/** Why a node opens no session with a BGPPeer that selects it. */
export interface PeerProblem {
  readonly peer: string;
  /** It was stored under another schema. */
  readonly reason: 'InvalidPeer';
  readonly message: string;
}

/** Seconds, for a BGPPeer that sets none. */
const defaultHoldSeconds = 9;

/**
 * Seconds that peers keep the routes of an agent that starts again. Not longer: a router keeps sending to a node that has
 * died together with its agent for as long, where the end of the connection reached it.
 */
const restartSeconds = 30;

/**
 * The sessions that a node is to have.
 *
 * @param forwardingOutlives whether connections are forwarded while the agent does not run; without it there is no
 *   graceful restart.
 */
export function peersOf(
  objects: Iterable<BGPPeer>,
  node: Node,
  forwardingOutlives: boolean,
): { readonly peers: readonly Peer[]; readonly problems: readonly PeerProblem[] } {
  const peers: Peer[] = [];
  const problems: PeerProblem[] = [];
  for (const object of objects) {
    const name = object.metadata.name ?? '';
    const read = readPeer(object, node, forwardingOutlives);
    if (typeof read === 'string') problems.push({ peer: name, reason: 'InvalidPeer', message: read });
    else if (read !== undefined) peers.push(read);
  }
  return { peers: peers.toSorted((a, b) => (a.name < b.name ? -1 : 1)), problems };
}

/** Undefined: not for this node; a text: its problem. */
function readPeer(
  { metadata, spec }: BGPPeer,
  node: Node,
  forwardingOutlives: boolean,
): Peer | string | undefined {
  try {
    const { nodeSelector } = spec;
    const labels = node.metadata.labels ?? {};
    if (nodeSelector !== undefined && !matchesLabels(compileLabelSelector(nodeSelector), labels))
      return undefined;
  } catch (error) {
    return `spec.nodeSelector: ${errorMessage(error)}`;
  }
  const address = parseStrictAddress(spec.peerAddress);
  if (address === undefined) return `spec.peerAddress: "${spec.peerAddress}" is no address`;
  if (address.family === 'IPv6' && address.value >> 118n === 0x3fan)
    return 'spec.peerAddress: a link-local address needs an interface, which a BGPPeer cannot name';
  const holdSeconds = spec.holdTime === undefined ? defaultHoldSeconds : secondsOf(spec.holdTime);
  if (holdSeconds === undefined) return `spec.holdTime: "${spec.holdTime}" is not from 3s to 65535s`;
  const source = spec.sourceAddress === undefined ? undefined : parseStrictAddress(spec.sourceAddress);
  if (spec.sourceAddress !== undefined && source?.family !== address.family)
    return `spec.sourceAddress: "${spec.sourceAddress}" is no ${address.family} address`;
  return {
    ...{ name: metadata.name ?? '', address: address.canonical, port: spec.peerPort ?? 179 },
    ...{ peerAs: spec.peerASN, localAs: spec.myASN, holdSeconds, sourceAddress: source?.canonical },
    routerId: spec.routerID ?? routerIdOf(node),
    restartSeconds: spec.gracefulRestart !== false && forwardingOutlives ? restartSeconds : 0,
  };
}

function secondsOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,5})(s|m|h)$/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const seconds = Number(count) * (unit === 'h' ? 3600 : unit === 'm' ? 60 : 1);
  return seconds >= 3 && seconds <= 0xffff ? seconds : undefined;
}

/** The node's IPv4 address; of a node without one a hash of its name, since the identifier has 32 bits. */
function routerIdOf({ metadata, status }: Node): string {
  for (const { type, address } of status.addresses ?? []) {
    const parsed = type === 'InternalIP' ? parseStrictAddress(address) : undefined;
    if (parsed?.family === 'IPv4') return parsed.canonical;
  }
  let hash = 0x811c9dc5;
  for (const character of metadata.name ?? '')
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return formatV4(hash >>> 0 || 1);
}
