import type { AnnouncementRefusalReason, NotAnnouncedReason } from '../../objects/reasons.ts';
import { addressBits, type IPFamily, parseAddress, type ParsedCidr } from '../../objects/address.ts';
import {
  readLabelSelector,
  type ParsedLabelSelector,
  matchesLabels,
} from '../../objects/selectors/labels.ts';
import type {
  AddressPoolAnnounce,
  AddressPoolBGP,
  AddressPoolLayer2,
} from '../../objects/types/servicenet.ts';
import type { LargeCommunity } from '../bgp/message.ts';
import { parseCommunity, parseLargeCommunity } from '../bgp/route.ts';
import { ownerOf } from './membership.ts';

/** The announcement of a pool's addresses: `spec.announce`, parsed and defaulted. Neither member: not announced. */
export interface PoolAnnouncement {
  readonly layer2: Layer2Announcement | undefined;
  readonly bgp: BGPAnnouncement | undefined;
}

export interface Layer2Announcement {
  /** Names; undefined: interfaces whose subnet contains the address. */
  readonly interfaces: readonly string[] | undefined;
  /** Undefined: all nodes. */
  readonly nodeSelector: ParsedLabelSelector | undefined;
}

export interface BGPAnnouncement {
  /** Names of BGPPeers; undefined: all. */
  readonly peers: readonly string[] | undefined;
  readonly nodeSelector: ParsedLabelSelector | undefined;
  readonly communities: readonly number[];
  readonly largeCommunities: readonly LargeCommunity[];
  /** 0 to 4,294,967,295; undefined: the default of a peer's AS. */
  readonly localPref: number | undefined;
  /** Bits of the routes. */
  readonly prefixLengths: { readonly IPv4: number; readonly IPv6: number };
}

/**
 * Reads `spec.announce` of an AddressPool. What does not parse is named in `problems` and left out; the CRD's schema
 * refuses it before. A selector that does not parse selects no node.
 */
export function readAnnounce(spec: AddressPoolAnnounce | undefined): {
  announcement: PoolAnnouncement;
  problems: string[];
} {
  const problems: string[] = [];
  const announcement: PoolAnnouncement =
    spec === undefined
      ? { layer2: { interfaces: undefined, nodeSelector: undefined }, bgp: undefined }
      : {
          layer2: spec.layer2 === undefined ? undefined : readLayer2(spec.layer2, problems),
          bgp: spec.bgp === undefined ? undefined : readBGP(spec.bgp, problems),
        };
  return { announcement, problems };
}

const consequence = 'no node is selected';

function readLayer2({ interfaces, nodeSelector }: AddressPoolLayer2, problems: string[]): Layer2Announcement {
  return {
    interfaces: interfaces === undefined || interfaces.length === 0 ? undefined : interfaces,
    nodeSelector: readLabelSelector(
      nodeSelector,
      { path: 'spec.announce.layer2.nodeSelector', consequence },
      problems,
    ),
  };
}

function readBGP(spec: AddressPoolBGP, problems: string[]): BGPAnnouncement {
  const communities: number[] = [];
  const largeCommunities: LargeCommunity[] = [];
  for (const [index, text] of (spec.communities ?? []).entries()) {
    const community = parseCommunity(text);
    const large = parseLargeCommunity(text);
    if (community !== undefined) communities.push(community);
    else if (large !== undefined) largeCommunities.push(large);
    else problems.push(`spec.announce.bgp.communities[${index}]: ${JSON.stringify(text)} is no community`);
  }
  return {
    peers: spec.peers === undefined || spec.peers.length === 0 ? undefined : spec.peers,
    nodeSelector: readLabelSelector(
      spec.nodeSelector,
      { path: 'spec.announce.bgp.nodeSelector', consequence },
      problems,
    ),
    ...{ communities, largeCommunities, localPref: spec.localPreference },
    prefixLengths: {
      IPv4: prefixLength('aggregationLength', spec.aggregationLength, addressBits('IPv4'), problems),
      IPv6: prefixLength('aggregationLengthV6', spec.aggregationLengthV6, addressBits('IPv6'), problems),
    },
  };
}

function prefixLength(field: string, value: number | undefined, bits: number, problems: string[]): number {
  if (value === undefined) return bits;
  if (Number.isInteger(value) && value >= 1 && value <= bits) return value;
  problems.push(`spec.announce.bgp.${field}: ${value} is not from 1 to ${bits}; ${bits} is used`);
  return bits;
}

