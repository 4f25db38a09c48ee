import { chosenEndpoints, isReady, isServing } from '../../objects/endpoints.ts';
import type { EndpointHints, EndpointSlice } from '../../objects/types/discovery.generated.ts';
import {
  type ServiceEndpoint,
  collectEndpoints,
  portKey,
  readPorts,
  type ReadPort,
  isPort,
  isOfOtherProxy,
  serviceOfSlice,
} from './endpoints.ts';
import {
  type NodePlan,
  type PlannedEndpoint,
  type Action,
  type SourceActions,
  type TrafficPolicy,
  type Destination,
  destinationKey,
  type DestinationKind,
  type HealthCheckPlan,
  type NodeFamilyPlan,
  type ServicePlan,
  type ServicePortPlan,
  Problems,
} from './forwarding-plan.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import {
  type ForwardingOptions,
  addressesOfFamily,
  readAddresses,
  type ServiceAddresses,
} from './node-plan.ts';

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
function categorizeEndpoints(
  endpoints: readonly ServiceEndpoint[],
  uses: { readonly cluster: boolean; readonly local: boolean },
  node: Pick<NodePlan, 'name' | 'zone'>,
): UsableEndpoints {
  const chosen = chosenEndpoints(endpoints, sourceOf);
  const areReady = chosen.some(({ source }) => isReady(source));
  return {
    cluster: !uses.cluster ? [] : planned(areReady ? preferred(chosen, node) : chosen),
    local: !uses.local ? [] : planned(chosenEndpoints(endpoints.filter(isLocal), sourceOf)),
    any: chosen.length > 0,
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

function sourceOf({ source }: ServiceEndpoint): ServiceEndpoint['source'] {
  return source;
}

function isLocal({ planned }: ServiceEndpoint): boolean {
  return planned.isLocal;
}

function planned(endpoints: readonly ServiceEndpoint[]): readonly PlannedEndpoint[] {
  return endpoints.map((endpoint) => endpoint.planned);
}

const rejected: Action = { action: 'reject' };
const dropped: Action = { action: 'drop' };
const forwarded: Record<TrafficPolicy, { readonly kept: Action; readonly masqueraded: Action }> = {
  Cluster: {
    kept: { action: 'forward', to: 'Cluster', masquerade: false },
    masqueraded: { action: 'forward', to: 'Cluster', masquerade: true },
  },
  Local: {
    kept: { action: 'forward', to: 'Local', masquerade: false },
    masqueraded: { action: 'forward', to: 'Local', masquerade: true },
  },
};

/** The inputs of a Service port's actions besides its policies. */
export interface ActionInput {
  readonly usable: UsableEndpoints;
  /** Pods can be recognised in the family. */
  readonly detectsPods: boolean;
  readonly masqueradeAll: boolean;
}

/**
 * The actions for connections to a cluster IP (`nftables/proxier.go`): the internal traffic policy decides. Packets
 * that do not come from a Pod are masqueraded, because replies have to come back through this node: the client may
 * be outside and route the Service range here.
 */
function internalActions(
  policy: TrafficPolicy,
  { usable, detectsPods, masqueradeAll }: ActionInput,
): SourceActions {
  if (!usable.any) return everyone(rejected);
  if (policy === 'Local' && usable.local.length === 0) return everyone(dropped);
  const fromElsewhere = forward(policy, masqueradeAll || detectsPods);
  return { pod: forward(policy, masqueradeAll), node: fromElsewhere, other: fromElsewhere };
}

/**
 * The actions for connections to external IPs, load balancer IPs and node ports. Policy Cluster masquerades all
 * clients; policy Local keeps the client's address. Pods and the node itself are not subject to policy Local, as
 * though they went out to a load balancer and came back; only the node is masqueraded then, since the address that
 * it connects from may be the load balancer's.
 */
function externalActions(policy: TrafficPolicy, { usable, detectsPods }: ActionInput): SourceActions {
  if (!usable.any) return everyone(rejected);
  if (policy === 'Cluster') return everyone(forward('Cluster', true));
  const other = usable.local.length === 0 ? dropped : forward('Local', false);
  return {
    pod: detectsPods ? forward('Cluster', false) : other,
    node: forward('Cluster', true),
    other,
  };
}

function forward(to: TrafficPolicy, masquerade: boolean): Action {
  return masquerade ? forwarded[to].masqueraded : forwarded[to].kept;
}

function everyone(action: Action): SourceActions {
  return { pod: action, node: action, other: action };
}

/** The plan of a node for one Service. Pure. */

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
  return candidates.filter(({ source }) => isServing(source)).map((endpoint) => endpoint.planned);
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
