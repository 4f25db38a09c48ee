/**
 * The EndpointSlices that mirror a hand-made Endpoints object (pkg/controller/endpointslicemirroring). Pure: Endpoints
 * and its mirrored slices go in, writes come out.
 */
import type { EndpointAddress, EndpointSubset, Endpoints } from '../../../objects/types/core.generated.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { endpointKey, sameEndpoint } from '../slices/plan-packing.ts';
import { managedByLabel } from '../slices/slice-writer.ts';
import { type SubsetAddress, repack } from '../endpoints/plan.ts';
import { slicePortsInOrder } from '../hash-order.ts';
import { canonicalIP } from '../service.ts';
import { portsKey } from '../service.ts';
import { triggerTimeAnnotation } from '../timing.ts';
import { serviceNameLabel } from '../../../objects/endpoints.ts';

/** The value of the managed-by label on mirrored slices. */
export const mirroringController = 'endpointslicemirroring-controller.k8s.io';

const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror';
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader';
const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';
const maxNameLength = 253;

/** The input of a plan. */
export interface MirrorInput {
  /** Endpoints to which {@link isMirrored} applies, of a Service without selector. */
  endpoints: Endpoints;
  /** The slices that name it and this controller in their labels. */
  existing: readonly EndpointSlice[];
  /** The most addresses to mirror per subset, 1 to 1000 (`--mirroring-max-endpoints-per-subset`, 1000). */
  maxPerSubset: number;
}

/** The writes of a plan, and the events to record about the Endpoints. */
export interface MirrorPlan {
  create: EndpointSlice[];
  update: EndpointSlice[];
  delete: EndpointSlice[];
  events: { type: 'Warning'; reason: 'InvalidIPAddress' | 'TooManyAddressesToMirror'; message: string }[];
}

interface Wanted {
  addressType: 'IPv4' | 'IPv6';
  ports: EndpointPort[];
  endpoints: Map<string, Endpoint>;
}

/** False for Endpoints that opt out by label, and for the locks of old leader elections. */
export function isMirrored(endpoints: Endpoints): boolean {
  const { labels, annotations } = endpoints.metadata;
  return labels?.[skipMirrorLabel] !== 'true' && !Object.hasOwn(annotations ?? {}, leaderAnnotation);
}

/** Plans the mirror of one Endpoints object: one slice per address family and list of ports. */
export function planMirror({ endpoints, existing, maxPerSubset }: MirrorInput): MirrorPlan {
  const plan: MirrorPlan = { create: [], update: [], delete: [], events: [] };
  const wanted = wantedSlices(endpoints, maxPerSubset, plan);
  const template = sliceOf(endpoints);
  const left = new Map<string, EndpointSlice[]>();
  for (const slice of existing) {
    const key = `${slice.addressType}\n${portsKey(slice.ports ?? [])}`;
    const group = left.get(key);
    if (group === undefined) left.set(key, [slice]);
    else group.push(slice);
  }

  const create: EndpointSlice[] = [];
  for (const [key, group] of wanted) {
    const [kept, ...surplus] = left.get(key) ?? [];
    left.delete(key);
    pushAll(plan.delete, surplus);
    const slice: EndpointSlice = {
      ...template,
      addressType: group.addressType,
      endpoints: [...group.endpoints.values()],
      ports: group.ports.length === 0 ? null : group.ports,
    };
    if (kept === undefined) create.push(named(slice, endpoints));
    else if (!isUpToDate(kept, slice, group)) plan.update.push(replacing(kept, slice));
  }
  for (const slices of left.values()) pushAll(plan.delete, slices);
  recycle(create, plan);
  // While the Endpoints are being deleted, the slices are left to the garbage collector.
  if (endpoints.metadata.deletionTimestamp === undefined) pushAll(plan.create, create);
  return plan;
}

