import {
  formatAddress,
  type IPFamily,
  type ParsedAddress,
  type ParsedCidr,
  parseAddress,
  parseCidr,
  ipFamilies,
} from '../../objects/address.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { Namespace, Node, Pod, Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { joinKey, keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Labels } from '../../objects/selectors/label-selector.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { EgressFirewall, EgressIP, EgressQoS } from '../../objects/types/openshift.ts';
import { type NoEndpoint, whyNoEndpoint } from '../forwarding/why-no-endpoint.ts';
import { isFinished } from '../../objects/pods.ts';
import type { AddressPool } from '../../objects/types/servicenet.ts';
import { AddressRange, parseAddressRange } from '../../allocation/address-range.ts';
import { announcedPools, assignedAddresses, type ServiceAddress } from '../announcing/assigned-addresses.ts';
import { serviceOfSlice } from '../forwarding/endpoints.ts';
import { type AnnouncingNode, type Entry, entryOf } from './entry.ts';
import { type QoSRules, qosRules } from '../egress/egress-plan.ts';
import { type EgressRule, egressRules } from '../egress/egress-plan.ts';
import type { ForwardingPlan } from '../forwarding/forwarding-plan.ts';
import { planForwardingSteps } from '../forwarding/planner.ts';
import { cidrContains, type ForwardingOptions } from '../forwarding/node-plan.ts';
import { type FirewallRules, type FirewallSurroundings, firewallRules } from '../policy/egress-firewall.ts';
import { type PolicyPod, policyPod, type PolicySide } from '../policy/network-policy.ts';
import { policyRules, type PolicyRules } from '../policy/network-policy.ts';
import { serviceNameLabel } from '../../objects/endpoints.ts';

/** The objects of a cluster that decide where packets go. */
export interface ClusterObjects {
  readonly namespaces: readonly Namespace[];
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly policies: readonly NetworkPolicy[];
  readonly firewalls: readonly EgressFirewall[];
  readonly egressIPs?: readonly EgressIP[];
  readonly egressQoSes?: readonly EgressQoS[];
  readonly attachments?: readonly NetworkAttachmentDefinition[];
  readonly pools?: readonly AddressPool[];
  /** The agents that announce addresses. */
  readonly agents?: readonly AnnouncingNode[];
}

/** A cluster as packets find it. */
export class ClusterView {
  readonly objects: ClusterObjects;
  readonly options: ForwardingOptions;
  readonly policies: readonly PolicyRules[];
  /** In their order. */
  readonly egressRules: readonly EgressRule[];
  readonly #policiesIn: ReadonlyMap<string, readonly PolicyRules[]>;
  readonly #qos: ReadonlyMap<string, QoSRules>;
  readonly #firewalls: ReadonlyMap<string, FirewallRules>;
  readonly #namespaceLabels: ReadonlyMap<string, Labels>;
  readonly #known: KnownOfCluster;
  readonly #nodeAt = new Map<string, Node>();
  readonly #nodeNamed: ReadonlyMap<string, Node>;
  #surroundings: Omit<FirewallSurroundings, 'names'> | undefined;
  /** Of Pods and Services. */
  #ranges: readonly ParsedCidr[] | undefined;
  /** The addresses of load balancers that pools of this cluster gave. */
  readonly #assigned: ReadonlyMap<string, ServiceAddress>;

