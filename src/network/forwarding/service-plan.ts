/** The plan of a node for one Service. Pure. */
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import { externalActions, internalActions } from './actions.ts';
import { categorizeEndpoints } from './categorize.ts';
import { collectEndpoints, type ServiceEndpoint, isServing } from './endpoints.ts';
import {
  type Destination,
  destinationKey,
  type DestinationKind,
  type HealthCheckPlan,
  type NodeFamilyPlan,
  type NodePlan,
  type PlannedEndpoint,
  type ServicePlan,
  type ServicePortPlan,
  type SourceActions,
  type TrafficPolicy,
} from './forwarding-plan.ts';
import type { ForwardingOptions } from './options.ts';
import { portKey, readPorts, type ReadPort, isPort } from './port.ts';
import { Problems } from './problem.ts';
import { addressesOfFamily, readAddresses, type ServiceAddresses } from './service-addresses.ts';
import { isOfOtherProxy, serviceOfSlice } from './service-key.ts';

/**
 * Plans one Service as if there were no other; undefined for those that the proxy skips.
 *
 * @param slices those of the Service, in any order; others are ignored.
 */
export function planService(
  service: Service,
  slices: readonly EndpointSlice[],
  node: NodePlan,
  options: ForwardingOptions,
): ServicePlan | undefined {
  if (isSkipped(service)) return undefined;
  const key = keyOf(service);
  const problems = new Problems();
  const traits: ServiceTraits = {
    key,
    internalTrafficPolicy: internalTrafficPolicy(service),
    externalTrafficPolicy: externalTrafficPolicy(service),
    affinitySeconds: affinitySeconds(service, problems),
    masqueradeAll: options.masqueradeAll,
  };
  const healthPort = healthCheckNodePort(service, problems);
  const read = readPorts(service, key, problems).sort(comparePorts);
  const addresses = readAddresses(service, options, problems);
  const own = slices.filter((slice) => serviceOfSlice(slice) === key).sort(compareNames);
  const ports: ServicePortPlan[] = [];
  const healthChecks: HealthCheckPlan[] = [];
  for (const family of node.families) {
    const found = addressesOfFamily(service, addresses, family, problems);
    if (found === undefined) continue;
    const endpoints = collectEndpoints(own, family.family, node.name, problems);
    for (const port of read) {
      const candidates = endpoints.byPort.get(portKey(port.name, port.protocol)) ?? [];
      ports.push(planPort(port, candidates, found, traits, node, family));
    }
    if (healthPort !== undefined && read.length > 0) {
      const localEndpoints = endpoints.localReadyAddresses;
      healthChecks.push({ family: family.family, port: healthPort, localEndpoints });
    }
  }
  return { key, ports, healthChecks, problems: problems.list() };
}

/** Services of another proxy, and those without a cluster IP (`util/utils.go`, ShouldSkipService). */
function isSkipped(service: Service): boolean {
  const { clusterIP, clusterIPs, type } = service.spec;
  const address = clusterIP ?? clusterIPs?.[0] ?? '';
  return isOfOtherProxy(service) || address === '' || address === 'None' || type === 'ExternalName';
}

/** The settings that all ports of a Service have in common. */
interface ServiceTraits {
  readonly key: ObjectKey;
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly affinitySeconds: number | undefined;
  readonly masqueradeAll: boolean;
}

function planPort(
  port: ReadPort,
  candidates: readonly ServiceEndpoint[],
  addresses: ServiceAddresses,
  traits: ServiceTraits,
  node: NodePlan,
  family: NodeFamilyPlan,
): ServicePortPlan {
  const { key, masqueradeAll } = traits;
  const isExternal =
    port.nodePort !== undefined || addresses.loadBalancerIPs.length > 0 || addresses.externalIPs.length > 0;
  const internalLocal = traits.internalTrafficPolicy === 'Local';
  const externalLocal = traits.externalTrafficPolicy === 'Local';
  const usable = categorizeEndpoints(
    candidates,
    // Policy Local needs the list of policy Cluster too, for Pods and the node.
    { cluster: !internalLocal || isExternal, local: internalLocal || (externalLocal && isExternal) },
    node,
  );
  const input = { usable, detectsPods: family.podDetection !== undefined, masqueradeAll };
  return {
    id: `${key}:${port.name}/${port.protocol}/${family.family}`,
    service: key,
    name: port.name,
    protocol: port.protocol,
    family: family.family,
    clusterIP: addresses.clusterIP,
    port: port.port,
    destinations: planDestinations(
      port,
      addresses,
      family.family,
      internalActions(traits.internalTrafficPolicy, input),
      externalActions(traits.externalTrafficPolicy, input),
    ),
    internalTrafficPolicy: traits.internalTrafficPolicy,
    externalTrafficPolicy: traits.externalTrafficPolicy,
    affinitySeconds: traits.affinitySeconds,
    clusterEndpoints: usable.cluster,
    localEndpoints: usable.local,
    servingEndpoints: port.protocol === 'UDP' ? serving(candidates) : undefined,
  };
}

