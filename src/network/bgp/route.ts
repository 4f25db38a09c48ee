import type { IPFamily } from '../../objects/address.ts';
import type { LargeCommunity, Prefix } from './message.ts';

/** A route that is announced to a peer. */
export interface BGPRoute {
  readonly prefix: Prefix;
  /** Canonical text, of the prefix's family: the node's own address there. */
  readonly nextHop: string;
  /** 0 to 4,294,967,295; sent to peers of the same AS only. Default 100. */
  readonly localPref?: number;
  /** Each 32 bits. */
  readonly communities: readonly number[];
  readonly largeCommunities: readonly LargeCommunity[];
}

/** Unique among prefixes. */
export function prefixKey({ family, network, length }: Prefix): string {
  return `${family === 'IPv4' ? '4' : '6'}:${network}/${length}`;
}

/** The key of the attributes that all routes of an UPDATE share. */
export function attributesKey({
  prefix,
  nextHop,
  localPref,
  communities,
  largeCommunities,
}: BGPRoute): string {
  return JSON.stringify([prefix.family, nextHop, localPref ?? null, communities, largeCommunities]);
}

/** The updates by which a peer comes from the routes `before` to `after`; both by {@link prefixKey}. */
export interface RouteChanges {
  readonly withdrawn: readonly Prefix[];
  /** New ones, and those that changed: a route replaces the former one of its prefix (RFC 4271 §3.1). */
  readonly announced: readonly BGPRoute[];
}

export function routeChanges(
  before: ReadonlyMap<string, BGPRoute>,
  after: ReadonlyMap<string, BGPRoute>,
): RouteChanges {
  const withdrawn: Prefix[] = [];
  const announced: BGPRoute[] = [];
  for (const [key, { prefix }] of before) if (!after.has(key)) withdrawn.push(prefix);
  for (const [key, route] of after) {
    const known = before.get(key);
    if (known === undefined || !isSame(known, route)) announced.push(route);
  }
  return { withdrawn, announced };
}

/** Whether two routes to one network are the same. Those of a pool share their lists. */
function isSame(a: BGPRoute, b: BGPRoute): boolean {
  if (a.nextHop !== b.nextHop || a.localPref !== b.localPref) return false;
  const shareLists = a.communities === b.communities && a.largeCommunities === b.largeCommunities;
  return shareLists || attributesKey(a) === attributesKey(b);
}

/** Those of some families. */
export function changesOfFamilies(
  { withdrawn, announced }: RouteChanges,
  families: readonly IPFamily[],
): RouteChanges {
  return {
    withdrawn: withdrawn.filter(({ family }) => families.includes(family)),
    announced: announced.filter(({ prefix }) => families.includes(prefix.family)),
  };
}

/** The names of well-known communities (RFC 1997, RFC 8326, RFC 7999). */
const wellKnown: Readonly<Record<string, number>> = {
  'graceful-shutdown': 0xffff_0000,
  blackhole: 0xffff_029a,
  'no-export': 0xffff_ff01,
  'no-advertise': 0xffff_ff02,
  'no-export-subconfed': 0xffff_ff03,
  'no-peer': 0xffff_ff04,
};

/** A community from `64512:100` or a well-known name; undefined for anything else. */
export function parseCommunity(text: string): number | undefined {
  const known = wellKnown[text];
  if (known !== undefined) return known;
  const [, as = '', value = ''] = /^(\d{1,5}):(\d{1,5})$/.exec(text) ?? [];
  if (as === '' || Number(as) > 0xffff || Number(value) > 0xffff) return undefined;
  return Number(as) * 0x1_0000 + Number(value);
}

/** A large community from `64512:1:2`; undefined for anything else. */
export function parseLargeCommunity(text: string): LargeCommunity | undefined {
  const parts = /^(\d{1,10}):(\d{1,10}):(\d{1,10})$/.exec(text)?.slice(1).map(Number) ?? [];
  const [global, first, second] = parts;
  if (global === undefined || first === undefined || second === undefined) return undefined;
  return parts.every((part) => part <= 0xffff_ffff) ? [global, first, second] : undefined;
}

/** A router to which a node announces routes, with the settings of the session. */
export interface Peer {
  /** Of the BGPPeer. */
  readonly name: string;
  /** IPv4 or IPv6, canonical; not link-local. */
  readonly address: string;
  /** 1 to 65,535; usually 179. */
  readonly port: number;
  readonly peerAs: number;
  readonly localAs: number;
  /** An IPv4 address: the BGP identifier of the node. */
  readonly routerId: string;
  /** The node's address that connections come from; undefined: the kernel chooses by its routes. */
  readonly sourceAddress: string | undefined;
  /** Seconds, 3 to 65,535; the peer may ask for less. */
  readonly holdSeconds: number;
  /** Seconds that the peer keeps routes for when the agent restarts; 0: not at all. At most 4,095. */
  readonly restartSeconds: number;
}

/** A route before the session exists, which sets the next hop. */
export type PeerRoute = Omit<BGPRoute, 'nextHop'>;
