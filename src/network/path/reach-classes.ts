import { parseAddress } from '../../objects/address.ts';
import type { ParsedLabelSelector } from '../../objects/selectors/labels.ts';
import { keyOf } from '../../objects/meta.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { cidrContains } from '../forwarding/node-plan.ts';
import type { Direction, PolicyPeer, PolicyPod } from '../policy/network-policy.ts';
import {
  blockHas,
  directionVerdict,
  onlyNamespaceOf,
  peerKey,
  podMatcher,
} from '../policy/policy-verdict.ts';
import { addressesOfNode, addressesOfPod, type ClusterView } from './cluster-view.ts';

/**
 * Which ends of connections are alike: what `tracePath` reads of one, and of no other end of its class, decides nothing. It
 * is asked once for a pair of classes, and not for each pair of Pods.
 */

/** Where the other end of a connection is: in the namespace that is asked about, or in another one. */
export type OtherEnd = 'own' | 'others';

/** A peer with Pods of policies that may isolate the other end. */
interface PodPeer {
  readonly id: number;
  readonly matches: (pod: PolicyPod) => boolean;
  /** The only namespace that it has Pods of; undefined: of any. */
  readonly only: string | undefined;
}

/** Peers by whose policies have them, and then by the namespace that they have Pods of. */
type PodPeers = Readonly<
  Record<Direction, Readonly<Record<OtherEnd, ReadonlyMap<string | undefined, readonly PodPeer[]>>>>
>;

const annotationOfNetworks = 'k8s.v1.cni.cncf.io/networks';

/** Classes of the Pods and nodes of a cluster. */
export class ReachClasses {
  readonly #view: ClusterView;
  readonly #podPeers: PodPeers;
  readonly #blocks: readonly PolicyPeer[];
  /** Keys of labels that selectors ask for. */
  readonly #labelKeys: readonly string[];
  /** Names of ports that policies have. */
  readonly #portNames: ReadonlySet<string>;
  readonly #clusterCidrs;
  readonly #serviceAddresses: ReadonlySet<string>;
  readonly #nodePorts: ReadonlySet<string>;
  readonly #byLabels = new Map<string, string>();
  readonly #blocksAt = new Map<string, string>();