function planDestinations(
  { protocol, port, nodePort }: ReadPort,
  addresses: ServiceAddresses,
  family: IPFamily,
  internal: SourceActions,
  external: SourceActions,
): Destination[] {
  const planned: Destination[] = [];
  const add = (kind: DestinationKind, address: string | undefined, port: number): void => {
    const key = destinationKey(family, protocol, address, port);
    const sourceRanges = kind === 'loadBalancerIP' ? addresses.sourceRanges : undefined;
    const actions = kind === 'clusterIP' ? internal : external;
    planned.push({ key, kind, address, port, sourceRanges, actions });
  };
  add('clusterIP', addresses.clusterIP, port);
  for (const address of addresses.loadBalancerIPs) add('loadBalancerIP', address, port);
  for (const address of addresses.externalIPs) add('externalIP', address, port);
  if (nodePort !== undefined) add('nodePort', undefined, nodePort);
  return planned;
}

function serving(candidates: readonly ServiceEndpoint[]): readonly PlannedEndpoint[] {
  return candidates.filter(isServing).map((endpoint) => endpoint.planned);
}

function comparePorts(a: ReadPort, b: ReadPort): number {
  return a.protocol === b.protocol ? a.port - b.port : a.protocol < b.protocol ? -1 : 1;
}

function compareNames(a: EndpointSlice, b: EndpointSlice): number {
  const left = a.metadata.name ?? '';
  const right = b.metadata.name ?? '';
  return left === right ? 0 : left < right ? -1 : 1;
}

/** The policy of cluster IPs (`pkg/api/v1/service`, InternalPolicyLocal). */
function internalTrafficPolicy(service: Service): TrafficPolicy {
  return service.spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster';
}

/** The policy of all other destinations; read only of Services that can have some (ExternalPolicyLocal). */
function externalTrafficPolicy(service: Service): TrafficPolicy {
  const { type, externalIPs, externalTrafficPolicy: policy } = service.spec;
  const external = type === 'LoadBalancer' || type === 'NodePort' || (externalIPs ?? []).length > 0;
  return external && policy === 'Local' ? 'Local' : 'Cluster';
}

const defaultAffinitySeconds = 10800;
const maxAffinitySeconds = 86400;

/** Seconds of `sessionAffinity: ClientIP`; undefined without affinity. */
function affinitySeconds(service: Service, problems: Problems): number | undefined {
  const { sessionAffinity, sessionAffinityConfig } = service.spec;
  if (sessionAffinity !== 'ClientIP') return undefined;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxAffinitySeconds) return seconds;
  const what = `spec.sessionAffinityConfig.clientIP.timeoutSeconds: ${seconds} is out of range: ${defaultAffinitySeconds} is used`;
  problems.add('InvalidAffinityTimeout', 'Service', keyOf(service), what);
  return defaultAffinitySeconds;
}

/** The health check port of load balancers with policy Local (NeedsHealthCheck); undefined without one. */
function healthCheckNodePort(service: Service, problems: Problems): number | undefined {
  if (service.spec.type !== 'LoadBalancer' || externalTrafficPolicy(service) !== 'Local') return undefined;
  const port = service.spec.healthCheckNodePort ?? 0;
  if (isPort(port)) return port;
  if (port === 0) {
    const what = 'spec.healthCheckNodePort is not set: load balancers cannot ask this node';
    problems.add('NoHealthCheckNodePort', 'Service', keyOf(service), what);
  } else {
    const what = `spec.healthCheckNodePort: ${port} is out of range`;
    problems.add('InvalidPort', 'Service', keyOf(service), what);
  }
  return undefined;
}
