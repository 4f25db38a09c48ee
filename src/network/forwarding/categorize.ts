import type { EndpointHints } from '../../objects/types/discovery.generated.ts';
import { type ServiceEndpoint, isReady, isServing, isTerminating } from './endpoints.ts';
import type { NodePlan, PlannedEndpoint } from './forwarding-plan.ts';

/** The endpoints that connections may go to. */
export interface UsableEndpoints {
  /** Those of policy Cluster; empty where `uses.cluster` is false. */
  readonly cluster: readonly PlannedEndpoint[];
  /** Those of policy Local; empty where `uses.local` is false. */
  readonly local: readonly PlannedEndpoint[];
  /** An endpoint is usable on some node. Decides between reject and drop. */
  readonly any: boolean;
}

/**
 * Chooses the endpoints of a Service port (`proxy/topology.go`, CategorizeEndpoints).
 *
 * - Cluster: the ready ones that topology prefers; when none is ready anywhere, all that still serve while they
 *   terminate, wherever they are.
 * - Local: the ready ones of this node; when none is ready here, those of this node that still serve while they
 *   terminate. Hints never apply.
 * - All else is never used: what does not serve, and what serves, is not ready and does not terminate.
 *
 * `spec.trafficDistribution` is not read: it arrives as hints.
 *
 * @param uses which lists the Service port needs.
 */
export function categorizeEndpoints(
  endpoints: readonly ServiceEndpoint[],
  uses: { readonly cluster: boolean; readonly local: boolean },
  node: Pick<NodePlan, 'name' | 'zone'>,
): UsableEndpoints {
  const ready = endpoints.filter(isReady);
  const draining = endpoints.filter(isDraining);
  const localReady = ready.filter(isLocal);
  return {
    cluster: !uses.cluster ? [] : planned(ready.length > 0 ? preferred(ready, node) : draining),
    local: !uses.local ? [] : planned(localReady.length > 0 ? localReady : draining.filter(isLocal)),
    any: ready.length > 0 || draining.length > 0,
  };
}

/**
 * The ready endpoints that hints prefer: those for this node, else those for its zone, else all. A kind of hint
 * counts when every ready endpoint has one and at least one names this node or zone.
 */
function preferred(
  ready: readonly ServiceEndpoint[],
  { name, zone }: Pick<NodePlan, 'name' | 'zone'>,
): readonly ServiceEndpoint[] {
  return hintedFor(ready, 'forNodes', name) ?? hintedFor(ready, 'forZones', zone) ?? ready;
}

function hintedFor(
  ready: readonly ServiceEndpoint[],
  kind: keyof EndpointHints,
  place: string | undefined,
): readonly ServiceEndpoint[] | undefined {
  if (place === undefined) return undefined;
  const chosen: ServiceEndpoint[] = [];
  for (const endpoint of ready) {
    const hints = endpoint.source.hints?.[kind] ?? [];
    if (hints.length === 0) return undefined;
    if (hints.some((hint) => hint.name === place)) chosen.push(endpoint);
  }
  return chosen.length === 0 ? undefined : chosen;
}

/** Serves while it terminates: used where nothing is ready. */
function isDraining(endpoint: ServiceEndpoint): boolean {
  return !isReady(endpoint) && isServing(endpoint) && isTerminating(endpoint);
}

function isLocal({ planned }: ServiceEndpoint): boolean {
  return planned.isLocal;
}

function planned(endpoints: readonly ServiceEndpoint[]): readonly PlannedEndpoint[] {
  return endpoints.map((endpoint) => endpoint.planned);
}
