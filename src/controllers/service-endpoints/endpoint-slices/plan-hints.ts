/** Hints by `spec.trafficDistribution`, and their removal (k8s.io/endpointslice/trafficdist). Pure. */
import type { Service } from '../../../objects/types/core.generated.ts';
import type { Endpoint, EndpointHints, EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { SliceDraft } from './plan-packing.ts';

/** The slices of one address family while their hints are planned. */
export interface SliceSet {
  create: SliceDraft[];
  update: SliceDraft[];
  unchanged: EndpointSlice[];
}

/** True for an endpoint that gets traffic: only these get hints. */
export function isReadyEndpoint(endpoint: Endpoint): boolean {
  return endpoint.conditions?.ready === true;
}

/** Every draft of a set, those to create first. */
export function draftsOf(set: SliceSet): SliceDraft[] {
  return [...set.create, ...set.update];
}

/** Moves the unchanged slices for which `stale` holds to the updates. */
export function reopen(set: SliceSet, stale: (slice: EndpointSlice) => boolean): void {
  const still: EndpointSlice[] = [];
  for (const slice of set.unchanged) {
    if (stale(slice)) set.update.push({ slice, endpoints: [...(slice.endpoints ?? [])], existing: slice });
    else still.push(slice);
  }
  set.unchanged = still;
}

/** `endpoint` with these hints, or with none. */
export function withHints(endpoint: Endpoint, hints: EndpointHints | undefined): Endpoint {
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
      (endpoint) => isReadyEndpoint(endpoint) && !jsonEqual(endpoint.hints, hintsOf(endpoint)),
    ),
  );
  for (const draft of draftsOf(set)) {
    draft.endpoints = draft.endpoints.map((endpoint) =>
      isReadyEndpoint(endpoint) ? withHints(endpoint, hintsOf(endpoint)) : endpoint,
    );
  }
}
