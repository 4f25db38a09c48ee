import { saysReady } from '../../../objects/endpoints.ts';
import type { Service, Node } from '../../../objects/types/core.generated.ts';
import type { Endpoint, EndpointHints, EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { SliceDraft } from './plan-packing.ts';
import { isNodeReady } from '../../../objects/pods.ts';
import { parseQuantity } from '../../../objects/formats/quantity.ts';

/** Hints by `spec.trafficDistribution`, and their removal (k8s.io/endpointslice/trafficdist). Pure. */

/** The slices of one address family while their hints are planned. */
export interface SliceSet {
  create: SliceDraft[];
  update: SliceDraft[];
  unchanged: EndpointSlice[];
}

/** Every draft of a set, those to create first. */
function draftsOf(set: SliceSet): SliceDraft[] {
  return [...set.create, ...set.update];
}

/** Moves the unchanged slices for which `stale` holds to the updates. */
function reopen(set: SliceSet, stale: (slice: EndpointSlice) => boolean): void {
  const still: EndpointSlice[] = [];
  for (const slice of set.unchanged) {
    if (stale(slice)) set.update.push({ slice, endpoints: [...(slice.endpoints ?? [])], existing: slice });
    else still.push(slice);
  }
  set.unchanged = still;
}

/** `endpoint` with these hints, or with none. */
function withHints(endpoint: Endpoint, hints: EndpointHints | undefined): Endpoint {
  const { hints: _old, ...rest } = endpoint;
  return hints === undefined ? rest : { ...rest, hints };
}

/** Removes all hints. */
export function removeHints(set: SliceSet): void {
  reopen(set, (slice) => (slice.endpoints ?? []).some((endpoint) => endpoint.hints !== undefined));
  for (const draft of draftsOf(set)) {
    draft.endpoints = draft.endpoints.map((endpoint) => withHints(endpoint, undefined));
  }
}

/** True when a topology annotation asks for hints by the CPU of zones; the deprecated one has precedence. */
export function wantsTopologyHints(service: Service): boolean {
  const annotations = service.metadata.annotations ?? {};
  const value =
    annotations['service.kubernetes.io/topology-aware-hints'] ??
    annotations['service.kubernetes.io/topology-mode'];
  return value === 'Auto' || value === 'auto';
}

/** The value of `spec.trafficDistribution`, unless a topology annotation overrides it. */
export function trafficDistribution(service: Service): 'zone' | 'zone and node' | undefined {
  if (wantsTopologyHints(service)) return undefined;
  switch (service.spec.trafficDistribution) {
    case 'PreferClose':
    case 'PreferSameZone':
      return 'zone';
    case 'PreferSameNode':
      return 'zone and node';
    default:
      return undefined;
  }
}

/** Gives every ready endpoint the hint of its own zone, and of its own node if wanted. */
export function hintByPlace(set: SliceSet, wanted: 'zone' | 'zone and node'): void {
  const hintsOf = (endpoint: Endpoint): EndpointHints | undefined => {
    const { zone, nodeName } = endpoint;
    const hints: EndpointHints = {
      ...(zone === undefined ? {} : { forZones: [{ name: zone }] }),
      ...(nodeName === undefined || wanted === 'zone' ? {} : { forNodes: [{ name: nodeName }] }),
    };
    return Object.keys(hints).length === 0 ? undefined : hints;
  };
  reopen(set, (slice) =>
    (slice.endpoints ?? []).some(
      (endpoint) => saysReady(endpoint) && !jsonEqual(endpoint.hints, hintsOf(endpoint)),
    ),
  );
  for (const draft of draftsOf(set)) {
    draft.endpoints = draft.endpoints.map((endpoint) =>
      saysReady(endpoint) ? withHints(endpoint, hintsOf(endpoint)) : endpoint,
    );
  }
}

/** The share of each zone in the cluster's CPU (k8s.io/endpointslice/topologycache). Pure. */

const zoneLabel = 'topology.kubernetes.io/zone';
const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Zone → its share of all CPU, above 0 and adding up to 1. At least two zones, ordered by name. */
export type ZoneShares = ReadonlyMap<string, number>;

/** The zone label of a Node, if it has one. */
export function zoneOf(node: Node): string | undefined {
  const zone = node.metadata.labels?.[zoneLabel];
  return zone === '' ? undefined : zone;
}

/**
 * The shares of the zones of Ready Nodes, control planes left out. Undefined when a Node has no zone or CPU, or there
 * are fewer than two zones.
 */
export function zoneShares(nodes: Iterable<Node>): ZoneShares | undefined {
  const millis = new Map<string, number>();
  let total = 0;
  for (const node of nodes) {
    const labels = node.metadata.labels ?? {};
    if (excludedLabels.some((label) => Object.hasOwn(labels, label)) || !isNodeReady(node)) continue;
    const zone = zoneOf(node);
    const cpu = cpuMillis(node.status.allocatable?.['cpu']);
    if (zone === undefined || cpu === 0) return undefined;
    millis.set(zone, (millis.get(zone) ?? 0) + cpu);
    total += cpu;
  }
  if (millis.size < 2) return undefined;
  const ordered = [...millis].sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(ordered.map(([zone, cpu]) => [zone, cpu / total]));
}

/** CPU in thousandths, rounded up; 0 for an invalid quantity. */
function cpuMillis(text: unknown): number {
  if (typeof text !== 'string') return 0;
  try {
    return Math.max(0, Math.ceil(Number(parseQuantity(text).nanos) / 1e6));
  } catch {
    return 0;
  }
}

/** Hints that share endpoints among zones in proportion to CPU (topology-mode Auto, topologycache). Pure. */

/** How far a zone's endpoints may be overloaded, as a fraction. */
const overloadThreshold = 0.2;

/** Zone → how many ready endpoints are hinted at it. */
export type HintsByZone = Map<string, number>;

/** The outcome: the hints per zone, or why there are none (the message of an event, without the address type). */
export type TopologyOutcome = { hints: HintsByZone } | { refused: string };

interface Allocation {
  minimum: number;
  maximum: number;
  desired: number;
}

/** Plans hints for all slices of one address family, or removes them where they cannot be given. */
export function hintByCapacity(set: SliceSet, shares: ZoneShares | undefined): TopologyOutcome {
  const outcome = assign(set, shares);
  if ('refused' in outcome) removeHints(set);
  return outcome;
}

function assign(set: SliceSet, shares: ZoneShares | undefined): TopologyOutcome {
  const allocations = allocate(countReady(set), shares);
  if (typeof allocations === 'string') return { refused: allocations };

  const hints: HintsByZone = new Map();
  reopen(set, (slice) => {
    const own = usableHints(slice, hints, allocations);
    for (const [zone, count] of own ?? []) add(hints, zone, count);
    return own === undefined;
  });

  const drafts = draftsOf(set);
  for (const draft of drafts) {
    for (const endpoint of draft.endpoints) {
      if (!saysReady(endpoint)) continue;
      if (endpoint.zone === undefined) {
        return { refused: 'One or more endpoints do not have a zone specified' };
      }
      add(hints, endpoint.zone, 1);
    }
  }

  const { giving, receiving } = transfers(allocations, hints);
  for (const draft of drafts) {
    draft.endpoints = draft.endpoints.map((endpoint) => {
      const { zone } = endpoint;
      if (!saysReady(endpoint) || zone === undefined) return endpoint;
      const [to] = receiving.keys();
      const moves = to !== undefined && giving.has(zone);
      if (moves) {
        take(giving, zone);
        take(receiving, to);
        add(hints, zone, -1);
        add(hints, to, 1);
      }
      return withHints(endpoint, { forZones: [{ name: moves ? to : zone }] });
    });
  }
  return hints.size === 0 ? { refused: 'No hints allocated for zones' } : { hints };
}

function countReady(set: SliceSet): number {
  let count = 0;
  for (const draft of draftsOf(set)) count += draft.endpoints.filter(saysReady).length;
  for (const slice of set.unchanged) count += (slice.endpoints ?? []).filter(saysReady).length;
  return count;
}

/** The number of endpoints of each zone, or why they cannot be distributed. */
function allocate(endpoints: number, shares: ZoneShares | undefined): Map<string, Allocation> | string {
  if (shares === undefined) {
    return 'Insufficient Node information: allocatable CPU or zone not specified on one or more nodes';
  }
  const figures = `(${endpoints} endpoints, ${shares.size} zones)`;
  if (shares.size > endpoints) return `Insufficient number of endpoints ${figures}`;
  const allocations = new Map<string, Allocation>();
  let minimums = 0;
  for (const [zone, share] of shares) {
    const exact = share * endpoints;
    const minimum = Math.ceil(exact / (1 + overloadThreshold));
    minimums += minimum;
    allocations.set(zone, { minimum, maximum: 0, desired: Math.max(exact, minimum) });
  }
  if (minimums > endpoints) {
    return `Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ${figures}`;
  }
  for (const allocation of allocations.values()) {
    allocation.maximum = allocation.minimum + endpoints - minimums;
  }
  return allocations;
}

/** The hints of an unchanged slice if they can stay beside those already counted; undefined if not. */
function usableHints(
  slice: EndpointSlice,
  counted: HintsByZone,
  allocations: ReadonlyMap<string, Allocation>,
): HintsByZone | undefined {
  const own: HintsByZone = new Map();
  for (const endpoint of slice.endpoints ?? []) {
    if (!saysReady(endpoint)) continue;
    const zones = endpoint.hints?.forZones ?? [];
    if (zones.length === 0 || zones.some(({ name }) => !allocations.has(name))) return undefined;
    for (const { name } of zones) add(own, name, 1);
  }
  for (const [zone, count] of own) {
    if (count + (counted.get(zone) ?? 0) > (allocations.get(zone)?.maximum ?? 0)) return undefined;
  }
  return own;
}

/** The number of whole endpoints that each zone gives away and receives. */
function transfers(
  allocations: ReadonlyMap<string, Allocation>,
  hints: HintsByZone,
): { giving: HintsByZone; receiving: HintsByZone } {
  const surplus = new Map<string, number>();
  const need = new Map<string, number>();
  for (const [zone, { desired }] of allocations) {
    const difference = (hints.get(zone) ?? 0) - desired;
    if (difference > 0) surplus.set(zone, difference);
    else if (difference < 0) need.set(zone, -difference);
  }
  const giving: HintsByZone = new Map();
  const receiving: HintsByZone = new Map();
  for (;;) {
    const giver = greatest(surplus);
    const receiver = greatest(need);
    if (giver === undefined || receiver === undefined) break;
    const [, gives] = giver;
    const [, wants] = receiver;
    if ((gives < 1 && wants < 1) || gives < 0.5 || wants < 0.5) break;
    add(giving, giver[0], 1);
    surplus.set(giver[0], gives - 1);
    add(receiving, receiver[0], 1);
    need.set(receiver[0], wants - 1);
  }
  return { giving, receiving };
}

function greatest(amounts: ReadonlyMap<string, number>): readonly [string, number] | undefined {
  let best: readonly [string, number] | undefined;
  for (const entry of amounts) if (entry[1] > (best?.[1] ?? 0)) best = entry;
  return best;
}

function add(counts: HintsByZone, zone: string, count: number): void {
  const sum = (counts.get(zone) ?? 0) + count;
  if (sum === 0) counts.delete(zone);
  else counts.set(zone, sum);
}

function take(counts: HintsByZone, zone: string): void {
  add(counts, zone, -1);
}

/** True when a zone has too few of a Service's hints for its share of the CPU: the Service must be planned again. */
export function isOverloaded(hints: HintsByZone, shares: ZoneShares | undefined): boolean {
  if (hints.size === 0) return false;
  if (shares === undefined) return true;
  let total = 0;
  for (const count of hints.values()) total += count;
  for (const [zone, share] of shares) {
    if ((hints.get(zone) ?? 0) < Math.ceil((total * share) / (1 + overloadThreshold))) return true;
  }
  return false;
}
