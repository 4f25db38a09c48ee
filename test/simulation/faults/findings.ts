import { Clients } from '../../../src/client/clients.ts';
import {
  endpoints as endpointsResource,
  endpointSlices,
  ipAddresses,
  pods as podsResource,
  services as servicesResource,
} from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { auditCluster } from '../../../src/controllers/index.ts';
import { planEndpoints } from '../../../src/controllers/endpoints/plan.ts';
import { planSlices } from '../../../src/controllers/endpoint-slices/plan.ts';
import { cleanupFinalizer } from '../../../src/controllers/load-balancer/plan.ts';
import { readyCondition } from '../../../src/controllers/load-balancer/present.ts';
import { addressPools } from '../../../src/controllers/load-balancer/resource.ts';
import type { EndpointSlice } from '../../../src/objects/endpoint-slice.ts';
import type { Endpoints } from '../../../src/objects/endpoints.ts';
import type { Pod } from '../../../src/objects/pod.ts';
import type { Service } from '../../../src/objects/service.ts';
import { parseAddressRange } from '../../../src/allocation/address-range.ts';

/** What is wrong with a cluster that nobody works on any more; empty when it is as it should be. */
export async function findingsIn(client: Transport, allocation: 'server' | 'controller'): Promise<string[]> {
  const clients = new Clients(client);
  const listed = { namespace: 'default' };
  const services = (await clients.for(servicesResource).list(listed)).items.filter(
    ({ metadata }) => metadata.name !== 'kubernetes',
  );
  const pods = (await clients.for(podsResource).list(listed)).items;
  const endpoints = (await clients.for(endpointsResource).list(listed)).items;
  const slices = (await clients.for(endpointSlices).list(listed)).items;
  const { findings } = await auditCluster(client, { first: 30000, last: 30099 });
  const { items: addresses } = await clients.for(ipAddresses).list();
  const { items: pools } = await clients.for(addressPools).list();
  return [
    ...findings.map(({ key, reason, message }) => `${key}: ${reason}: ${message}`),
    ...services.flatMap((service) => unplanned(service, pods, endpoints, slices)),
    ...leftEndpoints(services, endpoints),
    ...balancing(
      services,
      pools.flatMap(({ spec }) => spec.addresses ?? []),
    ),
    ...pools.flatMap(({ spec, status }) => counted(services, spec.addresses ?? [], status?.ipv4?.used)),
    ...(allocation === 'controller' ? services.flatMap(unallocated) : []),
    ...(addresses.length === new Set(addresses.map(({ metadata }) => metadata.name)).size
      ? []
      : ['IPAddress twice']),
  ];
}

/** Writes that the planners would make now. */
function unplanned(
  service: Service,
  pods: readonly Pod[],
  endpoints: readonly Endpoints[],
  slices: readonly EndpointSlice[],
): string[] {
  const name = service.metadata.name ?? '';
  const selector = Object.entries(service.spec.selector ?? {});
  const selected = pods.filter(({ metadata }) =>
    selector.every(([key, value]) => metadata.labels?.[key] === value),
  );
  const existing = endpoints.find(({ metadata }) => metadata.name === name);
  const plan = planEndpoints({ service, pods: selected, existing, triggerTime: undefined });
  const own = slices.filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === name);
  const planned = planSlices({
    service,
    pods: selected,
    existing: own,
    placeOf: () => ({}),
    zones: undefined,
    hadTopologyHints: false,
    triggerTime: undefined,
    maxPerSlice: 100,
  });
  const count = planned.create.length + planned.update.length + planned.delete.length;
  return [
    ...(plan.write === 'none' ? [] : [`${name}: its Endpoints are to be written: ${plan.write}`]),
    ...(count === 0 ? [] : [`${name}: its EndpointSlices are to be written`]),
  ];
}

function leftEndpoints(services: readonly Service[], endpoints: readonly Endpoints[]): string[] {
  const names = new Set(services.map(({ metadata }) => metadata.name));
  return endpoints
    .filter(({ metadata }) => metadata.name !== 'kubernetes' && !names.has(metadata.name))
    .map(({ metadata }) => `${metadata.name ?? ''}: Endpoints without a Service`);
}

/** Addresses given twice, withheld, or kept by who should have none. */
function balancing(services: readonly Service[], addresses: readonly string[]): string[] {
  const found: string[] = [];
  const holders = new Map<string, string>();
  const waiting: string[] = [];
  for (const service of services) {
    const name = service.metadata.name ?? '';
    const given = (service.status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
    if (service.metadata.deletionTimestamp !== undefined) found.push(`${name}: never went`);
    if (service.spec.type !== 'LoadBalancer') {
      if (given.length > 0) found.push(`${name}: keeps ${given.join()}`);
      if (service.metadata.finalizers?.includes(cleanupFinalizer) === true)
        found.push(`${name}: keeps the finalizer`);
      continue;
    }
    for (const address of given) {
      const other = holders.get(address);
      if (other !== undefined) found.push(`${address}: of ${other} and ${name}`);
      holders.set(address, name);
    }
    const reason = readyCondition(service)?.reason;
    if ((reason === 'Assigned') !== given.length > 0)
      found.push(`${name}: ${String(reason)} with ${given.join()}`);
    if (given.length === 0) waiting.push(`${name} (${String(reason)})`);
  }
  const inPools = poolSize(addresses);
  const used = [...holders.keys()].filter((address) => isIn(address, addresses)).length;
  if (waiting.length > 0 && used < inPools)
    found.push(`${waiting.join()}: wait, ${used} of ${inPools} are used`);
  return found;
}

function counted(
  services: readonly Service[],
  addresses: readonly string[],
  used: number | undefined,
): string[] {
  const held = services
    .flatMap(({ status }) => status.loadBalancer?.ingress ?? [])
    .filter(({ ip }) => ip !== undefined && isIn(ip, addresses)).length;
  return held === (used ?? 0) ? [] : [`the pool counts ${String(used)}, ${held} are used`];
}

function unallocated({ metadata, spec }: Service): string[] {
  const lacksAddress = (spec.clusterIP ?? '') === '';
  const lacksPort =
    spec.type !== 'ClusterIP' && (spec.ports ?? []).some(({ nodePort }) => (nodePort ?? 0) === 0);
  return lacksAddress || lacksPort ? [`${metadata.name ?? ''}: has no address or no port`] : [];
}

function poolSize(addresses: readonly string[]): number {
  return addresses.reduce((sum, text) => sum + Number(parseAddressRange(text)?.size ?? 0n), 0);
}

function isIn(address: string, ranges: readonly string[]): boolean {
  const value = parseAddressRange(`${address}-${address}`)?.first;
  return ranges.some((text) => {
    const range = parseAddressRange(text);
    return range !== undefined && value !== undefined && range.first <= value && value <= range.last;
  });
}
