import {
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
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Labels } from '../../objects/labels/label-selector.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { EgressFirewall, EgressIP, EgressQoS } from '../../objects/types/openshift.ts';
import { isFinished } from '../../objects/pods.ts';
import { type QoSRules, qosRules } from '../egress/egress-plan.ts';
import { type EgressRule, egressRules } from '../egress/egress-plan.ts';
import type { ForwardingPlan } from '../forwarding/forwarding-plan.ts';
import { planForwarding } from '../forwarding/planner.ts';
import { cidrContains, type ForwardingOptions } from '../forwarding/node-plan.ts';
import { type FirewallRules, type FirewallSurroundings, firewallRules } from '../policy/egress-firewall.ts';
import { type PolicyPod, policyPod, type PolicySide } from '../policy/network-policy.ts';
import { policyRules, type PolicyRules } from '../policy/network-policy.ts';

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
}

/** A cluster as packets find it. */
export class ClusterView {
  readonly objects: ClusterObjects;
  readonly options: ForwardingOptions;
  readonly policies: readonly PolicyRules[];
  /** In their order. */
  readonly egressRules: readonly EgressRule[];
  readonly #qos: ReadonlyMap<string, QoSRules>;
  readonly #firewalls: ReadonlyMap<string, FirewallRules>;
  readonly #namespaceLabels: ReadonlyMap<string, Labels>;
  readonly #podAt = new Map<string, Pod>();
  readonly #nodeAt = new Map<string, Node>();
  readonly #plans = new Map<string, ForwardingPlan>();

  constructor(objects: ClusterObjects, options: ForwardingOptions) {
    this.objects = objects;
    this.options = options;
    this.policies = objects.policies.map(policyRules);
    this.#firewalls = new Map(
      objects.firewalls.map((firewall) => [firewall.metadata.namespace ?? '', firewallRules(firewall)]),
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
    for (const pod of objects.pods) {
      // The address of a Pod that has ended may be another Pod's by now.
      if (pod.spec.hostNetwork === true || isFinished(pod)) continue;
      // Of two Pods with one address, the one that runs has it.
      for (const { canonical } of addressesOfPod(pod)) {
        if (!this.#podAt.has(canonical) || isRunning(pod)) this.#podAt.set(canonical, pod);
      }
    }
  }

  pod(key: ObjectKey): Pod | undefined {
    return this.objects.pods.find((pod) => keyOf(pod) === key);
  }

  node(name: string): Node | undefined {
    return this.objects.nodes.find(({ metadata }) => metadata.name === name);
  }

  service(key: ObjectKey): Service | undefined {
    return this.objects.services.find((service) => keyOf(service) === key);
  }

  hasNamespace(name: string): boolean {
    return this.#namespaceLabels.has(name);
  }

  /** The Pod that has an address for itself. */
  podAt(address: string): Pod | undefined {
    return this.#podAt.get(address);
  }

  /** The node that has an address. */
  nodeAt(address: string): Node | undefined {
    return this.#nodeAt.get(address);
  }

  /** Whether an address is in the ranges of Pods or Services, to which no route leads from outside. */
  isInside(address: string): boolean {
    const parsed = parseAddress(address);
    const ranges = [...podRanges(this.objects.nodes, this.options), ...this.options.serviceCIDRs];
    return (
      this.#podAt.has(address) ||
      this.objects.services.some(
        ({ spec }) => spec.clusterIP === address || spec.clusterIPs?.includes(address),
      ) ||
      (parsed !== undefined && ranges.some((range) => cidrContains(range, parsed)))
    );
  }

  /** The owner of an address, for policies. */
  sideAt(address: string): PolicySide {
    const pod = this.#podAt.get(address);
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
    return {
      clusterCidrs: podRanges(this.objects.nodes, this.options),
      nodes: this.objects.nodes.map((node) => ({
        labels: node.metadata.labels ?? {},
        addresses: addressesOfNode(node).map(({ canonical }) => canonical),
      })),
      names,
    };
  }

  /** The forwarding plan of a node; its addresses are those of the Node object. */
  forwardingPlan(node: Node): ForwardingPlan {
    const name = node.metadata.name ?? '';
    let plan = this.#plans.get(name);
    if (plan === undefined) {
      const addresses = addressesOfNode(node);
      plan = planForwarding(
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
      this.#plans.set(name, plan);
    }
    return plan;
  }
}

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
