import { createHash } from 'node:crypto';
import type { Informer } from '../../client/informers/informer.ts';
import {
  namespaces as namespacesResource,
  networkPolicies as networkPoliciesResource,
  pods as podsResource,
} from '../../client/resources.ts';
import type { Host } from '../../host/host.ts';
import { policyPod } from '../../network/policy/network-policy.ts';
import { policyRules } from '../../network/policy/network-policy.ts';
import type { AddressedPod } from '../../network/policy/policy-plan.ts';
import { PolicyIndex } from '../../network/policy/policy-index.ts';
import { parseAddress, type ParsedCidr } from '../../objects/address.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import { listAt, textAt } from '../../objects/json.ts';
import type { Namespace, Pod } from '../../objects/types/core.generated.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext, type ReconcileResult } from '../../runtime/key-loop.ts';
import { otherImplementations } from '../../runtime/other-implementations.ts';
import { trimPod } from '../forwarding/view.ts';
import { Nft } from '../nftables/nft.ts';
import { type ForeignChange, repairMs, TableWatch, worse } from '../nftables/table-watch.ts';
import { EgressFirewalls, type ResolvedName, lookUpName } from './egress-firewalls.ts';
import { policyTable } from './policy-commands.ts';
import { PolicyTable } from './policy-table.ts';

export interface PolicyAgentOptions {
  readonly context: Pick<ControllerContext, 'informers' | 'events' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** After this time, everything is compared with the kernel again. */
  readonly fullSyncMs: number;
  /** Start even where another policy engine is at work. Default false. */
  readonly besideOtherEngines?: boolean;
  /** The names of the cluster's DaemonSets and Deployments, which show other engines; default: none are asked for. */
  readonly workloads?: (signal: AbortSignal) => Promise<Iterable<string>>;
  /** The ranges of Pods, which EgressFirewalls are not about; default those of the Nodes. */
  readonly clusterCIDRs?: readonly ParsedCidr[];
  /** Looks up DNS names of EgressFirewalls; default as the node does. */
  readonly resolve?: (name: string) => Promise<ResolvedName>;
  /** The kernel routes between Pods of the node: no bridge joins them. Default false. */
  readonly routesPods?: boolean;
  /** The kernel counts what it drops, for flows. Default false. */
  readonly recordsDrops?: boolean;
}

/** Another policy engine works on this node. */
class OtherPolicyEngineError extends Error {
  override readonly name = 'OtherPolicyEngineError';
}

/** Changes of this time are written together. */
const batchMs = 20;

const bridgeParameters = ['net/bridge/bridge-nf-call-iptables', 'net/bridge/bridge-nf-call-ip6tables'];

/** The one key of the work queue. */
const everything = 'policies';

/**
 * Filters the traffic of one node's Pods by NetworkPolicies and EgressFirewalls. The rules stay when it ends: the
 * next agent continues from them. One process may have several, a Host each, on shared informers.
 */
export class PolicyAgent implements Runnable {
  readonly #options: PolicyAgentOptions;
  readonly #namespaces: Informer<Namespace>;
  readonly #index: PolicyIndex;
  readonly #table: PolicyTable;
  readonly #loop: KeyLoop<LoopContext>;
  readonly #firewalls: EgressFirewalls;
  #firewallsTouched = true;
  #nextFullSyncMs = Number.NEGATIVE_INFINITY;
  readonly #watch: TableWatch;
  /** What others have done to the table since the last sync. */
  #foreign: ForeignChange | undefined;

