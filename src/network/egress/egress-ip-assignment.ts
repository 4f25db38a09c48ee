import { parseAddress, type ParsedAddress } from '../../objects/address.ts';
import type { EgressIPItem } from '../../objects/types/ovn.ts';
import { assignableLabel, type EgressNode, hostingNetwork } from './egress-node.ts';

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
