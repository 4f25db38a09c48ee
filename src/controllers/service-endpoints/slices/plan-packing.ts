import { isPodReady, isPodTerminating } from '../../../objects/pods.ts';
import type { IPFamily } from '../../../objects/address.ts';
import type { Pod, Service } from '../../../objects/types/core.generated.ts';
import type { Endpoint, EndpointPort, EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import {
  canonicalIP,
  mayBackService,
  podReference,
  publishedHostname,
  portsKey,
  resolvePorts,
} from '../service.ts';

/** From Pods to endpoints, grouped by the ports that they serve. Pure. */

/** The parts of a Node that a plan reads: that it exists, and its zone. */
export interface NodePlace {
  zone?: string;
}

/** The endpoints that serve one list of ports, by {@link endpointKey}. */
export interface PortGroup {
  ports: EndpointPort[];
  endpoints: Map<string, Endpoint>;
}

/** All groups of one address family, by {@link portsKey}, and the Pods that are left out. */
export interface Groups {
  byPorts: Map<string, PortGroup>;
  /** Pods whose Node is not known. */
  withoutNode: Pod[];
}

/**
 * Groups the Pods of a Service. Terminating Pods stay in. A Pod whose Node does not exist is left out, unless the
 * Service publishes addresses that are not ready; its group exists nevertheless.
 */
export function groupPods(
  service: Service,
  pods: readonly Pod[],
  family: IPFamily,
  placeOf: (nodeName: string) => NodePlace | undefined,
): Groups {
  const byPorts = new Map<string, PortGroup>();
  const withoutNode: Pod[] = [];
  for (const pod of pods) {
    if (!mayBackService(pod)) continue;
    const ports = resolvePorts(service, pod);
    const key = portsKey(ports);
    let group = byPorts.get(key);
    if (group === undefined) {
      group = { ports, endpoints: new Map() };
      byPorts.set(key, group);
    }
    const place = placeOf(pod.spec.nodeName ?? '');
    if (place === undefined && service.spec.publishNotReadyAddresses !== true) {
      withoutNode.push(pod);
      continue;
    }
    const endpoint = toEndpoint(service, pod, family, place);
    if (endpoint.addresses.length > 0) group.endpoints.set(endpointKey(endpoint), endpoint);
  }
  return { byPorts, withoutNode };
}

function toEndpoint(service: Service, pod: Pod, family: IPFamily, place: NodePlace | undefined): Endpoint {
  const serving = isPodReady(pod);
  const terminating = isPodTerminating(pod);
  const hostname = publishedHostname(pod, service);
  const { nodeName } = pod.spec;
  const addresses: string[] = [];
  for (const { ip } of pod.status.podIPs ?? []) {
    const parsed = canonicalIP(ip);
    if (parsed?.family === family) addresses.push(parsed.ip);
  }
  return {
    addresses,
    conditions: {
      ready: service.spec.publishNotReadyAddresses === true || (serving && !terminating),
      serving,
      terminating,
    },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: podReference(pod),
    ...(nodeName === undefined || nodeName === '' ? {} : { nodeName }),
    ...(place?.zone === undefined || place.zone === '' ? {} : { zone: place.zone }),
  };
}

/** The identity of an endpoint: addresses, hostname and target. Other fields may change in place. */
export function endpointKey(endpoint: Endpoint): string {
  const { addresses, hostname, targetRef } = endpoint;
  const text = addresses.length === 1 ? (addresses[0] ?? '') : [...addresses].sort().join(',');
  return `${text}\t${hostname ?? ''}\t${targetRef?.namespace ?? ''}\t${targetRef?.name ?? ''}`;
}

/** True when two endpoints with the same key are equal, except for hints, which are planned later. */
export function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.zone === b.zone &&
    a.conditions?.ready === b.conditions?.ready &&
    a.conditions?.serving === b.conditions?.serving &&
    a.conditions?.terminating === b.conditions?.terminating &&
    a.targetRef?.kind === b.targetRef?.kind &&
    a.targetRef?.uid === b.targetRef?.uid &&
    a.targetRef?.apiVersion === b.targetRef?.apiVersion &&
    a.targetRef?.fieldPath === b.targetRef?.fieldPath
  );
}

/**
 * Distributes endpoints over slices (k8s.io/endpointslice, `reconciler.go`). Pure. The aim is few writes, not few
 * slices: endpoints stay where they are, and nothing is rebalanced.
 */

/** A slice to write. `existing` is the object it replaces; without it the slice is created. */
export interface SliceDraft {
  slice: EndpointSlice;
  endpoints: Endpoint[];
  existing: EndpointSlice | undefined;
}

