import { Resolver } from 'node:dns/promises';
import type { Informer } from '../../client/informers/informer.ts';
import { egressFirewalls, nodes as nodesResource } from '../../client/resources.ts';
import { type FirewallRules, firewallRules } from '../../network/policy/egress-firewall.ts';
import { type FirewallFilter, firewallFilter } from '../../network/policy/egress-firewall.ts';
import { parseAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import type { EgressFirewall } from '../../objects/types/openshift.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext, type ReconcileResult } from '../../runtime/key-loop.ts';

/** The addresses of a DNS name. */
export interface ResolvedName {
  readonly addresses: readonly string[];
  /** Seconds for which they hold; 0: not known. */
  readonly ttlSeconds: number;
}

export interface EgressFirewallsOptions {
  readonly context: Pick<ControllerContext, 'informers' | 'events' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly nodeName: string;
  /** The ranges of Pods; empty: those of the Nodes. */
  readonly clusterCIDRs: readonly ParsedCidr[];
  /** @throws the system's error where there is no such name. */
  readonly resolve: (name: string) => Promise<ResolvedName>;
  /** Called when {@link EgressFirewalls.filters} may have changed. */
  readonly changed: () => void;
}

/** Milliseconds after which a name without a TTL is looked up again, as OVN-Kubernetes does (`dns_name_resolver`). */
const usualRefreshMs = 30 * 60_000;
/** Milliseconds until a name that was not found is looked up again. */
const retryMs = 30_000;

/** Follows EgressFirewalls with the Nodes and the DNS names that they refer to. */
export class EgressFirewalls {
  readonly #options: EgressFirewallsOptions;
  readonly #firewalls: Informer<EgressFirewall>;
  readonly #nodes: Informer<Node>;
  readonly #names: KeyLoop<LoopContext>;
  readonly #rules = new Map<ObjectKey, FirewallRules>();
  /** Addresses by name, as they were found last. */
  readonly #found = new Map<string, readonly string[]>();
  /** Names whose last lookup failed. */
  readonly #notFound = new Set<string>();

  constructor(options: EgressFirewallsOptions) {
    const { context, nodeName, changed } = options;
    this.#options = options;
    this.#firewalls = context.informers.informer(egressFirewalls);
    this.#nodes = context.informers.informer(nodesResource);
    this.#names = new KeyLoop(context, `policy_names_${nodeName}`, { workers: 4 }, (loop) => {
      loop.waitFor(this.#firewalls);
      return (name) => this.#lookUp(name);
    });
    const set = (firewall: EgressFirewall): void => this.#set(firewall);
    this.#firewalls.addHandler({
      added: set,
      updated: set,
      deleted: (firewall) => {
        this.#rules.delete(keyOf(firewall));
        changed();
      },
    });
    const nodesChanged = (): void => {
      if (this.#rules.size > 0) changed();
    };
    this.#nodes.addHandler({
      added: nodesChanged,
      updated: (node, old) => {
        if (!jsonEqual(partsOf(node), partsOf(old))) nodesChanged();
      },
      deleted: nodesChanged,
    });
  }

  /** Resolves true when all firewalls and Nodes are known, false when the signal aborts first. */
  async synced(signal: AbortSignal): Promise<boolean> {
    const synced = await Promise.all([this.#firewalls.synced(signal), this.#nodes.synced(signal)]);
    return synced.every(Boolean);
  }

  /** Looks names up until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#names.run(signal);
  }

  /** The present filters of EgressFirewalls, by namespace. @param hash see {@link firewallFilter}. */
  filters(hash: (text: string) => string): ReadonlyMap<string, FirewallFilter> {
    const nodes = [...this.#nodes.cache.values()];
    const { clusterCIDRs } = this.#options;
    const surroundings = {
      clusterCidrs:
        clusterCIDRs.length > 0
          ? clusterCIDRs
          : nodes.flatMap(({ spec }) => (spec.podCIDRs ?? []).flatMap((text) => parseCidr(text) ?? [])),
      nodes: nodes.map(({ metadata, status }) => ({
        labels: metadata.labels ?? {},
        addresses: (status.addresses ?? []).flatMap(({ address }) => parseAddress(address)?.canonical ?? []),
      })),
      names: this.#found,
    };
    return new Map(
      [...this.#rules.values()].flatMap((rules) => {
        const filter = firewallFilter(rules, surroundings, hash);
        return filter === undefined ? [] : [[rules.namespace, filter] as const];
      }),
    );
  }

  #set(firewall: EgressFirewall): void {
    const { log, events } = this.#options.context;
    const key = keyOf(firewall);
    const rules = firewallRules(firewall);
    this.#rules.set(key, rules);
    for (const problem of rules.problems) {
      log.warn({ key, reason: 'InvalidEgressFirewall' }, `${problem}: no rule is in force`);
      events.event(firewall, 'Warning', 'InvalidEgressFirewall', problem);
    }
    for (const name of namesOf(rules)) if (!this.#found.has(name)) this.#names.enqueue(name);
    this.#options.changed();
  }

  async #lookUp(name: string): Promise<ReconcileResult> {
    const { context, resolve, changed } = this.#options;
    if (![...this.#rules.values()].some((rules) => namesOf(rules).includes(name))) {
      this.#found.delete(name);
      this.#notFound.delete(name);
      return {};
    }
    try {
      const { addresses, ttlSeconds } = await resolve(name);
      this.#notFound.delete(name);
      const sorted = addresses.toSorted();
      if (!jsonEqual(this.#found.get(name), sorted)) {
        this.#found.set(name, sorted);
        changed();
      }
      return { requeueAfterMs: ttlSeconds > 0 ? ttlSeconds * 1000 : usualRefreshMs };
    } catch (error) {
      if (!this.#notFound.has(name)) {
        const consequence = this.#found.has(name) ? 'its last addresses stay' : 'rules with it match nothing';
        context.log.warn(
          { name, reason: 'NameNotResolved', err: error },
          `cannot look up a name of an EgressFirewall: ${consequence}`,
        );
      }
      this.#notFound.add(name);
      return { requeueAfterMs: retryMs };
    }
  }
}

/** Looks a name up as the node does, in both families. @throws the system's error. */
export async function lookUpName(name: string): Promise<ResolvedName> {
  const resolver = new Resolver();
  const [v4, v6] = await Promise.allSettled([
    resolver.resolve4(name, { ttl: true }),
    resolver.resolve6(name, { ttl: true }),
  ]);
  const found = [v4, v6].flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  if (v4.status === 'rejected' && v6.status === 'rejected') throw v4.reason;
  return {
    addresses: found.map(({ address }) => address),
    ttlSeconds: found.reduce((least, { ttl }) => Math.min(least, ttl), found[0]?.ttl ?? 0),
  };
}

function namesOf({ rules }: FirewallRules): readonly string[] {
  return rules.flatMap(({ to }) => (to.kind === 'name' ? [to.name] : []));
}

/** The parts of a Node that rules depend on. */
function partsOf({ metadata, spec, status }: Node): readonly unknown[] {
  return [metadata.labels, spec.podCIDRs, status.addresses];
}
