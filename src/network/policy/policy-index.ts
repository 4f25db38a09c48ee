import { type IPFamily, ipFamilies } from '../../objects/address.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import type { Labels } from '../../objects/selectors/label-selector.ts';
import { matchesLabels } from '../../objects/selectors/labels.ts';
import type { Direction, NetworkPolicyRule, PolicyPeer, PolicyPort, PolicyRules } from './network-policy.ts';
import { type AddressedPod, AddressHolders, PodSet, type PodSetSource } from './policy-plan.ts';
import type { FirewallFilter } from './egress-firewall.ts';
import { addressRanges, portRanges } from './policy-plan.ts';
import { type FilterRule, type FilterSet, type PolicyPlan, selfSets } from './policy-plan.ts';
import {
  blockHas,
  isOfFamily,
  podAddressesOf,
  podMatcher,
  peerKey,
  onlyNamespaceOf,
} from './policy-verdict.ts';

const directions: readonly Direction[] = ['ingress', 'egress'];

/** The chains of one policy, and the sets that they name. */
interface CompiledPolicy {
  readonly policy: PolicyRules;
  readonly chains: Readonly<Partial<Record<Direction, string>>>;
  readonly rules: ReadonlyMap<string, readonly FilterRule[]>;
  readonly sets: ReadonlyMap<string, FilterSet>;
}

/** The isolation of a Pod in a direction. */
interface Isolation {
  readonly chain: string;
  readonly steps: readonly FilterRule[];
  readonly policies: readonly CompiledPolicy[];
}

/**
 * Policies, Pods and namespaces, as far as a node needs them. A change costs time by what depends on it: each
 * selector is matched once with a changed Pod.
 */
export class PolicyIndex {
  readonly #node: string;
  readonly #hash: (text: string) => string;
  /** Each with the addresses that it holds: see {@link AddressHolders}. */
  readonly #pods = new Map<ObjectKey, AddressedPod>();
  readonly #holders = new AddressHolders();
  /** The keys of the Pods of a namespace. */
  readonly #byNamespace = new Map<string, Set<ObjectKey>>();
  readonly #policies = new Map<ObjectKey, CompiledPolicy>();
  #firewalls: ReadonlyMap<string, FirewallFilter> = new Map();
  /** By name; policies with one selector share a set. */
  readonly #podSets = new Map<string, PodSet>();
  /** Of Pods as they are, with the policies as they are. */
  #isolations = new WeakMap<AddressedPod, Readonly<Partial<Record<Direction, Isolation>>>>();
  /** Policies have changed since sets were last looked at that no policy names. */
  #mayHaveUnused = false;

  /**
   * @param node whose Pods are filtered.
   * @param hash never the same for two texts, and as it is in a name: letters and digits.
   */
  constructor(node: string, hash: (text: string) => string) {
    this.#node = node;
    this.#hash = hash;
  }

  /**
   * Adds or changes a Pod; undefined: it is gone. An address that Pods share for a moment is that of the last one to get
   * it.
   *
   * @returns whether policies see a difference.
   */
  setPod(key: ObjectKey, pod: AddressedPod | undefined): boolean {
    const changed = this.#holders.set(key, pod);
    for (const [each, held] of changed) this.#setHeld(each, held);
    return changed.size > 0;
  }

  #setHeld(key: ObjectKey, pod: AddressedPod | undefined): void {
    const { namespace } = (pod ?? this.#pods.get(key))?.pod ?? { namespace: '' };
    this.#keep(key, namespace, pod);
    const peer = pod === undefined || pod.pod.hostNetwork ? undefined : pod;
    for (const set of this.#podSets.values()) {
      if (set.namespace === undefined || set.namespace === namespace) set.update(key, peer);
    }
  }

