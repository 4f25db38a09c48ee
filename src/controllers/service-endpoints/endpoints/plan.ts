import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Endpoints,
  Pod,
  Service,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { endpointPortsInOrder, subsetsInOrder } from '../hash-order.ts';
import {
  endpointPortKey,
  canonicalIP,
  mayBackService,
  podReference,
  publishedHostname,
  clusterIPOf,
  isHeadless,
  namedFamilies,
  portsOf,
  resolvePorts,
} from '../service.ts';
import { isPodReady, isPodTerminating } from '../../../objects/pods.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { withTriggerTime } from '../timing.ts';
import { headlessLabel } from '../../../network/forwarding/endpoints.ts';

/** The canonical layout of Endpoints subsets (pkg/api/v1/endpoints, `util.go`). Pure. */

/** One address under one port; without a port for headless Services that have none. */
export interface SubsetAddress {
  address: EndpointAddress;
  port: EndpointPort | undefined;
  ready: boolean;
}

interface Member {
  address: EndpointAddress;
  ready: boolean;
}

/**
 * Groups addresses so that every set of addresses appears once, with all the ports that exactly this set offers. An
 * address that is both ready and not ready under one port is not ready; of equal addresses with different other fields
 * the first is used, under every port. Addresses are ordered by their text, then by the uid of their target; ports and
 * subsets by hash. Readers must not rely on that order, and {@link sameSubsets} does not.
 */