/** An address that a node does not announce, with the reason. */
export interface AnnouncementRefusal {
  /** Canonical. */
  readonly address: string;
  readonly reason: AnnouncementRefusalReason;
  /** The holder: a MAC address, or the name of an interface; "" if unknown. */
  readonly holder: string;
}

/** A node with an agent that announces, by its Node object and its own Lease. */
export interface Announcer {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly isReady: boolean;
  /** `spec.unschedulable`: being drained. Others announce in its place where they can. */
  readonly isCordoned: boolean;
  /** Whether its Lease is renewed in time, by the clock of this process. */
  readonly isAlive: boolean;
  readonly interfaces: readonly AnnouncerInterface[];
  /** Names of BGPPeers with which a session is established. */
  readonly sessions: readonly string[];
  /** Addresses that it does not announce by layer 2 although it could. */
  readonly refused: readonly AnnouncementRefusal[];
}

/** An interface of a node that has a link, and the subnets that it is in. */
export interface AnnouncerInterface {
  readonly name: string;
  readonly subnets: readonly ParsedCidr[];
  /** The MAC address that answers for announced addresses, lower case. */
  readonly mac: string;
  /** The interface's own MAC address, which may be the same. */
  readonly ownMac: string;
}

/** An address that Services have in their status. */
export interface AssignedAddress {
  /** Canonical. */
  readonly address: string;
  readonly announcement: PoolAnnouncement;
  /**
   * Nodes with a ready endpoint, for `externalTrafficPolicy: Local`; undefined: it does not matter. Where Services share
   * the address, those that have an endpoint of each.
   */
  readonly localNodes: ReadonlySet<string> | undefined;
  /**
   * Of an egress address: the node of its EgressIP. The label that excludes a node from load balancing does not
   * apply there.
   */
  readonly egressNode?: string;
}

/** The nodes that announce an address. */
export interface AnnouncementPlan {
  readonly layer2: { readonly node: string; readonly interfaces: readonly string[] } | undefined;
  /** Nodes that announce it to their peers; the router spreads connections over them (ECMP). Sorted. */
  readonly bgp: readonly string[];
  /** Why no node announces it: the reason of the node that comes nearest; undefined: it is announced. */
  readonly reason: NotAnnouncedReason | undefined;
}

/** kube-proxy and cloud providers read the same label; its value does not matter. */
const excludeLabel = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** From the one that is farthest from announcing to the nearest. */
const order: readonly NotAnnouncedReason[] = [
  ...([
    'AnnouncingOff',
    'NoAgent',
    'LeaseExpired',
    'NodeNotReady',
    'NodeExcluded',
    'NodeNotSelected',
  ] as const),
  ...(['NoInterface', 'NoSession', 'NoLocalEndpoint'] as const),
  ...(['GatewayAddress', 'NodeAddress', 'OtherAnnouncer', 'AddressConflict'] as const),
];

/**
 * Which nodes announce an address: by layer 2 the one that {@link ownerOf} picks among those that can, by BGP all
 * that can. A function of objects that every agent sees, so that agents agree without asking each other.
 */
export function planAnnouncement(
  assigned: AssignedAddress,
  announcers: readonly Announcer[],
): AnnouncementPlan {
  const { address, announcement } = assigned;
  const reasons: NotAnnouncedReason[] = [announcers.length === 0 ? 'NoAgent' : 'AnnouncingOff'];
  const able = (method: 'layer2' | 'bgp'): readonly Announcer[] => {
    if (announcement[method] === undefined) return [];
    return announcers.filter((announcer) => {
      const reason = whyNot(assigned, announcer, method);
      if (reason !== undefined) reasons.push(reason);
      return reason === undefined;
    });
  };
  const onLayer2 = notCordoned(able('layer2'));
  const byBGP = notCordoned(able('bgp')).map(({ node }) => node);
  const owner = ownerOf(
    address,
    onLayer2.map(({ node }) => node),
  );
  const announcer = onLayer2.find(({ node }) => node === owner);
  const isAnnounced = announcer !== undefined || byBGP.length > 0;
  const isOff = announcement.layer2 === undefined && announcement.bgp === undefined;
  return {
    layer2:
      announcer === undefined
        ? undefined
        : { node: announcer.node, interfaces: interfacesFor(address, announcement, announcer) },
    bgp: byBGP.toSorted(),
    reason: isAnnounced
      ? undefined
      : isOff
        ? 'AnnouncingOff'
        : order.findLast((reason) => reasons.includes(reason)),
  };
}

