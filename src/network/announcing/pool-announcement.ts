import { addressBits } from '../../objects/address.ts';
import { readLabelSelector, type ParsedLabelSelector } from '../../objects/labels/labels.ts';
import type {
  AddressPoolAnnounce,
  AddressPoolBGP,
  AddressPoolLayer2,
} from '../../objects/types/servicenet.ts';
import type { LargeCommunity } from '../bgp/message.ts';
import { parseCommunity, parseLargeCommunity } from '../bgp/route.ts';

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
