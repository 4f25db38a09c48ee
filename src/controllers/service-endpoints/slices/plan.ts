/**
 * Plans the EndpointSlices of a Service (k8s.io/endpointslice, `reconciler.go`). Pure: from a Service, Pods, Nodes and
 * the existing slices it computes the writes.
 */
import type { IPFamily } from '../../../objects/address.ts';
import type { Pod, Service } from '../../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { slicePortsInOrder } from '../hash-order.ts';
import { canonicalIP } from '../service.ts';
import { clusterIPOf, namedFamilies } from '../service.ts';
import { portsKey } from '../service.ts';
import { withTriggerTime } from '../timing.ts';
import { groupPods, type NodePlace } from './plan-packing.ts';
import {
  hintByPlace,
  removeHints,
  type SliceSet,
  trafficDistribution,
  wantsTopologyHints,
} from './plan-hints.ts';
import { type SliceDraft, packGroup, type Packing } from './plan-packing.ts';
import { hintByCapacity, type HintsByZone } from './plan-hints.ts';
import { isOwnedBy, labelsDiffer, newSlice, sliceLabels } from './slice-writer.ts';
import type { ZoneShares } from './plan-hints.ts';
import type { PlannedEvent } from '../../../client/events/events.ts';

/** The input of a plan. */
export interface SlicesInput {
  /** A Service with a selector, not of type ExternalName. */
  service: Service;
  /** The Pods of its namespace that its selector matches. */
  pods: readonly Pod[];
  /** The slices that name the Service and this controller in their labels, without those being deleted. */
  existing: readonly EndpointSlice[];
  /** Looks up a Node; undefined when there is none of that name. */
  placeOf: (nodeName: string) => NodePlace | undefined;
  /** The CPU of the zones; undefined when it is not known for all Nodes. */
  zones: ZoneShares | undefined;
  /** True when the last plan gave hints by capacity: their end is an Event. */
  hadTopologyHints: boolean;
  /** The trigger time to write with changes (RFC 3339). */
  triggerTime: string | undefined;
  /** The most endpoints per slice, 1 to 1000 (`--max-endpoints-per-slice`, 100). */
  maxPerSlice: number;
}

/** An Event about the Service. */
export type HintsEvent = PlannedEvent<'TopologyAwareHintsEnabled' | 'TopologyAwareHintsDisabled'>;

/** The writes of a plan. Updates carry the name and resourceVersion of the slices that they replace. */
export interface SlicesPlan {
  create: EndpointSlice[];
  update: EndpointSlice[];
  delete: EndpointSlice[];
  events: HintsEvent[];
  /** Pods that are left out because their Node is missing; the Service must be planned again when it appears. */
  withoutNode: Pod[];
  /** Hints by capacity, per address family, if any. */
  topologyHints: Map<string, HintsByZone>;
}

/** Plans all slices of one Service. */
export function planSlices(input: SlicesInput): SlicesPlan {
  const { service, existing } = input;
  const families = familiesOf(service);
  const plan: SlicesPlan = {
    create: [],
    update: [],
    delete: existing.filter((slice) => !families.some((family) => family === slice.addressType)),
    events: [],
    withoutNode: [],
    topologyHints: new Map(),
  };
  let hadHints = input.hadTopologyHints;
  for (const family of families) hadHints = planFamily(input, family, hadHints, plan);
  return plan;
}

/** Adds one family to the plan. Returns whether hints by capacity are given, for the family after it. */
function planFamily(input: SlicesInput, family: IPFamily, hadHints: boolean, plan: SlicesPlan): boolean {
  const { service, triggerTime } = input;
  const existing = input.existing.filter((slice) => slice.addressType === family);
  const { packing, withoutNode } = packFamily(input, family, existing);
  for (const pod of withoutNode) if (!plan.withoutNode.includes(pod)) plan.withoutNode.push(pod);

  const touched = new Set<EndpointSlice | undefined>(packing.delete);
  for (const draft of packing.update) touched.add(draft.existing);
  const set: SliceSet = {
    create: packing.create,
    update: packing.update,
    unchanged: existing.filter((slice) => !touched.has(slice)),
  };
  const hasHints = planHints(input, family, hadHints, set, plan);

  const { create, reused, left } = recycle(service, set.create, packing.delete);
  // While a Service is being deleted, its slices are left to the garbage collector.
  if (service.metadata.deletionTimestamp === undefined) {
    for (const draft of create) plan.create.push(finish(draft, triggerTime));
  }
  for (const draft of set.update) if (isChange(draft)) plan.update.push(finish(draft, triggerTime));
  for (const draft of reused) plan.update.push(finish(draft, triggerTime));
  pushAll(plan.delete, left);
  return hasHints;
}

