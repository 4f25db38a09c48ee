/** How much of the cluster's CPU each zone has (k8s.io/endpointslice/topologycache). Pure. */
import type { Node } from '../../objects/node.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

/** Zone → its share of all CPU, above 0 and adding up to 1. At least two zones, ordered by name. */
export type ZoneShares = ReadonlyMap<string, number>;

/** The zone that a Node's label names, if it has one. */
export function zoneOf(node: Node): string | undefined {
  const zone = node.metadata.labels?.[zoneLabel];
  return zone === '' ? undefined : zone;
}

/** True when the Ready condition of a Node is True. */
export function isNodeReady(node: Node): boolean {
  return (node.status.conditions ?? []).find((condition) => condition.type === 'Ready')?.status === 'True';
}

/**
 * The shares of the zones of Ready Nodes, control planes left out. Undefined when they say too little: a Node
 * without zone or CPU, or fewer than two zones.
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

const multipliers: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** A quantity of CPU in thousandths, rounded up; 0 for what is no quantity. */
function cpuMillis(text: string | undefined): number {
  const match = /^(\d{1,18}(?:\.\d{0,18})?)(n|u|m|k|M|G|Ki|Mi|Gi|)(?:[eE]([+-]?\d{1,2}))?$/.exec(text ?? '');
  if (match === null) return 0;
  const [, digits = '0', suffix = '', exponent = '0'] = match;
  const value = Number(digits) * (multipliers[suffix] ?? 1) * 10 ** Number(exponent) * 1000;
  return Math.ceil(Number(value.toFixed(6)));
}