/** The nodes that are not being drained; all if every one is. */
function notCordoned(announcers: readonly Announcer[]): readonly Announcer[] {
  const others = announcers.filter(({ isCordoned }) => !isCordoned);
  return others.length > 0 ? others : announcers;
}

/** Why a node does not announce an address in one of the ways; undefined: it can. */
function whyNot(
  { address, announcement, localNodes, egressNode }: AssignedAddress,
  announcer: Announcer,
  method: 'layer2' | 'bgp',
): NotAnnouncedReason | undefined {
  const chosen = announcement[method];
  if (chosen === undefined) return 'AnnouncingOff';
  if (!announcer.isAlive) return 'LeaseExpired';
  if (!announcer.isReady) return 'NodeNotReady';
  if (egressNode === undefined && Object.hasOwn(announcer.labels, excludeLabel)) return 'NodeExcluded';
  if (egressNode !== undefined && egressNode !== announcer.node) return 'NodeNotSelected';
  if (!selects(chosen.nodeSelector, announcer)) return 'NodeNotSelected';
  if (method === 'layer2' && interfacesFor(address, announcement, announcer).length === 0)
    return 'NoInterface';
  if (method === 'bgp' && !hasSession(announcement.bgp?.peers, announcer)) return 'NoSession';
  if (localNodes?.has(announcer.node) === false) return 'NoLocalEndpoint';
  if (method === 'bgp') return undefined;
  return announcer.refused.find((refusal) => refusal.address === address)?.reason;
}

/** Names of a node's interfaces on which an address is announced by layer 2. */
function interfacesFor(
  address: string,
  { layer2 }: PoolAnnouncement,
  { interfaces }: Announcer,
): readonly string[] {
  const named = layer2?.interfaces;
  return interfaces
    .filter(({ name, subnets }) => (named === undefined ? isIn(address, subnets) : named.includes(name)))
    .map(({ name }) => name);
}

function isIn(address: string, subnets: readonly ParsedCidr[]): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) return false;
  return subnets.some((subnet) => {
    if (subnet.family !== parsed.family) return false;
    const hostBits = BigInt(bitsOf[parsed.family] - subnet.prefixLength);
    return parsed.value >> hostBits === subnet.network >> hostBits;
  });
}

const bitsOf: Readonly<Record<IPFamily, number>> = { IPv4: 32, IPv6: 128 };

function selects(selector: ParsedLabelSelector | undefined, { labels }: Announcer): boolean {
  return selector === undefined || matchesLabels(selector, labels);
}

function hasSession(peers: readonly string[] | undefined, { sessions }: Announcer): boolean {
  return peers === undefined ? sessions.length > 0 : peers.some((peer) => sessions.includes(peer));
}

/** Why no node announces an address, in words. */
export const notAnnounced: Readonly<Record<NotAnnouncedReason, string>> = {
  AnnouncingOff: 'spec.announce of its pool names neither layer2 nor bgp',
  NoAgent: 'no node runs servicenet node --features=announce',
  LeaseExpired: 'no agent renews its Lease',
  NodeNotReady: 'no node that could announce it is ready',
  NodeExcluded: 'nodes have the label node.kubernetes.io/exclude-from-external-load-balancers',
  NodeNotSelected: 'the nodeSelector of its pool selects no node that could announce it',
  NoInterface:
    'no node has an interface with a link of the names in its pool, or in a subnet that contains it',
  NoSession: 'no node has a session with a BGP peer of its pool',
  NoLocalEndpoint: 'externalTrafficPolicy is Local, and no node that could announce it has a ready endpoint',
  GatewayAddress: "it is the address of the nodes' router: take it out of the pool",
  NodeAddress: 'it is an address of a node: take it out of the pool',
  OtherAnnouncer: 'another announcer on a node of this cluster has it: MetalLB, kube-vip, Cilium',
  AddressConflict: 'another machine answers for it',
};

/**
 * The node that reports that it announces an address by layer 2: the planned one, or during a move the former one.
 *
 * @param reports of agents that are alive, by node.
 */
export function announcerOnLayer2(
  address: string,
  { layer2 }: AnnouncementPlan,
  reports: ReadonlyMap<string, { readonly announced: readonly string[] }>,
): string | undefined {
  if (layer2 === undefined) return undefined;
  const has = (node: string): boolean => reports.get(node)?.announced.includes(address) === true;
  return has(layer2.node) ? layer2.node : [...reports.keys()].toSorted().find(has);
}
