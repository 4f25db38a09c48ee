import { isNodeReady } from '../../objects/pods.ts';
import { parseAddress, type ParsedAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { at, numberAt, textAt } from '../../objects/json.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { EgressIPItem } from '../../objects/types/openshift.ts';

/** The label of nodes that may have egress addresses; its value does not matter. */
export const assignableLabel = 'k8s.ovn.org/egress-assignable';

/**
 * OVN-Kubernetes' annotations with the networks of a node: `{"ipv4":"10.0.0.2/24"}`, and
 * `["10.0.0.2/24","10.1.0.2/24"]`.
 */
const primaryAnnotation = 'k8s.ovn.org/node-primary-ifaddr';
const networksAnnotation = 'k8s.ovn.org/host-cidrs';

/**
 * cloud-network-config-controller's annotation with the capacity of a cloud's machine:
 * `[{"interface":"eni-1","ifaddr":{"ipv4":"10.0.0.0/24"},"capacity":{"ipv4":14,"ipv6":15}}]`. The first entry
 * counts.
 */
const cloudAnnotation = 'cloud.network.openshift.io/egress-ipconfig';

/** Egress addresses that a machine may have; infinite: as many as one likes. */
export interface EgressCapacity {
  readonly total: number;
  readonly IPv4: number;
  readonly IPv6: number;
}

/** The facts about a node from the Lease of its agent that announces. */
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
  readonly capacity: EgressCapacity;
}

/** Whether a Node is a machine of a cloud: its egress addresses are the cloud's to give. */
export function isInCloud({ metadata }: Node): boolean {
  return metadata.annotations?.[cloudAnnotation] !== undefined;
}

/**
 * Reads a Node. Annotations that do not parse count as absent.
 *
 * @param agent reports the networks of a node without an annotation: the primary one is that of its addresses.
 *   Undefined: no agent has run there.
 */
export function egressNodeOf(node: Node, agent?: EgressNodeAgent): EgressNode {
  const { metadata, status } = node;
  const { name = '', labels = {}, annotations = {} } = metadata;
  const machines = parsed(annotations[cloudAnnotation]);
  const cloud: unknown = Array.isArray(machines) ? machines[0] : undefined;
  const ofCloud = [textAt(cloud, 'ifaddr', 'ipv4'), textAt(cloud, 'ifaddr', 'ipv6')].filter(
    (text) => text !== '',
  );
  const primary = cloud === undefined ? primaryOf(annotations[primaryAnnotation]) : ofCloud;
  const all = cloud === undefined ? listOf(annotations[networksAnnotation]) : [];
  const own = [
    ...[...primary, ...all].map((text) => text.split('/', 1)[0] ?? ''),
    ...(status.addresses ?? []).map(({ address }) => address),
  ];
  const addresses = own.flatMap((text) => parseAddress(text) ?? []);
  const networks = agent?.networks ?? [];
  const isOwn = (network: ParsedCidr): boolean => addresses.some((address) => cidrContains(network, address));
  const primaryNetworks = primary.length > 0 ? primary.flatMap(networkOf) : networks.filter(isOwn);
  const isPrimary = new Set(primaryNetworks.map(({ canonical }) => canonical));
  const isAssignable = labels[assignableLabel] !== undefined && isNodeReady(node) && agent?.isGone !== true;
  return {
    name,
    isCandidate: isAssignable && primaryNetworks.length > 0,
    primary: primaryNetworks,
    secondary: [...all.flatMap(networkOf), ...(primary.length > 0 ? [] : networks)].filter(
      ({ canonical }) => !isPrimary.has(canonical),
    ),
    addresses: new Set(addresses.map(({ canonical }) => canonical)),
    capacity: capacityOf(at(cloud, 'capacity')),
  };
}

/** The addresses of an annotation; none if one cannot be read. "" is a family without an address. */
function primaryOf(annotation: string | undefined): readonly string[] {
  const given = Object.values(recordOf(annotation)).filter((text) => text !== '');
  return given.every((text) => parseCidr(text) !== undefined) ? given : [];
}