  /** @param known what was found of the same Pods, Services, EndpointSlices and Nodes. */
  constructor(objects: ClusterObjects, options: ForwardingOptions, known?: KnownOfCluster) {
    this.objects = objects;
    this.#known = known ?? { podAt: podsByAddress(objects.pods), plans: new Map() };
    this.options = options;
    this.policies = objects.policies.map(policyRules);
    this.#policiesIn = Map.groupBy(this.policies, ({ namespace }) => namespace);
    this.#firewalls = new Map(
      objects.firewalls.map((firewall) => [firewall.metadata.namespace ?? '', firewallRules(firewall)]),
    );
    const slices = Map.groupBy(objects.slices, serviceOfSlice);
    this.#assigned = assignedAddresses(
      objects.services,
      (key) => slices.get(key) ?? [],
      announcedPools(objects.pools ?? []),
    );
    this.egressRules = egressRules(objects.egressIPs ?? []);
    const qos = (objects.egressQoSes ?? []).flatMap((object) => qosRules(object) ?? []);
    this.#qos = new Map(qos.map((rules) => [rules.namespace, rules]));
    this.#namespaceLabels = new Map(
      objects.namespaces.map(({ metadata }) => [metadata.name ?? '', metadata.labels ?? {}]),
    );
    for (const node of objects.nodes) {
      for (const { canonical } of addressesOfNode(node)) this.#nodeAt.set(canonical, node);
    }
    this.#nodeNamed = new Map(objects.nodes.map((node) => [node.metadata.name ?? '', node]));
  }

  /** A view in steps, so that it may be made in slices of time. */
  static *steps(
    objects: ClusterObjects,
    options: ForwardingOptions,
  ): Generator<undefined, ClusterView, undefined> {
    const podAt = new Map<string, Pod>();
    for (const [index, pod] of objects.pods.entries()) {
      if (index % podsOfStep === 0) yield;
      notePod(podAt, pod);
    }
    yield;
    return new ClusterView(objects, options, { podAt, plans: new Map() });
  }

  /** The same cluster with other NetworkPolicies. */
  withPolicies(policies: readonly NetworkPolicy[]): ClusterView {
    return new ClusterView({ ...this.objects, policies }, this.options, this.#known);
  }

  pod(key: ObjectKey): Pod | undefined {
    return this.objects.pods.find((pod) => keyOf(pod) === key);
  }

  node(name: string): Node | undefined {
    return this.#nodeNamed.get(name);
  }

  service(key: ObjectKey): Service | undefined {
    return this.objects.services.find((service) => keyOf(service) === key);
  }

  /** Why a Service has no ready endpoint; undefined where it has one, and where there is no such Service. */
  whyNoEndpoint(key: ObjectKey, port?: number): NoEndpoint | undefined {
    const service = this.service(key);
    if (service === undefined) return undefined;
    const { namespace } = service.metadata;
    const pods = this.objects.pods.filter((pod) => pod.metadata.namespace === namespace);
    return whyNoEndpoint(service, pods, this.slicesOf(key), port);
  }

  /** {@link whyNoEndpoint} for a message, with a blank before it; empty where there is nothing to say. */
  noEndpointDetail(key: ObjectKey | undefined, port?: number): string {
    const why = key === undefined ? undefined : this.whyNoEndpoint(key, port);
    return why === undefined ? '' : ` (${why.reason}: ${why.message})`;
  }

  /** The EndpointSlices of a Service, also of a headless one, which the proxy passes over. */
  slicesOf(key: ObjectKey): readonly EndpointSlice[] {
    return this.objects.slices.filter(
      ({ metadata }) => joinKey(metadata.namespace ?? '', metadata.labels?.[serviceNameLabel] ?? '') === key,
    );
  }

  /** The name of the node that an address is on, of a Pod or its own; undefined outside of the cluster. */
  nodeNameAt(address: string): string | undefined {
    return this.podAt(address)?.spec.nodeName ?? this.nodeAt(address)?.metadata.name;
  }

  /** The Service that has an address, as cluster IP, load balancer address or external IP. */
  serviceAt(address: string): ObjectKey | undefined {
    const found = this.objects.services.find(({ spec, status }) => {
      const own = [spec.clusterIP, ...(spec.clusterIPs ?? []), ...(spec.externalIPs ?? [])];
      return own.includes(address) || status.loadBalancer?.ingress?.some(({ ip }) => ip === address);
    });
    return found === undefined ? undefined : keyOf(found);
  }

  hasNamespace(name: string): boolean {
    return this.#namespaceLabels.has(name);
  }

  /** The Pod that has an address for itself. */
  podAt(address: string): Pod | undefined {
    return this.#known.podAt.get(address);
  }

  /** The node that has an address. */
  nodeAt(address: string): Node | undefined {
    return this.#nodeAt.get(address);
  }

  /** Whether an address is in the ranges of Pods or Services, to which no route leads from outside. */
  isInside(address: string): boolean {
    return (
      this.#known.podAt.has(address) ||
      this.objects.services.some(
        ({ spec }) => spec.clusterIP === address || spec.clusterIPs?.includes(address),
      ) ||
      this.isInRanges(address)
    );
  }

  /** Whether an address is in a range of Pods or of Services. */
  isInRanges(address: string): boolean {
    const parsed = parseAddress(address);
    const ranges = (this.#ranges ??= [
      ...podRanges(this.objects.nodes, this.options),
      ...this.options.serviceCIDRs,
    ]);
    return parsed !== undefined && ranges.some((range) => cidrContains(range, parsed));
  }

  /** The nodes that a packet from outside to an address may reach first. */
  entry(address: string): Entry {
    return entryOf(address, this.#assigned, this.objects.agents ?? [], this.objects.nodes);
  }

  /** An address for a machine outside: of a range for documentation, and free in this cluster. */
  outsideAddress(family: IPFamily): string | undefined {
    const taken = this.#taken().filter((range) => range.family === family);
    for (const range of outsideRanges[family].flatMap((text) => parseAddressRange(text) ?? [])) {
      let value = range.first + 1n;
      for (;;) {
        const { last } = taken.find((one) => one.contains(family, value)) ?? {};
        if (last === undefined) break;
        value = last + 1n;
      }
      if (value <= range.last) return formatAddress(family, value);
    }
    return undefined;
  }

  /** The ranges of Pods, Services and pools, and the single addresses that nodes and Services have. */
  #taken(): readonly AddressRange[] {
    const { nodes, pools = [], services } = this.objects;
    const single = [
      ...nodes.flatMap(addressesOfNode),
      ...services.flatMap(({ spec, status }) =>
        [
          ...(spec.externalIPs ?? []),
          ...(status.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []),
        ].flatMap((text) => parseAddress(text) ?? []),
      ),
    ];
    return [
      ...announcedPools(pools).flatMap(({ ranges }) => ranges),
      ...[...podRanges(nodes, this.options), ...this.options.serviceCIDRs].flatMap(
        ({ canonical }) => parseAddressRange(canonical) ?? [],
      ),
      ...single.map(({ family, value, canonical }) => new AddressRange(family, value, value, canonical)),
    ];
  }

  /** The NetworkPolicies that may isolate one side of a connection: those of a Pod's namespace. */
  policiesOf(side: PolicySide): readonly PolicyRules[] {
    return (side.kind === 'pod' ? this.#policiesIn.get(side.namespace) : undefined) ?? [];
  }

  /** The owner of an address, for policies. */
  sideAt(address: string): PolicySide {
    const pod = this.#known.podAt.get(address);
    if (pod !== undefined) return this.policyPod(pod);
    const node = this.#nodeAt.get(address);
    return node === undefined ? { kind: 'other' } : { kind: 'node', name: node.metadata.name ?? '' };
  }

  policyPod(pod: Pod): PolicyPod {
    return policyPod(pod, this.#namespaceLabels.get(pod.metadata.namespace ?? '') ?? {});
  }

  /** A NetworkAttachmentDefinition. */
  attachment(key: ObjectKey): NetworkAttachmentDefinition | undefined {
    return this.objects.attachments?.find((definition) => keyOf(definition) === key);
  }

  /** The EgressFirewall of a namespace; undefined where there is none. */
  firewall(namespace: string): FirewallRules | undefined {
    return this.#firewalls.get(namespace);
  }

  /** The EgressQoS of a namespace; undefined where there is none. */
  qos(namespace: string): QoSRules | undefined {
    return this.#qos.get(namespace);
  }

  /** The objects that EgressFirewalls refer to. @param names addresses by DNS name. */
  firewallSurroundings(names: FirewallSurroundings['names']): FirewallSurroundings {
    this.#surroundings ??= {
      clusterCidrs: podRanges(this.objects.nodes, this.options),
      nodes: this.objects.nodes.map((node) => ({
        labels: node.metadata.labels ?? {},
        addresses: addressesOfNode(node).map(({ canonical }) => canonical),
      })),
    };
    return { ...this.#surroundings, names };
  }

  /** The forwarding plan of a node; its addresses are those of the Node object. */
  forwardingPlan(node: Node): ForwardingPlan {
    const steps = this.forwardingPlanSteps(node);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  /** The same in steps; none where it is known. */
  *forwardingPlanSteps(node: Node): Generator<undefined, ForwardingPlan, undefined> {
    const { plans } = this.#known;
    const name = node.metadata.name ?? '';
    const before = plans.get(name);
    if (before !== undefined) return before;
    const addresses = addressesOfNode(node);
    const plan = yield* planForwardingSteps(
      this.objects.services,
      this.objects.slices,
      {
        name,
        labels: node.metadata.labels ?? {},
        primaryAddresses: primary(addresses),
        interfaceAddresses: addresses,
      },
      this.options,
    );
    plans.set(name, plan);
    return plan;
  }
}

/** What a view has found of its Pods, Services, EndpointSlices and Nodes, for others with the same. */
interface KnownOfCluster {
  /** The Pod that has an address for itself. */
  readonly podAt: ReadonlyMap<string, Pod>;
  /** Of nodes, by name. */
  readonly plans: Map<string, ForwardingPlan>;
}

/** Pods that are looked at in one step. */
const podsOfStep = 500;

function podsByAddress(pods: readonly Pod[]): ReadonlyMap<string, Pod> {
  const podAt = new Map<string, Pod>();
  for (const pod of pods) notePod(podAt, pod);
  return podAt;
}

function notePod(podAt: Map<string, Pod>, pod: Pod): void {
  // The address of a Pod that has ended may be another Pod's by now.
  if (pod.spec.hostNetwork === true || isFinished(pod)) return;
  // Of two Pods with one address, the one that runs has it.
  for (const { canonical } of addressesOfPod(pod)) {
    if (!podAt.has(canonical) || isRunning(pod)) podAt.set(canonical, pod);
  }
}

/** RFC 5737 and RFC 2544; RFC 3849 and RFC 9637. */
const outsideRanges: Readonly<Record<IPFamily, readonly string[]>> = {
  IPv4: ['203.0.113.0/24', '198.51.100.0/24', '192.0.2.0/24', '198.18.0.0/15'],
  IPv6: ['2001:db8::/32', '3fff::/20'],
};

function isRunning({ metadata, status }: Pod): boolean {
  return status.phase === 'Running' && metadata.deletionTimestamp === undefined;
}

/** The addresses of a Node, internal ones first. */
export function addressesOfNode({ status }: Node): readonly ParsedAddress[] {
  const addresses = status.addresses ?? [];
  return ['InternalIP', 'ExternalIP'].flatMap((wanted) =>
    addresses.flatMap(({ type, address }) => (type === wanted ? (parseAddress(address) ?? []) : [])),
  );
}

/** The addresses of a Pod, the primary family first. */
export function addressesOfPod({ status }: Pod): readonly ParsedAddress[] {
  const { podIPs = status.podIP === undefined ? [] : [{ ip: status.podIP }] } = status;
  return podIPs.flatMap(({ ip = '' }) => parseAddress(ip) ?? []);
}

/** The address of the family that is there; undefined where there is none. */
export function ofFamily(addresses: readonly ParsedAddress[], family: IPFamily): string | undefined {
  return addresses.find((address) => address.family === family)?.canonical;
}

function primary(addresses: readonly ParsedAddress[]): readonly ParsedAddress[] {
  return ipFamilies.flatMap((family) => addresses.find((address) => address.family === family) ?? []);
}

/** The range of the cluster where it is known, else those of the nodes. */
function podRanges(nodes: readonly Node[], { podDetection }: ForwardingOptions): readonly ParsedCidr[] {
  if (podDetection?.by === 'cidr' && podDetection.cidrs.length > 0) return podDetection.cidrs;
  return nodes.flatMap(({ spec }) => (spec.podCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []));
}