function packFamily(
  { service, pods, placeOf, maxPerSlice }: SlicesInput,
  family: IPFamily,
  existing: readonly EndpointSlice[],
): { packing: Packing; withoutNode: Pod[] } {
  const labels = sliceLabels(service);
  const needsLabels = (slice: EndpointSlice): boolean => labelsDiffer(slice, labels);
  const { byPorts, withoutNode } = groupPods(service, pods, family, placeOf);
  const packing: Packing = { create: [], update: [], delete: [] };
  const owned = new Map<string, EndpointSlice[]>();
  for (const slice of existing) {
    if (!isOwnedBy(slice, service)) {
      packing.delete.push(slice);
      continue;
    }
    const key = portsKey(slice.ports ?? []);
    const group = owned.get(key);
    if (group === undefined) owned.set(key, [slice]);
    else group.push(slice);
  }
  for (const [key, group] of byPorts) {
    const part = packGroup({
      existing: owned.get(key) ?? [],
      wanted: group.endpoints,
      maxPerSlice,
      newSlice: () => newSlice(service, family, group.ports),
      needsLabels,
      labels,
    });
    pushAll(packing.create, part.create);
    pushAll(packing.update, part.update);
    pushAll(packing.delete, part.delete);
  }
  for (const [key, slices] of owned) if (!byPorts.has(key)) pushAll(packing.delete, slices);

  if (existing.length === packing.delete.length && packing.create.length === 0) {
    const [only] = packing.delete;
    if (packing.delete.length === 1 && only !== undefined && isPlaceholder(only, labels)) {
      packing.delete = [];
    } else {
      packing.create.push({ slice: newSlice(service, family, []), endpoints: [], existing: undefined });
    }
  }
  return { packing, withoutNode };
}

/**
 * True for the slice without ports and endpoints that stands for a Service without Pods. A label without a value and
 * no label are the same here (`placeholderSliceCompare`).
 */
function isPlaceholder(slice: EndpointSlice, labels: Readonly<Record<string, string>>): boolean {
  return (
    (slice.ports ?? []).length === 0 &&
    (slice.endpoints ?? []).length === 0 &&
    jsonEqual(withValues(slice.metadata.labels ?? {}), withValues(labels))
  );
}

function withValues(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''));
}

function planHints(
  { service, zones }: SlicesInput,
  family: IPFamily,
  hadHints: boolean,
  set: SliceSet,
  plan: SlicesPlan,
): boolean {
  const event = (type: HintsEvent['type'], reason: HintsEvent['reason'], text: string): void => {
    plan.events.push({ type, reason, message: `${text}, addressType: ${family}` });
  };
  if (wantsTopologyHints(service)) {
    const outcome = hintByCapacity(set, zones);
    if ('refused' in outcome) {
      event('Warning', 'TopologyAwareHintsDisabled', outcome.refused);
      return false;
    }
    if (!hadHints) event('Normal', 'TopologyAwareHintsEnabled', 'Topology Aware Hints has been enabled');
    plan.topologyHints.set(family, outcome.hints);
    return true;
  }
  if (hadHints) event('Warning', 'TopologyAwareHintsDisabled', 'Topology Aware Hints has been disabled');
  const wanted = trafficDistribution(service);
  if (wanted === undefined) removeHints(set);
  else hintByPlace(set, wanted);
  return false;
}

/** Turns a slice to create and one to delete into one update. Slices of other owners are not reused. */
function recycle(
  service: Service,
  wanted: readonly SliceDraft[],
  deletable: readonly EndpointSlice[],
): { create: SliceDraft[]; reused: SliceDraft[]; left: EndpointSlice[] } {
  const create = [...wanted];
  const reused: SliceDraft[] = [];
  const left: EndpointSlice[] = [];
  for (const old of deletable) {
    const draft = isOwnedBy(old, service) ? create.pop() : undefined;
    if (draft === undefined) {
      left.push(old);
      continue;
    }
    const { name, resourceVersion } = old.metadata;
    const metadata = {
      ...draft.slice.metadata,
      ...(name === undefined ? {} : { name }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    reused.push({ ...draft, slice: { ...draft.slice, metadata }, existing: old });
  }
  return { create, reused, left };
}

/** False when only the trigger time of a draft is new. */
function isChange(draft: SliceDraft): boolean {
  const { existing } = draft;
  if (existing === undefined) return true;
  const { metadata, endpoints, ports, addressType } = finish(draft, undefined);
  const now = existing.metadata;
  return !(
    addressType === existing.addressType &&
    jsonEqual(endpoints ?? [], existing.endpoints ?? []) &&
    jsonEqual(ports ?? [], existing.ports ?? []) &&
    jsonEqual(metadata.labels ?? {}, now.labels ?? {}) &&
    jsonEqual(metadata.ownerReferences, now.ownerReferences) &&
    jsonEqual(metadata.annotations, withTriggerTime(now.annotations, undefined))
  );
}

function finish({ slice, endpoints }: SliceDraft, triggerTime: string | undefined): EndpointSlice {
  const { annotations, ...metadata } = slice.metadata;
  const noted = withTriggerTime(annotations, triggerTime);
  return {
    ...slice,
    metadata: noted === undefined ? metadata : { ...metadata, annotations: noted },
    endpoints: endpoints.length === 0 ? null : endpoints,
    ports: slice.ports && slicePortsInOrder(slice.ports),
  };
}

/** The families to write: `ipFamilies`; without them that of the clusterIP, or both for headless Services. */
function familiesOf(service: Service): IPFamily[] {
  const named = namedFamilies(service);
  if (named.length > 0) return named;
  const clusterIP = clusterIPOf(service);
  return clusterIP === undefined ? ['IPv4', 'IPv6'] : [canonicalIP(clusterIP)?.family ?? 'IPv4'];
}
