/** The canonical layout of Endpoints subsets (pkg/api/v1/endpoints, `util.go`). Pure. */
import type { EndpointAddress, EndpointPort, EndpointSubset } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { endpointPortsInOrder, subsetsInOrder } from '../hash-order.ts';
import { endpointPortKey } from '../target-port.ts';

/** One address under one port; without a port for headless Services that have none. */
export interface Offer {
  address: EndpointAddress;
  port: EndpointPort | undefined;
  ready: boolean;
}

interface Member {
  address: EndpointAddress;
  ready: boolean;
}

/**
 * Groups offers so that every set of addresses appears once, with all the ports that exactly this set offers. An
 * address that is both ready and not ready under one port is not ready; of equal addresses with different other fields
 * the first is used, under every port. Addresses are ordered by their text, then by the uid of their target; ports and
 * subsets by hash. Readers must not rely on that order, and {@link sameSubsets} does not.
 */
export function repack(offers: Iterable<Offer>): EndpointSubset[] {
  const byPort = new Map<string, { port: EndpointPort | undefined; members: Map<string, Member> }>();
  const addresses = new Map<string, EndpointAddress>();
  for (const { address, port, ready } of offers) {
    const key = port === undefined ? '' : endpointPortKey(port);
    let group = byPort.get(key);
    if (group === undefined) {
      group = { port, members: new Map() };
      byPort.set(key, group);
    }
    const identity = addressKey(address);
    const first = addresses.get(identity) ?? address;
    if (first === address) addresses.set(identity, address);
    const known = group.members.get(identity);
    if (known === undefined) group.members.set(identity, { address: first, ready });
    else known.ready &&= ready;
  }

  const bySet = new Map<string, { ports: EndpointPort[]; members: Map<string, Member> }>();
  for (const portGroup of byPort.values()) {
    const identity = byPort.size === 1 ? '' : membersKey(portGroup.members);
    const same = bySet.get(identity);
    const ports = portGroup.port === undefined ? [] : [portGroup.port];
    if (same === undefined) bySet.set(identity, { ports, members: portGroup.members });
    else pushAll(same.ports, ports);
  }
  return subsetsInOrder([...bySet.values()].map(({ ports, members }) => toSubset(ports, members)));
}

function membersKey(members: ReadonlyMap<string, Member>): string {
  return [...members]
    .map(([key, member]) => `${key} ${member.ready ? '+' : '-'}`)
    .sort()
    .join('\n');
}

function toSubset(ports: readonly EndpointPort[], members: ReadonlyMap<string, Member>): EndpointSubset {
  const ready: EndpointAddress[] = [];
  const notReady: EndpointAddress[] = [];
  const ordered = [...members.entries()].sort(byKey);
  for (const [, member] of ordered) (member.ready ? ready : notReady).push(member.address);
  return {
    ...(ready.length === 0 ? {} : { addresses: ready }),
    ...(notReady.length === 0 ? {} : { notReadyAddresses: notReady }),
    ...(ports.length === 0 ? {} : { ports: endpointPortsInOrder(ports) }),
  };
}

function byKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}

/** Two addresses are equal when text and target are. The tab sorts below every character of an address. */
function addressKey(address: EndpointAddress): string {
  return `${address.ip}\t${address.targetRef?.uid ?? ''}`;
}

/**
 * True when two lists have the same subsets, in any order of subsets, ports and addresses, and with any resourceVersion
 * of the targets.
 */
export function sameSubsets(a: readonly EndpointSubset[], b: readonly EndpointSubset[]): boolean {
  if (a.length !== b.length) return false;
  const texts = a.map(subsetKey).sort();
  return b
    .map(subsetKey)
    .sort()
    .every((text, i) => text === texts[i]);
}

function subsetKey(subset: EndpointSubset): string {
  return JSON.stringify([
    (subset.ports ?? []).map(endpointPortKey).sort(),
    (subset.addresses ?? []).map(fullAddressKey).sort(),
    (subset.notReadyAddresses ?? []).map(fullAddressKey).sort(),
  ]);
}

function fullAddressKey(address: EndpointAddress): string {
  const ref = address.targetRef;
  return JSON.stringify([
    address.ip,
    address.hostname ?? '',
    address.nodeName ?? null,
    ref && [ref.kind, ref.namespace, ref.name, ref.uid, ref.apiVersion, ref.fieldPath],
  ]);
}
