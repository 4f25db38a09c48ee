import type { PortRange } from '../../allocation/port-allocator.ts';
import { isNotFound } from '../../client/errors.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import { ipAddresses, type ResourceType, serviceCIDRs, services } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Service } from '../../objects/core.generated.ts';
import { AllocationState } from './allocation-state.ts';
import { audit, type Finding } from './plan-audit.ts';
import { viewOf } from './plan-view.ts';
import { rangesOf } from './ranges.ts';

/** What an audit of a whole cluster found. */
export interface ClusterAudit {
  readonly services: number;
  /** Undefined where the server has no IPAddresses. */
  readonly addresses: number | undefined;
  /** Sorted by kind, key, reason and value. */
  readonly findings: readonly Finding[];
}

/** Reads a cluster once and says what is wrong with its addresses and node ports. Throws what a list throws. */
export async function auditCluster(transport: Transport, nodePorts: PortRange): Promise<ClusterAudit> {
  // IPAddresses between two looks at Services: what is created or deleted meanwhile shows as a change of Services.
  const cidrs = await listAll(transport, serviceCIDRs);
  const before = await listAll(transport, services);
  const addresses = await listAll(transport, ipAddresses);
  const after = await listAll(transport, services);
  const allocations = new AllocationState(nodePorts);
  allocations.setCidrs(rangesOf(cidrs?.values() ?? [], undefined).cidrs);
  const present = after ?? new Map<ObjectKey, Service>();
  for (const service of present.values())
    allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
  const moved = (key: string): boolean =>
    before?.get(key)?.metadata.resourceVersion !== after?.get(key)?.metadata.resourceVersion;
  const findings = [
    ...audit({
      allocations,
      services: present.values(),
      addresses,
      serviceOfKey: (key) => present.get(key),
    }),
  ].flatMap((finding) => (finding === undefined || moved(finding.key) ? [] : [finding]));
  const order = ({ kind, key, reason, value }: Finding): string => [kind, key, reason, value].join(' ');
  return {
    services: present.size,
    addresses: addresses?.size,
    findings: findings.sort((a, b) => (order(a) < order(b) ? -1 : 1)),
  };
}

/** All objects of a resource by key; undefined where the server does not have it. */
async function listAll<T extends KubeObject>(
  transport: Transport,
  resource: ResourceType<T>,
): Promise<Map<string, T> | undefined> {
  const all = new Map<string, T>();
  try {
    for await (const page of new ResourceClient(transport, resource).pages()) {
      for (const object of page.items) all.set(keyOf(object), object);
    }
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
  return all;
}
