/**
 * What happens to one packet, found by walking over the objects in the order in which a packet meets kube-proxy's
 * rules. Written apart from the plan and without any of its code; slow, and for canonical input only.
 */
import type {
  EndpointSlice,
  Endpoint as SliceEndpoint,
} from '../../../../src/objects/types/discovery.generated.ts';
import type { Service, ServicePort } from '../../../../src/objects/types/core.generated.ts';

export interface World {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodeName: string;
  readonly zone: string | undefined;
  readonly nodeIP: string;
  readonly detectsPods: boolean;
  readonly masqueradeAll: boolean;
}

export interface Arrival {
  readonly source: 'pod' | 'node' | 'other';
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly protocol: string;
}

interface Hit {
  readonly service: Service;
  readonly port: ServicePort;
  readonly how: 'clusterIP' | 'loadBalancerIP' | 'externalIP' | 'nodePort';
}

/** In the words of `told`. */
export function expected(world: World, packet: Arrival): string {
  const services = world.services.filter(
    ({ metadata, spec }) =>
      metadata.labels?.['service.kubernetes.io/service-proxy-name'] === undefined &&
      spec.clusterIP !== 'None' &&
      spec.type !== 'ExternalName',
  );
  const hit = firstHit(services, world, packet);
  if (hit !== undefined) return atService(hit, world, packet);
  const withPorts = services.filter(({ spec }) => (spec.ports ?? []).length > 0);
  if (withPorts.some(({ spec }) => spec.clusterIP === packet.to)) return 'reject UnknownPort';
  return packet.to.startsWith('10.96.') ? 'drop UnknownClusterIP' : 'pass';
}

function firstHit(services: readonly Service[], world: World, packet: Arrival): Hit | undefined {
  const oldestFirst = services.toSorted((a, b) => (ageAndKey(a) < ageAndKey(b) ? -1 : 1));
  const ways: Record<Hit['how'], (service: Service, port: ServicePort) => boolean> = {
    clusterIP: ({ spec }, { port }) => spec.clusterIP === packet.to && port === packet.port,
    loadBalancerIP: (service, { port }) => balancerIPs(service).includes(packet.to) && port === packet.port,
    externalIP: ({ spec }, { port }) => (spec.externalIPs ?? []).includes(packet.to) && port === packet.port,
    nodePort: (_, { nodePort }) => packet.to === world.nodeIP && nodePort === packet.port,
  };
  for (const how of ['clusterIP', 'loadBalancerIP', 'externalIP', 'nodePort'] as const) {
    for (const service of oldestFirst) {
      for (const port of service.spec.ports ?? []) {
        if (port.protocol === packet.protocol && ways[how](service, port)) return { service, port, how };
      }
    }
  }
  return undefined;
}

function ageAndKey({ metadata }: Service): string {
  return `${metadata.creationTimestamp} ${metadata.namespace}/${metadata.name}`;
}

function balancerIPs({ status }: Service): string[] {
  return (status.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode }) =>
    ip === undefined || ipMode === 'Proxy' ? [] : [ip],
  );
}

function atService({ service, port, how }: Hit, world: World, packet: Arrival): string {
  const { spec } = service;
  if (how === 'loadBalancerIP' && !mayConnect(service, world, packet.from)) return 'drop SourceNotAllowed';
  const all = endpointsOf(service, port, world);
  const ready = all.filter(({ endpoint }) => endpoint.conditions?.ready !== false);
  const draining = all.filter(
    ({ endpoint: { conditions } }) =>
      conditions?.ready === false && conditions.serving !== false && conditions.terminating === true,
  );
  if (ready.length === 0 && draining.length === 0) return 'reject NoEndpoints';

  const isLocal = ({ endpoint }: Found): boolean => endpoint.nodeName === world.nodeName;
  const locals = ready.some(isLocal) ? ready.filter(isLocal) : draining.filter(isLocal);
  const cluster = ready.length > 0 ? nearest(ready, world) : draining;
  const pod = packet.source === 'pod' && world.detectsPods;

  const go = (chosen: readonly Found[], masquerade: boolean): string =>
    chosen.length === 0
      ? 'drop NoLocalEndpoints'
      : chosen
          .map((one) => {
            const hairpin = isLocal(one) && one.address === packet.from;
            return `${one.address}:${one.port}${masquerade || hairpin ? '*' : ''}`;
          })
          .sort()
          .join(', ');
  if (how === 'clusterIP') {
    const masquerade = world.masqueradeAll || (world.detectsPods && !pod);
    return go(spec.internalTrafficPolicy === 'Local' ? locals : cluster, masquerade);
  }
  if (spec.externalTrafficPolicy !== 'Local') return go(cluster, true);
  if (pod) return go(cluster, false);
  if (packet.source === 'node') return go(cluster, true);
  return go(locals, false);
}

function mayConnect(service: Service, world: World, from: string): boolean {
  const prefixes = (service.spec.loadBalancerSourceRanges ?? []).map((range) => {
    const [network = '', bits = ''] = range.split('/');
    return network
      .split('.')
      .slice(0, Number(bits) / 8)
      .join('.');
  });
  if (prefixes.length === 0) return true;
  const within = (ip: string): boolean =>
    prefixes.some((prefix) => prefix === '' || ip === prefix || ip.startsWith(`${prefix}.`));
  return within(from) || (within(world.nodeIP) && balancerIPs(service).includes(from));
}

interface Found {
  readonly address: string;
  readonly port: number;
  readonly endpoint: SliceEndpoint;
}

function endpointsOf(service: Service, port: ServicePort, world: World): Found[] {
  const found = new Map<string, Found>();
  const slices = world.slices
    .filter(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'] === service.metadata.name)
    .sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
  for (const slice of slices) {
    for (const served of slice.ports ?? []) {
      if (served.name !== port.name || served.protocol !== port.protocol) continue;
      for (const endpoint of slice.endpoints ?? []) {
        const one = { address: endpoint.addresses[0] ?? '', port: served.port ?? 0, endpoint };
        const key = `${one.address}:${one.port}`;
        const former = found.get(key);
        if (former === undefined || worth(endpoint) >= worth(former.endpoint)) found.set(key, one);
      }
    }
  }
  return [...found.values()];
}

/** Of two endpoints with one address: whoever is of more use. */
function worth({ conditions }: SliceEndpoint): number {
  if (conditions?.ready !== false) return 10;
  if (conditions.serving === false) return 0;
  return conditions.terminating === true ? 5 : 1;
}

function nearest(ready: Found[], { nodeName, zone }: World): Found[] {
  const nodes = ready.map(({ endpoint }) => (endpoint.hints?.forNodes ?? []).map(({ name }) => name));
  if (nodes.every((names) => names.length > 0) && nodes.some((names) => names.includes(nodeName))) {
    return ready.filter((_, i) => nodes[i]?.includes(nodeName));
  }
  const zones = ready.map(({ endpoint }) => (endpoint.hints?.forZones ?? []).map(({ name }) => name));
  if (zone === undefined) return ready;
  if (zones.every((names) => names.length > 0) && zones.some((names) => names.includes(zone))) {
    return ready.filter((_, i) => zones[i]?.includes(zone));
  }
  return ready;
}