/** A figure that is not there means that there is no limit. */
function capacityOf(given: unknown): EgressCapacity {
  const figure = (name: string): number =>
    at(given, name) === undefined ? Number.POSITIVE_INFINITY : numberAt(given, name);
  return { total: figure('ip'), IPv4: figure('ipv4'), IPv6: figure('ipv6') };
}

/** All of a Node that {@link egressNodeOf} reads. */
export function egressPartsOf({ metadata, status }: Node): unknown {
  const { labels = {}, annotations = {} } = metadata;
  return [
    labels[assignableLabel] !== undefined,
    annotations[primaryAnnotation],
    annotations[networksAnnotation],
    annotations[cloudAnnotation],
    status.addresses,
    (status.conditions ?? []).find(({ type }) => type === 'Ready')?.status,
  ];
}

/** The network of a node that an address is in, by the longest prefix; undefined: it is in none. */
function hostingNetwork(
  { primary, secondary }: EgressNode,
  address: ParsedAddress,
): 'primary' | 'secondary' | undefined {
  const longest = (networks: readonly ParsedCidr[]): number =>
    networks.reduce(
      (best, each) => (cidrContains(each, address) ? Math.max(best, each.prefixLength) : best),
      -1,
    );
  const [first, other] = [longest(primary), longest(secondary)];
  if (first < 0 && other < 0) return undefined;
  return other > first ? 'secondary' : 'primary';
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

/** The node of an egress address. */
export interface EgressAllocation {
  /** The name of the EgressIP. */
  readonly object: string;
  readonly node: string;
}

/** A Warning on an EgressIP. */
export interface EgressIPEvent {
  readonly reason:
    | 'InvalidEgressIP'
    | 'EgressIPConflict'
    | 'UnsupportedRequest'
    | 'NoMatchingNodeFound'
    | 'UnassignedRequest';
  readonly message: string;
}

/** The result of one pass over an EgressIP. */
export interface EgressIPAssignment {
  /** The items of its new status; undefined: it stays. */
  readonly items: readonly EgressIPItem[] | undefined;
  readonly events: readonly EgressIPEvent[];
}

/**
 * Assigns the addresses of an EgressIP to nodes (ovn-kubernetes
 * `go-controller/pkg/clustermanager/egressip_controller.go`). Valid assignments stay. Where that project picks at
 * random, this takes the addresses in the order of the spec, and of nodes with as many allocations the first by
 * name. A pass that removes items adds none but for the same addresses; others follow in the next pass.
 *
 * @param nodes by name; all of the cluster.
 * @param allocations by canonical address: of all EgressIPs, this one's too.
 */
export function assignEgressIPs(
  name: string,
  egressIPs: readonly string[],
  items: readonly EgressIPItem[],
  nodes: ReadonlyMap<string, EgressNode>,
  allocations: ReadonlyMap<string, EgressAllocation>,
): EgressIPAssignment {
  const wanted = new Map<string, ParsedAddress>();
  for (const text of egressIPs) {
    const address = parseAddress(text);
    if (address === undefined) {
      const message = `egress IP: ${text} for object EgressIP: ${name} is not a valid IP address`;
      return { items: undefined, events: [{ reason: 'InvalidEgressIP', message }] };
    }
    wanted.set(address.canonical, address);
  }
  const kept = validItems(items, wanted, nodes);
  const has = new Set(kept.map(({ egressIP }) => egressIP));
  const removed = new Set(items.flatMap(({ egressIP }) => canonical(egressIP)).filter((ip) => !has.has(ip)));
  const isRemoving = kept.length < items.length;
  const missing = [...wanted.keys()].filter((ip) => !has.has(ip) && (!isRemoving || removed.has(ip)));
  const { added, events } = place(name, missing, wanted, kept, nodes, allocations);
  return { items: [...kept, ...added], events };
}

/** The items that stay, with their addresses as they are compared. */
function validItems(
  items: readonly EgressIPItem[],
  wanted: ReadonlyMap<string, ParsedAddress>,
  nodes: ReadonlyMap<string, EgressNode>,
): readonly EgressIPItem[] {
  const onNode = Map.groupBy(items, ({ node }) => node);
  return items.flatMap(({ egressIP, node: nodeName }) => {
    const address = parseAddress(egressIP);
    const node = nodes.get(nodeName);
    const isValid =
      address !== undefined &&
      wanted.has(address.canonical) &&
      node?.isCandidate === true &&
      onNode.get(nodeName)?.length === 1 &&
      hostingNetwork(node, address) !== undefined;
    return isValid ? [{ egressIP: address.canonical, node: nodeName }] : [];
  });
}

function place(
  name: string,
  missing: readonly string[],
  wanted: ReadonlyMap<string, ParsedAddress>,
  kept: readonly EgressIPItem[],
  nodes: ReadonlyMap<string, EgressNode>,
  allocations: ReadonlyMap<string, EgressAllocation>,
): { readonly added: readonly EgressIPItem[]; readonly events: readonly EgressIPEvent[] } {
  const events: EgressIPEvent[] = [];
  if (missing.length === 0) return { added: [], events };
  const staying = [...allocations].filter(
    ([ip, { object }]) => object !== name || kept.some(({ egressIP }) => egressIP === ip),
  );
  const counts = Map.groupBy(staying, ([, { node }]) => node);
  const count = ({ name: node }: EgressNode): number => counts.get(node)?.length ?? 0;
  let candidates = [...nodes.values()]
    .filter(({ isCandidate }) => isCandidate)
    .sort((a, b) => count(a) - count(b) || (a.name < b.name ? -1 : 1));
  if (candidates.length === 0) {
    const message = `no assignable nodes for EgressIP: ${name}, please tag at least one node with label: ${assignableLabel}`;
    return { added: [], events: [{ reason: 'NoMatchingNodeFound', message }] };
  }
  const added: EgressIPItem[] = [];
  for (const ip of missing) {
    const address = wanted.get(ip);
    if (address === undefined) continue;
    const host = [...nodes.values()].find(({ addresses }) => addresses.has(ip));
    if (host !== undefined) {
      const message = `Egress IP ${name} with IP ${ip} is conflicting with a host (${host.name}) IP address and will not be assigned`;
      events.push({ reason: 'EgressIPConflict', message });
      break;
    }
    const holder = allocations.get(ip);
    if (holder !== undefined && holder.object !== name) {
      const message = `IP: ${ip} for EgressIP: ${name} is already allocated for EgressIP: ${holder.object} on ${holder.node}`;
      events.push({ reason: 'UnsupportedRequest', message });
      break;
    }
    const onSecondary = candidates.filter((node) => hostingNetwork(node, address) === 'secondary');
    // It counts for the addresses that follow, too.
    if (onSecondary.length > 0) candidates = onSecondary;
    const taken = new Set([...kept, ...added].map(({ node }) => node));
    const node = candidates.find(
      (each) =>
        !taken.has(each.name) &&
        hostingNetwork(each, address) !== undefined &&
        hasRoom(each, address, staying, added),
    );
    if (node !== undefined) added.push({ egressIP: ip, node: node.name });
  }
  if (kept.length + added.length === 0) {
    const message = `no matching nodes found, which can host any of the egress IPs: ${missing.join(', ')} for object EgressIP: ${name}`;
    events.push({ reason: 'NoMatchingNodeFound', message });
  } else if (added.length < missing.length) {
    const message = `not all egress IPs for EgressIP: ${name} could be assigned, please tag more nodes`;
    events.push({ reason: 'UnassignedRequest', message });
  }
  return { added, events };
}

/** Whether a node may have one more address, in all and of the family. */
function hasRoom(
  { name, capacity }: EgressNode,
  { family }: ParsedAddress,
  staying: readonly (readonly [string, EgressAllocation])[],
  added: readonly EgressIPItem[],
): boolean {
  const has = [
    ...staying.flatMap(([ip, { node }]) => (node === name ? [ip] : [])),
    ...added.flatMap(({ egressIP, node }) => (node === name ? [egressIP] : [])),
  ];
  const ofFamily = has.filter((ip) => parseAddress(ip)?.family === family);
  return has.length < capacity.total && ofFamily.length < capacity[family];
}

function canonical(text: string): readonly string[] {
  const address = parseAddress(text);
  return address === undefined ? [] : [address.canonical];
}
