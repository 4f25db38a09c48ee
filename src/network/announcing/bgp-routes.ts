import { addressBits, parseStrictAddress } from '../../objects/address.ts';
import type { PeerRoute } from '../bgp/peer.ts';
import { prefixKey } from '../bgp/route.ts';
import type { BGPAnnouncement, PoolAnnouncement } from './pool-announcement.ts';

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
