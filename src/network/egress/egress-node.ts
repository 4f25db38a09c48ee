import { parseAddress, type ParsedAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import type { Node } from '../../objects/types/core.generated.ts';

/** What nodes that may have egress addresses are labelled with; its value does not matter. */
export const assignableLabel = 'k8s.ovn.org/egress-assignable';

/** Where OVN-Kubernetes says which networks a node is in: `{"ipv4":"10.0.0.2/24"}`, and `["10.0.0.2/24","10.1.0.2/24"]`. */
const primaryAnnotation = 'k8s.ovn.org/node-primary-ifaddr';
const networksAnnotation = 'k8s.ovn.org/host-cidrs';

/** What is known of a node by the Lease of its agent that announces. */
export interface EgressNodeAgent {
  /** The agent has not renewed its Lease in time, or has ended and left nothing for its restart: it announces nothing. */
  readonly isGone: boolean;
  /** The networks of the node's interfaces. */
  readonly networks: readonly ParsedCidr[];
}

/** A node as far as egress addresses are concerned. */
export interface EgressNode {
  readonly name: string;
  /** Labelled, ready, in a network that is known, and with no agent that has gone. */
  readonly isCandidate: boolean;
  /** The network of its first interface, of each family. */
  readonly primary: readonly ParsedCidr[];
  /** All other networks. */
  readonly secondary: readonly ParsedCidr[];
  /** Its own addresses, canonical. */
  readonly addresses: ReadonlySet<string>;
}

/**
 * Reads a Node. Annotations that do not parse count as absent.
 *
 * @param agent tells the networks of a node that has no annotation: the primary one is that of its addresses. Undefined:
 *   none has ever run there.
 */
export function egressNodeOf({ metadata, status }: Node, agent?: EgressNodeAgent): EgressNode {
  const { name = '', labels = {}, annotations = {} } = metadata;
  const primary = Object.values(recordOf(annotations[primaryAnnotation]));
  const all = listOf(annotations[networksAnnotation]);
  const own = [
    ...[...primary, ...all].map((text) => text.split('/', 1)[0] ?? ''),
    ...(status.addresses ?? []).map(({ address }) => address),
  ];
  const isReady = (status.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True');
  const addresses = own.flatMap((text) => parseAddress(text) ?? []);
  const networks = agent?.networks ?? [];
  const isOwn = (network: ParsedCidr): boolean => addresses.some((address) => has(network, address));
  const primaryNetworks = primary.length > 0 ? primary.flatMap(networkOf) : networks.filter(isOwn);
  const isPrimary = new Set(primaryNetworks.map(({ canonical }) => canonical));
  const isAssignable = labels[assignableLabel] !== undefined && isReady && agent?.isGone !== true;
  return {
    name,
    isCandidate: isAssignable && primaryNetworks.length > 0,
    primary: primaryNetworks,
    secondary: [...all.flatMap(networkOf), ...(primary.length > 0 ? [] : networks)].filter(
      ({ canonical }) => !isPrimary.has(canonical),
    ),
    addresses: new Set(addresses.map(({ canonical }) => canonical)),
  };
}

/** All of a Node that {@link egressNodeOf} reads. */
export function egressPartsOf({ metadata, status }: Node): unknown {
  const { labels = {}, annotations = {} } = metadata;
  return [
    labels[assignableLabel] !== undefined,
    annotations[primaryAnnotation],
    annotations[networksAnnotation],
    status.addresses,
    (status.conditions ?? []).find(({ type }) => type === 'Ready')?.status,
  ];
}

/** The network of a node that an address is in, by the longest prefix; undefined: it is in none. */
export function hostingNetwork(
  { primary, secondary }: EgressNode,
  address: ParsedAddress,
): 'primary' | 'secondary' | undefined {
  const longest = (networks: readonly ParsedCidr[]): number =>
    networks.reduce((best, each) => (has(each, address) ? Math.max(best, each.prefixLength) : best), -1);
  const [first, other] = [longest(primary), longest(secondary)];
  if (first < 0 && other < 0) return undefined;
  return other > first ? 'secondary' : 'primary';
}

function has({ family, network, prefixLength }: ParsedCidr, address: ParsedAddress): boolean {
  const free = BigInt((family === 'IPv4' ? 32 : 128) - prefixLength);
  return address.family === family && address.value >> free === network >> free;
}

function networkOf(text: string): readonly ParsedCidr[] {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [cidr];
}

function recordOf(text: string | undefined): Readonly<Record<string, string>> {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function listOf(text: string | undefined): readonly string[] {
  const value = parsed(text);
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return undefined;
  }
}