  /** The namespace has these labels from now on. @returns whether policies see a difference. */
  setNamespaceLabels(namespace: string, namespaceLabels: Labels): boolean {
    const changed = this.#podsIn(namespace).filter(([key]) => {
      const given = this.#holders.get(key);
      return given !== undefined && this.setPod(key, { ...given, pod: { ...given.pod, namespaceLabels } });
    });
    return changed.length > 0;
  }

  /** Adds or changes a policy; undefined: it is gone. */
  setPolicy(key: ObjectKey, policy: PolicyRules | undefined): void {
    if (policy === undefined) this.#policies.delete(key);
    else this.#policies.set(key, this.#compile(policy));
    this.#mayHaveUnused = true;
    this.#isolations = new WeakMap();
  }

  /** Replaces the EgressFirewalls, by namespace. */
  setFirewalls(firewalls: ReadonlyMap<string, FirewallFilter>): void {
    this.#firewalls = firewalls;
  }

  /** The present plan of the node's filters; later changes do not touch it. */
  plan(): PolicyPlan {
    this.#forgetUnused();
    const sets = new Map<string, FilterSet>();
    const chains = new Map<string, readonly FilterRule[]>();
    const subjects = {
      ingress: new Map<string, string>(),
      egress: new Map<string, string>(),
      firewall: new Map<string, string>(),
    };
    const byNamespace = Map.groupBy(this.#policies.values(), ({ policy }) => policy.namespace);
    const used = new Set<CompiledPolicy>();
    for (const each of this.#pods.values()) {
      const { pod, addresses } = each;
      if (pod.node !== this.#node || pod.hostNetwork || addresses.length === 0) continue;
      const firewall = this.#firewalls.get(pod.namespace);
      if (firewall !== undefined) {
        chains.set(firewall.chain, firewall.rules);
        for (const [name, set] of firewall.sets) sets.set(name, set);
        for (const address of addresses) subjects.firewall.set(address, firewall.chain);
      }
      const isolations = this.#isolationsOf(each, byNamespace.get(pod.namespace) ?? []);
      for (const direction of directions) {
        const isolation = isolations[direction];
        if (isolation === undefined) continue;
        chains.set(isolation.chain, isolation.steps);
        for (const address of addresses) subjects[direction].set(address, isolation.chain);
        for (const policy of isolation.policies) used.add(policy);
      }
    }
    for (const policy of used) {
      for (const [name, rules] of policy.rules) chains.set(name, rules);
      // As it is now: a set of Pods goes on with them, while the plan is written.
      for (const [name, { kind, family, elements }] of policy.sets)
        sets.set(name, { kind, family, elements });
    }
    const filtered = [...new Set([...subjects.ingress.keys(), ...subjects.egress.keys()])];
    for (const family of ipFamilies) {
      const elements = new Set(filtered.filter((address) => isOfFamily(address, family)));
      sets.set(selfSets[family], { kind: 'self', family, elements });
    }
    return { sets, chains, subjects };
  }

  #isolationsOf(
    each: AddressedPod,
    policies: readonly CompiledPolicy[],
  ): Readonly<Partial<Record<Direction, Isolation>>> {
    const known = this.#isolations.get(each);
    if (known !== undefined) return known;
    const selecting = policies.filter(({ policy }) => matchesLabels(policy.podSelector, each.pod.labels));
    const found: Partial<Record<Direction, Isolation>> = {};
    for (const direction of directions) {
      const isolating = selecting.filter(({ chains }) => chains[direction] !== undefined);
      if (isolating.length === 0) continue;
      const names = [...new Set(isolating.map(({ chains }) => chains[direction] ?? ''))].sort();
      found[direction] = {
        chain: `${direction}-${this.#name(names)}`,
        steps: [...names.map((chain) => ({ kind: 'policy', chain }) as const), drop],
        policies: isolating,
      };
    }
    this.#isolations.set(each, found);
    return found;
  }

  #keep(key: ObjectKey, namespace: string, pod: AddressedPod | undefined): void {
    const keys = this.#byNamespace.get(namespace) ?? new Set();
    this.#byNamespace.set(namespace, keys);
    if (pod === undefined) {
      this.#pods.delete(key);
      keys.delete(key);
    } else {
      this.#pods.set(key, pod);
      keys.add(key);
    }
  }

  #podsIn(namespace: string): (readonly [ObjectKey, AddressedPod])[] {
    return [...(this.#byNamespace.get(namespace) ?? [])].flatMap((key) => {
      const pod = this.#pods.get(key);
      return pod === undefined ? [] : [[key, pod] as const];
    });
  }

  #forgetUnused(): void {
    if (!this.#mayHaveUnused) return;
    this.#mayHaveUnused = false;
    const used = new Set<string>();
    for (const { sets } of this.#policies.values()) for (const name of sets.keys()) used.add(name);
    for (const name of this.#podSets.keys()) if (!used.has(name)) this.#podSets.delete(name);
  }

  #compile(policy: PolicyRules): CompiledPolicy {
    const sets = new Map<string, FilterSet>();
    const rules = new Map<string, readonly FilterRule[]>();
    const chains: Partial<Record<Direction, string>> = {};
    for (const direction of directions) {
      const given = policy[direction];
      if (given === undefined) continue;
      const steps = given.flatMap((rule) => this.#compileRule(policy, rule, direction, sets));
      const chain = `policy-${this.#name([direction, steps])}`;
      chains[direction] = chain;
      rules.set(chain, steps);
    }
    return { policy, chains, rules, sets };
  }

  #compileRule(
    policy: PolicyRules,
    { peers, ports }: NetworkPolicyRule,
    direction: Direction,
    sets: Map<string, FilterSet>,
  ): FilterRule[] {
    const numbered = ports === 'all' ? undefined : this.#portSet(ports, sets);
    const named = ports === 'all' ? [] : ports.filter(isNamed);
    const rules: FilterRule[] = [];
    const allow = (step: Partial<Extract<FilterRule, { kind: 'allow' }>>): void => {
      const none = { family: undefined, peers: undefined, ports: undefined, endpoints: undefined };
      rules.push({ kind: 'allow', direction, ...none, ...step });
    };
    for (const peer of peers === 'all' ? [undefined] : peers) {
      for (const family of ipFamilies) {
        const other = peer === undefined ? undefined : this.#peerSet(peer, policy.namespace, family, sets);
        if (peer !== undefined && other === undefined) continue;
        const side = { family, peers: other };
        if (ports === 'all') allow(side);
        if (numbered !== undefined) allow({ ...side, ports: numbered });
        for (const port of named) {
          const destination = direction === 'ingress' ? ownPods(policy) : (peer ?? everyPod);
          const endpoints = this.#endpointSet(destination, policy.namespace, port, family, sets);
          allow(direction === 'ingress' ? { ...side, endpoints } : { family, endpoints });
        }
      }
    }
    return rules;
  }

  /** @returns undefined: no Pod of the family matches. */
  #peerSet(
    peer: PolicyPeer,
    namespace: string,
    family: IPFamily,
    sets: Map<string, FilterSet>,
  ): string | undefined {
    if (peer.kind === 'pods') {
      const matches = podMatcher(peer, namespace);
      return this.#podSet([peerKey(peer, namespace)], sets, {
        ...{ kind: 'address', family, namespace: onlyNamespaceOf(peer, namespace) },
        elementsOf: (pod) => (matches(pod.pod) ? podAddressesOf(pod, family) : []),
      });
    }
    if (peer.cidr?.family !== family) return undefined;
    const elements = addressRanges(peer.cidr, peer.except);
    if (elements.length === 0) return undefined;
    const name = `ranges-${this.#name(elements)}`;
    sets.set(name, { kind: 'range', family, elements: new Set(elements) });
    return name;
  }

  /** The ports of a name, of the Pods that a peer matches. */
  #endpointSet(
    peer: PolicyPeer,
    namespace: string,
    { protocol, port: { name } }: NamedPort,
    family: IPFamily,
    sets: Map<string, FilterSet>,
  ): string {
    const matches = podMatcher(peer, namespace);
    const key = [peerKey(peer, namespace), protocol, name];
    const elementsOf = (pod: AddressedPod): readonly string[] => {
      if (peer.kind === 'pods' && !matches(pod.pod)) return [];
      const numbers = pod.pod.ports
        .filter((each) => each.name === name && each.protocol === protocol)
        .map(({ port }) => port);
      return podAddressesOf(pod, family)
        .filter((address) => peer.kind === 'pods' || blockHas(peer, address))
        .flatMap((address) => numbers.map((number) => `${address} ${protocol.toLowerCase()} ${number}`));
    };
    return this.#podSet(key, sets, {
      ...{ kind: 'endpoint', family, namespace: onlyNamespaceOf(peer, namespace), elementsOf },
    });
  }

  #podSet(key: readonly unknown[], sets: Map<string, FilterSet>, source: PodSetSource): string {
    const { kind, family, namespace } = source;
    const prefix = kind === 'address' ? 'pods' : 'endpoints';
    const name = `${prefix}-${this.#name(key)}-${family === 'IPv4' ? '4' : '6'}`;
    let set = this.#podSets.get(name);
    if (set === undefined) {
      set = new PodSet(source);
      const pods = namespace === undefined ? this.#pods : this.#podsIn(namespace);
      for (const [id, pod] of pods) if (!pod.pod.hostNetwork) set.update(id, pod);
      this.#podSets.set(name, set);
    }
    sets.set(name, set);
    return name;
  }

  /** The set of the ports that have numbers; undefined where none has. */
  #portSet(ports: readonly PolicyPort[], sets: Map<string, FilterSet>): string | undefined {
    const elements = portRanges(
      ports.flatMap(({ protocol, port }) => {
        if (port === 'any') return { protocol, first: 0, last: 65_535 };
        return 'name' in port ? [] : { protocol, first: port.first, last: port.last };
      }),
    );
    if (elements.length === 0) return undefined;
    const name = `ports-${this.#name(elements)}`;
    sets.set(name, { kind: 'port', family: undefined, elements: new Set(elements) });
    return name;
  }

  #name(value: unknown): string {
    return this.#hash(JSON.stringify(value));
  }
}

const drop = { kind: 'drop' } as const;

/** Every Pod of the cluster. */
const everyPod: PolicyPeer = { kind: 'pods', namespaceSelector: [], podSelector: undefined };

interface NamedPort extends PolicyPort {
  readonly port: { readonly name: string };
}

function isNamed(port: PolicyPort): port is NamedPort {
  return port.port !== 'any' && 'name' in port.port;
}

/** The Pods that a policy is about. */
function ownPods({ podSelector }: PolicyRules): PolicyPeer {
  return { kind: 'pods', namespaceSelector: undefined, podSelector };
}
