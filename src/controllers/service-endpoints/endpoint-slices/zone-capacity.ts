/** The share of each zone in the cluster's CPU (k8s.io/endpointslice/topologycache). Pure. */
import type { Node } from '../../../objects/types/core.generated.ts';
import { isNodeReady } from '../../../objects/pods.ts';
import { parseQuantity } from '../../../objects/quantity.ts';

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