function wantedSlices(endpoints: Endpoints, maxPerSubset: number, plan: MirrorPlan): Map<string, Wanted> {
  const wanted = new Map<string, Wanted>();
  let invalid = 0;
  let skipped = 0;
  for (const subset of repack(subsetAddresses(endpoints.subsets ?? []))) {
    const ports = slicePortsInOrder((subset.ports ?? []).map((port) => ({ ...port, name: port.name ?? '' })));
    const all = [
      ...(subset.addresses ?? []).map((address) => ({ address, ready: true })),
      ...(subset.notReadyAddresses ?? []).map((address) => ({ address, ready: false })),
    ];
    let added = 0;
    for (const { address, ready } of all) {
      if (added >= maxPerSubset) break;
      const parsed = canonicalIP(address.ip);
      if (parsed === undefined) {
        invalid++;
        continue;
      }
      added++;
      const key = `${parsed.family}\n${portsKey(ports)}`;
      let group = wanted.get(key);
      if (group === undefined) {
        group = { addressType: parsed.family, ports, endpoints: new Map() };
        wanted.set(key, group);
      }
      const endpoint = toEndpoint(address, parsed.ip, ready);
      group.endpoints.set(endpointKey(endpoint), endpoint);
    }
    skipped += all.length - added;
  }
  if (invalid > 0) {
    plan.events.push({
      type: 'Warning',
      reason: 'InvalidIPAddress',
      message: `Skipped ${invalid} invalid IP addresses when mirroring to EndpointSlices`,
    });
  }
  if (skipped > invalid) {
    plan.events.push({
      type: 'Warning',
      reason: 'TooManyAddressesToMirror',
      message: `A max of ${maxPerSubset} addresses can be mirrored to EndpointSlices per Endpoints subset. ${skipped} addresses were skipped`,
    });
  }
  return wanted;
}

function* subsetAddresses(subsets: readonly EndpointSubset[]): Generator<SubsetAddress> {
  for (const { addresses = [], notReadyAddresses = [], ports = [] } of subsets) {
    for (const port of ports.length === 0 ? [undefined] : ports) {
      for (const address of addresses) yield { address, port, ready: true };
      for (const address of notReadyAddresses) yield { address, port, ready: false };
    }
  }
}

function toEndpoint(address: EndpointAddress, ip: string, ready: boolean): Endpoint {
  const { hostname, nodeName, targetRef } = address;
  return {
    addresses: [ip],
    conditions: { ready },
    ...(hostname === undefined || hostname === '' ? {} : { hostname }),
    ...(targetRef === undefined ? {} : { targetRef }),
    ...(nodeName === undefined ? {} : { nodeName }),
  };
}

/** The common part of all mirrors of an Endpoints object, without name and endpoints. */
function sliceOf(endpoints: Endpoints): EndpointSlice {
  const { name = '', namespace = '', uid = '', labels, annotations } = endpoints.metadata;
  const { [triggerTimeAnnotation]: _time, [lastAppliedAnnotation]: _applied, ...copied } = annotations ?? {};
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace,
      labels: { ...labels, [serviceNameLabel]: name, [managedByLabel]: mirroringController },
      ...(Object.keys(copied).length === 0 ? {} : { annotations: copied }),
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Endpoints', name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    addressType: '',
    endpoints: null,
    ports: null,
  };
}

function named(slice: EndpointSlice, endpoints: Endpoints): EndpointSlice {
  const { name = '' } = endpoints.metadata;
  const generateName = name.length < maxNameLength ? `${name}-` : name;
  return { ...slice, metadata: { generateName, ...slice.metadata } };
}

function replacing(old: EndpointSlice, slice: EndpointSlice): EndpointSlice {
  const { name, resourceVersion } = old.metadata;
  return {
    ...slice,
    metadata: {
      ...slice.metadata,
      ...(name === undefined ? {} : { name }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
  };
}

function isUpToDate(old: EndpointSlice, slice: EndpointSlice, wanted: Wanted): boolean {
  const endpoints = old.endpoints ?? [];
  if (endpoints.length !== wanted.endpoints.size) return false;
  const seen = new Set<string>();
  for (const endpoint of endpoints) {
    const key = endpointKey(endpoint);
    const same = wanted.endpoints.get(key);
    if (same === undefined || !sameEndpoint(same, endpoint) || seen.has(key)) return false;
    seen.add(key);
  }
  return (
    jsonEqual(old.metadata.labels, slice.metadata.labels) &&
    jsonEqual(old.metadata.annotations ?? {}, slice.metadata.annotations ?? {}) &&
    !isOwnedByPredecessor(old, slice)
  );
}

/** True when a slice belongs to earlier Endpoints of that name: the garbage collector would delete it. */
function isOwnedByPredecessor(old: EndpointSlice, slice: EndpointSlice): boolean {
  const [owner] = slice.metadata.ownerReferences ?? [];
  return (old.metadata.ownerReferences ?? []).some(
    (other) => other.kind === 'Endpoints' && other.uid !== owner?.uid,
  );
}

/** Turns pairs of slices to create and to delete of one family into updates. */
function recycle(create: EndpointSlice[], plan: MirrorPlan): void {
  for (const slice of create.splice(0)) {
    const i = plan.delete.findIndex((old) => old.addressType === slice.addressType);
    const [old] = i === -1 ? [] : plan.delete.splice(i, 1);
    if (old === undefined) create.push(slice);
    else plan.update.push(replacing(old, slice));
  }
}