  constructor(options: PolicyAgentOptions) {
    const { context, host, nodeName, clusterCIDRs = [], resolve = lookUpName } = options;
    const { informers } = context;
    this.#options = options;
    this.#index = new PolicyIndex(nodeName, hash);
    this.#watch = new TableWatch({
      ...{
        host,
        clock: context.clock,
        log: context.log,
        tables: [`${policyTable.family} ${policyTable.name}`],
      },
      changed: (change) => {
        this.#foreign = worse(this.#foreign, change);
        this.#loop.enqueue(everything, { afterMs: repairMs });
      },
    });
    this.#table = new PolicyTable(new Nft(host, this.#watch), options.recordsDrops);
    const pods = informers.informer(podsResource, { transform: trimPod });
    const policies = informers.informer(networkPoliciesResource);
    this.#namespaces = informers.informer(namespacesResource);
    this.#loop = new KeyLoop(
      context,
      `policy_${nodeName}`,
      { workers: 1, backoff: { base: 1000, max: 30_000 } },
      (loop) => {
        for (const source of [pods, policies, this.#namespaces]) loop.waitFor(source);
        return () => this.#sync();
      },
    );
    const changed = (): void => this.#loop.enqueue(everything, { afterMs: batchMs });
    this.#firewalls = new EgressFirewalls({
      ...{ context, nodeName, clusterCIDRs, resolve },
      changed: () => {
        this.#firewallsTouched = true;
        changed();
      },
    });
    this.#loop.waitFor(this.#firewalls);
    this.#namespaces.addHandler({
      added: (namespace) => this.#setNamespace(namespace, changed),
      updated: (namespace) => this.#setNamespace(namespace, changed),
    });
    const setPod = (pod: Pod): void => {
      if (this.#index.setPod(keyOf(pod), this.#addressed(pod))) changed();
    };
    pods.addHandler({
      added: setPod,
      updated: setPod,
      deleted: (pod) => {
        if (this.#index.setPod(keyOf(pod), undefined)) changed();
      },
    });
    const setPolicy = (policy: NetworkPolicy): void => {
      this.#setPolicy(policy);
      changed();
    };
    policies.addHandler({
      added: setPolicy,
      updated: setPolicy,
      deleted: (policy) => {
        this.#index.setPolicy(keyOf(policy), undefined);
        changed();
      },
    });
    this.#loop.enqueue(everything);
  }

  /**
   * Follows the API until the signal aborts.
   *
   * @throws {OtherPolicyEngineError} before anything is written.
   * @throws {NftError} where nft is missing.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { host, besideOtherEngines = false, routesPods = false, workloads } = this.#options;
    const found = besideOtherEngines
      ? []
      : await otherPolicyEngines(new Nft(host), await workloads?.(signal));
    if (found.length > 0) {
      throw new OtherPolicyEngineError(
        `another policy engine works on this node (${found.join(', ')}): leave NetworkPolicies to it, or remove it first`,
      );
    }
    if (!routesPods) await this.#checkBridges();
    this.#watch.start();
    try {
      await Promise.all([this.#loop.run(signal), this.#firewalls.run(signal)]);
    } finally {
      this.#watch.stop();
      await this.#table.close();
    }
  }

  /** The kernel filters packets that a bridge forwards only with br_netfilter. */
  async #checkBridges(): Promise<void> {
    const { host, context } = this.#options;
    const values = await Promise.all(bridgeParameters.map((name) => host.sysctl.get(name)));
    if (values.every((value) => value === '1')) return;
    context.log.warn(
      { reason: 'NoBridgeNetfilter', parameters: bridgeParameters },
      'Pods of this node that share a bridge are not filtered from each other: load the module br_netfilter, and set these parameters to 1',
    );
  }

  async #sync(): Promise<ReconcileResult> {
    const { context, fullSyncMs } = this.#options;
    const now = context.clock.monotonic();
    const foreign = this.#foreign;
    this.#foreign = undefined;
    if (foreign !== undefined) this.#table.invalidate(foreign !== 'perhaps');
    if (now >= this.#nextFullSyncMs) {
      this.#table.invalidate();
      this.#nextFullSyncMs = now + fullSyncMs;
    }
    if (this.#firewallsTouched) this.#index.setFirewalls(this.#firewalls.filters(hash));
    this.#firewallsTouched = false;
    const { transactions, commands } = await this.#table.sync(this.#index.plan());
    if (foreign !== undefined && foreign !== 'perhaps' && transactions > 0) {
      context.log.warn(
        { reason: 'TableChanged', transactions, commands },
        'somebody else has changed the rules of policies in the kernel: restored them',
      );
    } else if (transactions > 0) {
      const milliseconds = Math.round(context.clock.monotonic() - now);
      context.log.debug({ transactions, commands, milliseconds }, 'wrote policies into the kernel');
    }
    return { requeueAfterMs: Math.max(0, this.#nextFullSyncMs - context.clock.monotonic()) };
  }

  #setNamespace({ metadata }: Namespace, changed: () => void): void {
    if (this.#index.setNamespaceLabels(metadata.name ?? '', metadata.labels ?? {})) changed();
  }

  #setPolicy(policy: NetworkPolicy): void {
    const { log, events } = this.#options.context;
    const rules = policyRules(policy);
    for (const problem of rules.problems) {
      log.warn({ key: keyOf(policy), reason: 'InvalidNetworkPolicy' }, problem);
      events.event(policy, 'Warning', 'InvalidNetworkPolicy', problem);
    }
    this.#index.setPolicy(keyOf(policy), rules);
  }

  /** Undefined for a Pod that has ended: its address may be another one's. */
  #addressed(pod: Pod): AddressedPod | undefined {
    if (isFinished(pod)) return undefined;
    const { podIPs = [], podIP } = pod.status;
    const texts = podIPs.length > 0 ? podIPs.map(({ ip }) => ip) : [podIP ?? ''];
    const addresses = texts.flatMap((text) => parseAddress(text)?.canonical ?? []);
    const labels = this.#namespaces.cache.get(namespaceKey(pod))?.metadata.labels ?? {};
    return { pod: policyPod(pod, labels), addresses };
  }
}

function namespaceKey({ metadata }: Pod): ObjectKey {
  return metadata.namespace ?? '';
}

/** 64 bits in hexadecimal digits. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/**
 * Finds other policy engines by their rules in the kernel and by their workloads: two engines would both drop, and each
 * change would take effect at other times.
 */
export async function otherPolicyEngines(
  nft: Nft,
  workloads: Iterable<string> = [],
): Promise<readonly string[]> {
  const items = listAt(JSON.parse((await nft.list([], 'chains')) ?? '{}'), 'nftables');
  const chains = items.map((item) => ({
    name: textAt(item, 'chain', 'name'),
    table: textAt(item, 'chain', 'table'),
  }));
  return otherImplementations('policies', { chains, workloads });
}
