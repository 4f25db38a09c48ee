import type { PortRange } from '../../allocation/port-allocator.ts';
import { listIfServed } from '../../client/resource-client.ts';
import { ipAddresses, type ResourceType, serviceCIDRs, services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { keyOf, type KubeObject, type ObjectKey } from '../../objects/meta.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { AllocationState, rangesOf } from './allocation-state.ts';
import { type Finding, planAudit } from './plan-audit.ts';
import { viewOf } from './plan-view.ts';

/** The result of an audit. */
export interface ClusterAudit {
  readonly services: number;
  /** Undefined if the server has no IPAddresses. */
  readonly addresses: number | undefined;
  /** Sorted by kind, key, reason and value. */
  readonly findings: readonly Finding[];
}

/** Reads a cluster once and audits its addresses and node ports. Throws what a list throws. */
export async function auditCluster(transport: Transport, nodePorts: PortRange): Promise<ClusterAudit> {
  // Services are read before and after IPAddresses. Those that changed in between are left out.
  const cidrs = await listByKey(transport, serviceCIDRs);
  const before = await listByKey(transport, services);
  const addresses = await listByKey(transport, ipAddresses);
  const after = await listByKey(transport, services);
  const allocations = new AllocationState(nodePorts);
  allocations.setCidrs(rangesOf(cidrs?.values() ?? [], undefined).cidrs);
  const present = after ?? new Map<ObjectKey, Service>();
  for (const service of present.values())
    allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
  const hasChanged = (key: string): boolean =>
    before?.get(key)?.metadata.resourceVersion !== after?.get(key)?.metadata.resourceVersion;
  const findings = [
    ...planAudit({
      allocations,
      services: present.values(),
      addresses,
      serviceOfKey: (key) => present.get(key),
    }),
  ].flatMap((finding) => (finding === undefined || hasChanged(finding.key) ? [] : [finding]));
  const order = ({ kind, key, reason, value }: Finding): string => [kind, key, reason, value].join(' ');
  return {
    services: present.size,
    addresses: addresses?.size,
    findings: findings.sort((a, b) => (order(a) < order(b) ? -1 : 1)),
  };
}

/** All objects of a resource by key; undefined if the server does not have the resource. */
async function listByKey<T extends KubeObject>(
  transport: Transport,
  resource: ResourceType<T>,
): Promise<Map<string, T> | undefined> {
  const all = await listIfServed(transport, resource);
  return all === undefined ? undefined : new Map(all.map((object) => [keyOf(object), object]));
}