/** The changes of slices. A slice of the input that is in none of the lists stays unchanged. */
export interface Packing {
  create: SliceDraft[];
  update: SliceDraft[];
  delete: EndpointSlice[];
}

/** The wanted state of the slices of one port group. */
export interface PackingInput {
  /** The existing slices of this group. */
  existing: readonly EndpointSlice[];
  /** The wanted endpoints by {@link endpointKey}. */
  wanted: ReadonlyMap<string, Endpoint>;
  /** The most endpoints per slice, 1 to 1000. */
  maxPerSlice: number;
  /** Makes an empty slice of this group. */
  newSlice: () => EndpointSlice;
  /** True when the labels of an existing slice must be updated. */
  needsLabels: (slice: EndpointSlice) => boolean;
  /** The labels of every slice that is rewritten. */
  labels: Readonly<Record<string, string>>;
}

/**
 * Packs one port group:
 * 1. existing slices keep the endpoints that are still wanted; changed ones are rewritten, emptied ones deleted;
 * 2. slices that are rewritten anyway are filled up, the fullest first;
 * 3. of what remains, full slices are created while there is enough for one; a smaller rest goes to the untouched
 *    slice that it fits most tightly, else to a new one.
 */
export function packGroup(input: PackingInput): Packing {
  const { maxPerSlice } = input;
  const remaining = new Map(input.wanted);
  const { update, untouched, emptied } = keepWanted(input, remaining);

  for (const draft of [...update].sort((a, b) => b.endpoints.length - a.endpoints.length)) {
    if (remaining.size === 0) break;
    fill(draft, remaining, maxPerSlice);
  }

  const create: SliceDraft[] = [];
  while (remaining.size > 0) {
    const tightest = remaining.size < maxPerSlice ? tightestFit(untouched, remaining.size, maxPerSlice) : -1;
    const [taken] = tightest === -1 ? [] : untouched.splice(tightest, 1);
    const draft: SliceDraft =
      taken === undefined
        ? { slice: input.newSlice(), endpoints: [], existing: undefined }
        : { slice: taken, endpoints: [...(taken.endpoints ?? [])], existing: taken };
    fill(draft, remaining, maxPerSlice);
    (taken === undefined ? create : update).push(draft);
  }
  return { create, update, delete: emptied };
}

function keepWanted(
  { existing, needsLabels, labels }: PackingInput,
  remaining: Map<string, Endpoint>,
): { update: SliceDraft[]; untouched: EndpointSlice[]; emptied: EndpointSlice[] } {
  const update: SliceDraft[] = [];
  const untouched: EndpointSlice[] = [];
  const emptied: EndpointSlice[] = [];
  for (const slice of existing) {
    const before = slice.endpoints ?? [];
    const kept: Endpoint[] = [];
    let changed = false;
    for (const endpoint of before) {
      const key = endpointKey(endpoint);
      const wanted = remaining.get(key);
      if (wanted === undefined) continue;
      remaining.delete(key);
      kept.push(wanted);
      changed ||= !sameEndpoint(wanted, endpoint);
    }
    if (changed || kept.length !== before.length) {
      if (kept.length === 0) emptied.push(slice);
      else update.push({ slice: relabel(slice, labels), endpoints: kept, existing: slice });
    } else if (needsLabels(slice)) {
      update.push({ slice: relabel(slice, labels), endpoints: [...before], existing: slice });
    } else {
      untouched.push(slice);
    }
  }
  return { update, untouched, emptied };
}

function relabel(slice: EndpointSlice, labels: Readonly<Record<string, string>>): EndpointSlice {
  return { ...slice, metadata: { ...slice.metadata, labels: { ...labels } } };
}

/** The index of the slice with the least room that still takes `count` endpoints, or -1. */
function tightestFit(slices: readonly EndpointSlice[], count: number, maxPerSlice: number): number {
  let best = -1;
  let bestRoom = maxPerSlice;
  for (const [i, slice] of slices.entries()) {
    const room = maxPerSlice - (slice.endpoints?.length ?? 0) - count;
    if (room >= 0 && room < bestRoom) {
      best = i;
      bestRoom = room;
    }
  }
  return best;
}

function fill(draft: SliceDraft, remaining: Map<string, Endpoint>, maxPerSlice: number): void {
  for (const [key, endpoint] of remaining) {
    if (draft.endpoints.length >= maxPerSlice) return;
    draft.endpoints.push(endpoint);
    remaining.delete(key);
  }
}