export function repack(given: Iterable<SubsetAddress>): EndpointSubset[] {
  const byPort = new Map<string, { port: EndpointPort | undefined; members: Map<string, Member> }>();
  const addresses = new Map<string, EndpointAddress>();
  for (const { address, port, ready } of given) {
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
function sameSubsets(a: readonly EndpointSubset[], b: readonly EndpointSubset[]): boolean {
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

/**
 * Plans the Endpoints of a Service (pkg/controller/endpoint, `endpoints_controller.go`). Pure: from a Service, Pods and
 * the existing object it computes one write or none.
 */

const managedByLabel = 'endpoints.kubernetes.io/managed-by';
const managedBy = 'endpoint-controller';
const overCapacityAnnotation = 'endpoints.kubernetes.io/over-capacity';

/** The input of a plan. */
export interface EndpointsInput {
  /** A Service with a selector, not of type ExternalName. */
  service: Service;
  /** The Pods of its namespace that its selector matches. */
  pods: readonly Pod[];
  /** The Endpoints of that name as it is now. */
  existing: Endpoints | undefined;
  /** The trigger time to write with changes (RFC 3339). */
  triggerTime: string | undefined;
}

/** The write of a plan, or none. `update` carries the resourceVersion of the object it replaces. */
export type EndpointsPlan = { write: 'none' } | { write: 'create' | 'update'; endpoints: Endpoints };

/** Plans the Endpoints of one Service. */
export function planEndpoints({ service, pods, existing, triggerTime }: EndpointsInput): EndpointsPlan {
  const all = repack(subsetAddresses(service, pods));
  const cut = truncate(all);
  const subsets = cut ?? all;
  const labels = labelsOf(service);

  const { [overCapacityAnnotation]: capacity, ...annotations } = existing?.metadata.annotations ?? {};
  const wanted = cut === undefined ? undefined : 'truncated';
  if (
    existing !== undefined &&
    capacity === wanted &&
    jsonEqual(withoutHeadless(existing.metadata.labels), withoutHeadless(labels)) &&
    sameSubsets(existing.subsets ?? [], subsets)
  ) {
    return { write: 'none' };
  }

  const { annotations: _replaced, ...metadata } = existing?.metadata ?? {
    name: service.metadata.name ?? '',
    namespace: service.metadata.namespace ?? '',
  };
  const noted = withTriggerTime(
    wanted === undefined ? annotations : { ...annotations, [overCapacityAnnotation]: wanted },
    triggerTime,
  );
  return {
    write: existing === undefined ? 'create' : 'update',
    endpoints: {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { ...metadata, labels, ...(noted === undefined ? {} : { annotations: noted }) },
      ...(subsets.length === 0 ? {} : { subsets }),
    },
  };
}

/** True when an endpoints controller, ours or another, made them: hand-made ones lack the label. */
export function isManagedEndpoints({ metadata }: Endpoints): boolean {
  return metadata.labels?.[managedByLabel] === managedBy;
}

/** The Service's labels, and two of the controller's own. */
function labelsOf(service: Service): Record<string, string> {
  const labels = withoutHeadless(service.metadata.labels);
  if (isHeadless(service)) labels[headlessLabel] = '';
  labels[managedByLabel] = managedBy;
  return labels;
}

/** The headless label alone causes no write: kube-controller-manager leaves it out of its comparison. */
function withoutHeadless(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  const { [headlessLabel]: _ignored, ...rest } = labels ?? {};
  return rest;
}

function* subsetAddresses(service: Service, pods: readonly Pod[]): Generator<SubsetAddress> {
  const publishAll = service.spec.publishNotReadyAddresses === true;
  const portless = portsOf(service).length === 0;
  if (portless && !isHeadless(service)) return;
  for (const pod of pods) {
    if (!mayBackService(pod) || (isPodTerminating(pod) && !publishAll)) continue;
    const address = addressOf(service, pod);
    if (address === undefined) continue;
    const ready = publishAll || isPodReady(pod);
    if (portless) yield { address, port: undefined, ready };
    for (const resolved of resolvePorts(service, pod)) {
      const { name, ...rest } = resolved;
      const port: EndpointPort = name === '' ? rest : { name, ...rest };
      yield { address, port, ready };
    }
  }
}

/** The Pod's first address of the Service's primary family. */
function addressOf(service: Service, pod: Pod): EndpointAddress | undefined {
  const family = primaryFamily(service, pod);
  for (const { ip } of pod.status.podIPs ?? []) {
    const parsed = canonicalIP(ip);
    if (parsed?.family !== family) continue;
    const hostname = publishedHostname(pod, service);
    return {
      ip: parsed.ip,
      ...(hostname === undefined ? {} : { hostname }),
      // Set even when it is empty: kube-controller-manager sends it too, and the API server refuses the write.
      nodeName: pod.spec.nodeName ?? '',
      targetRef: podReference(pod),
    };
  }
  return undefined;
}

/** `ipFamilies[0]`; without it the family of the clusterIP, or for headless Services that of the Pod's own address. */
function primaryFamily(service: Service, pod: Pod): string {
  const [first] = namedFamilies(service);
  if (first !== undefined) return first;
  return canonicalIP(clusterIPOf(service) ?? pod.status.podIP ?? '')?.family ?? 'IPv4';
}

/** The most addresses that one Endpoints object may hold (`maxCapacity` of the endpoints controller). */
const maxAddresses = 1000;

/**
 * Cuts subsets to at most {@link maxAddresses} addresses: ready ones come before those that are not, and each subset
 * keeps a share in proportion to its size, rounded up, so that the last ones may keep less. Undefined when all fit.
 */
function truncate(subsets: readonly EndpointSubset[]): EndpointSubset[] | undefined {
  let ready = 0;
  let notReady = 0;
  for (const subset of subsets) {
    ready += subset.addresses?.length ?? 0;
    notReady += subset.notReadyAddresses?.length ?? 0;
  }
  if (ready + notReady <= maxAddresses) return undefined;

  const cutReady = ready > maxAddresses;
  const room = cutReady ? maxAddresses : maxAddresses - ready;
  const total = cutReady ? ready : notReady;
  let left = room;
  const result: EndpointSubset[] = [];
  for (const subset of subsets) {
    const { addresses = [], notReadyAddresses = [], ports } = subset;
    const cut = cutReady ? addresses : notReadyAddresses;
    const kept = cut.slice(0, Math.min(left, Math.ceil((cut.length / total) * room)));
    left -= kept.length;
    const keptReady = cutReady ? kept : addresses;
    const keptNotReady = cutReady ? [] : kept;
    // A subset without addresses is invalid.
    if (keptReady.length + keptNotReady.length === 0) continue;
    result.push({
      ...(keptReady.length === 0 ? {} : { addresses: keptReady }),
      ...(keptNotReady.length === 0 ? {} : { notReadyAddresses: keptNotReady }),
      ...(ports === undefined ? {} : { ports }),
    });
  }
  return result;
}