  /** @param namespace that is asked about: its Pods are one end of each connection. */
  constructor(view: ClusterView, namespace: string) {
    this.#view = view;
    const blocks = new Map<string, PolicyPeer>();
    const labelKeys = new Set<string>();
    const portNames = new Set<string>();
    const note = (selector: ParsedLabelSelector | undefined): void => {
      if (selector === undefined || selector === 'nothing') return;
      for (const { key } of selector) labelKeys.add(key);
    };
    const peersOf = (
      direction: Direction,
      end: OtherEnd,
    ): ReadonlyMap<string | undefined, readonly PodPeer[]> => {
      const found = new Map<string, PodPeer>();
      for (const policy of view.policies) {
        if ((policy.namespace === namespace) !== (end === 'own')) continue;
        note(policy.podSelector);
        for (const { peers, ports } of policy[direction] ?? []) {
          for (const { port } of ports === 'all' ? [] : ports) {
            if (port !== 'any' && 'name' in port) portNames.add(port.name);
          }
          for (const peer of peers === 'all' ? [] : peers) {
            const key = JSON.stringify(peerKey(peer, policy.namespace));
            if (peer.kind === 'ipBlock') blocks.set(key, peer);
            else if (!found.has(key)) {
              note(peer.podSelector);
              const [matches, only] = [
                podMatcher(peer, policy.namespace),
                onlyNamespaceOf(peer, policy.namespace),
              ];
              found.set(key, { id: found.size, matches, only });
            }
          }
        }
      }
      return Map.groupBy(found.values(), ({ only }) => only);
    };
    this.#podPeers = {
      ingress: { own: peersOf('ingress', 'own'), others: peersOf('ingress', 'others') },
      egress: { own: peersOf('egress', 'own'), others: peersOf('egress', 'others') },
    };
    this.#blocks = [...blocks.values()];
    this.#labelKeys = [...labelKeys];
    this.#portNames = portNames;
    const { services } = view.objects;
    this.#clusterCidrs = view.firewallSurroundings(new Map()).clusterCidrs;
    this.#serviceAddresses = new Set(
      services.flatMap(({ spec, status }) => [
        ...[spec.clusterIP ?? '', ...(spec.clusterIPs ?? []), ...(spec.externalIPs ?? [])],
        ...(status.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip),
      ]),
    );
    this.#nodePorts = new Set(
      services.flatMap(({ spec }) =>
        (spec.ports ?? []).map(({ protocol = 'TCP', nodePort = 0 }) => `${protocol} ${nodePort}`),
      ),
    );
  }

  /** Of a Pod that opens connections. @param to where to. */
  ofSource(pod: Pod, to: OtherEnd): string {
    const side = this.#view.policyPod(pod);
    const addresses = addressesOfPod(pod);
    const isOnKnownNode = this.#view.node(side.node) !== undefined;
    const firewall = this.#view.firewall(side.namespace) === undefined ? '' : side.namespace;
    return JSON.stringify([
      ...[side.hostNetwork, isOnKnownNode, firewall, this.#ofLabels(side, 'egress', to)],
      ...addresses.flatMap(({ family, canonical }) => [family, this.#blocksOf(canonical)]),
    ]);
  }

  /** Of a node that opens connections. */
  ofNode(node: Node): string {
    return JSON.stringify([
      'node',
      ...addressesOfNode(node).flatMap(({ family, canonical }) => [family, this.#blocksOf(canonical)]),
    ]);
  }

  /** Of a Pod that is connected to, at its first address. @param from where from. */
  ofDestination(pod: Pod, from: OtherEnd): string {
    const key = keyOf(pod);
    const [address] = addressesOfPod(pod);
    const { metadata, status } = pod;
    const side = this.#view.policyPod(pod);
    const isLed = metadata.annotations?.[annotationOfNetworks] !== undefined;
    if (address === undefined || status.phase !== 'Running' || isLed) return key;
    const isOutOfRanges = !this.#clusterCidrs.some((cidr) => cidrContains(cidr, address));
    if (this.#view.objects.firewalls.length > 0 && isOutOfRanges) return key;
    const { canonical, family } = address;
    if (side.hostNetwork) {
      const isOfNode =
        this.#view.podAt(canonical) === undefined && this.#view.nodeAt(canonical) !== undefined;
      return isOfNode ? JSON.stringify(['node', canonical]) : key;
    }
    // Of two Pods with one address, the other one may have it.
    if (this.#view.podAt(canonical) !== pod) return key;
    const named = side.ports.filter(({ name }) => this.#portNames.has(name));
    return JSON.stringify([this.#ofLabels(side, 'ingress', from), named, family, this.#blocksOf(canonical)]);
  }

  /** Whether a Service may translate what is sent there: nodes differ then, and so do sources. */
  isTranslated(address: string, protocol: Protocol, port: number): boolean {
    const parsed = parseAddress(address);
    return (
      this.#serviceAddresses.has(address) ||
      (this.#view.nodeAt(address) !== undefined && this.#nodePorts.has(`${protocol} ${port}`)) ||
      (parsed !== undefined && this.#view.options.serviceCIDRs.some((cidr) => cidrContains(cidr, parsed)))
    );
  }

  /**
   * The policies that isolate a Pod, and those peers of policies of the other end that have it: by its namespace and the
   * labels that selectors ask for.
   */
  #ofLabels(pod: PolicyPod, direction: Direction, end: OtherEnd): string {
    const labels = this.#labelKeys.map((key) => pod.labels[key] ?? null);
    const key = JSON.stringify([pod.namespace, pod.hostNetwork, direction, end, labels]);
    let known = this.#byLabels.get(key);
    if (known === undefined) {
      const byNamespace = this.#podPeers[direction === 'egress' ? 'ingress' : 'egress'][end];
      const peers = [pod.namespace, undefined]
        .flatMap((namespace) => byNamespace.get(namespace) ?? [])
        .filter(({ matches }) => matches(pod))
        .map(({ id }) => id);
      known = JSON.stringify([this.#isolating(pod, direction), peers]);
      this.#byLabels.set(key, known);
    }
    return known;
  }

  #isolating(pod: PolicyPod, direction: Direction): readonly string[] {
    const other = { kind: 'other' } as const;
    const [source, destination] = direction === 'egress' ? [pod, other] : [other, pod];
    const rest = { sourceAddress: '', destinationAddress: '', protocol: 'TCP', port: 1 } as const;
    const connection = { source, destination, ...rest };
    const verdict = directionVerdict(this.#view.policiesOf(pod), connection, direction);
    return verdict.policies.map(({ policy }) => policy);
  }

  /** Which blocks of addresses of policies have an address. */
  #blocksOf(address: string): string {
    let known = this.#blocksAt.get(address);
    if (known === undefined) {
      known = this.#blocks.map((block) => (blockHas(block, address) ? '1' : '0')).join('');
      this.#blocksAt.set(address, known);
    }
    return known;
  }
}
