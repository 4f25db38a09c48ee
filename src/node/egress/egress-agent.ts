import type { Informer } from '../../client/informers/informer.ts';
import {
  egressIPs,
  egressQoSes,
  namespaces as namespacesResource,
  nodes as nodesResource,
  pods as podsResource,
} from '../../client/resources.ts';
import type { Host } from '../../host/host.ts';
import { type EgressPeer, type EgressPlan, planEgress } from '../../network/egress/egress-plan.ts';
import { type QoSRules, qosRules } from '../../network/egress/egress-plan.ts';
import { egressRules } from '../../network/egress/egress-plan.ts';
import { policyPod } from '../../network/policy/network-policy.ts';
import type { AddressedPod } from '../../network/policy/policy-plan.ts';
import { parseAddress, type ParsedCidr, parseCidr } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import { keyOf } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type { Namespace, Node, Pod } from '../../objects/types/core.generated.ts';
import type { EgressIP, EgressQoS } from '../../objects/types/openshift.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext, type ReconcileResult } from '../../runtime/key-loop.ts';
import { trimPod } from '../forwarding/view.ts';
import { Nft } from '../nftables/nft.ts';
import { type ForeignChange, repairMs, TableWatch, worse } from '../nftables/table-watch.ts';
import { EgressRoutes } from './egress-routes.ts';
import { EgressTable, egressTable, isEmpty } from './egress-table.ts';

export interface EgressAgentOptions {
  readonly context: Pick<ControllerContext, 'informers' | 'events' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  /** The bits of the packet mark that the agent may use (`node/nftables/marks.ts`). */
  readonly markMask: number;
  /** The ranges of Pods, which are inside of the cluster; beside those of the Nodes. */
  readonly clusterCIDRs: readonly ParsedCidr[];
}

/** Changes of this time are written together. */
const batchMs = 20;
/** After this time, the routes to other nodes are read again: a network plugin may have changed them. */
const routeCheckMs = 30_000;

/** What others do to rules and routing tables is noticed after this time. */
const routeWatchMs = 3000;

/** The keys of the work queue, of which one is done at a time. */
const everything = 'egress';
const routeWatch = 'routes';

/**
 * Lets the Pods of a cluster leave by the addresses that EgressIPs have assigned, as far as this node has a part in it:
 * it sends what its Pods send out of the cluster to the nodes that have the addresses, and translates what leaves by
 * itself. It marks what its Pods send as EgressQoSes say. The addresses are announced by `node/announce`. What it wrote stays when it ends.
 */
export class EgressAgent implements Runnable {
  readonly #options: EgressAgentOptions;
  readonly #objects: Informer<EgressIP>;
  readonly #qos: Informer<EgressQoS>;
  readonly #pods: Informer<Pod>;
  readonly #namespaces: Informer<Namespace>;
  readonly #nodes: Informer<Node>;
  readonly #loop: KeyLoop<LoopContext>;
  readonly #routes: EgressRoutes;
  readonly #table: EgressTable;
  readonly #watch: TableWatch;
  /** What others have done to the table since the last sync. */
  #foreign: ForeignChange | undefined;
  /** Problems that were logged. */
  #loggedProblems = '';
  /** Events that were sent: a Pod, the EgressIP that serves it, and one that does not. */
  #standbys: ReadonlySet<string> = new Set();

  constructor(options: EgressAgentOptions) {
    const { context, host, nodeName, markMask } = options;
    const { informers } = context;
    this.#options = options;
    this.#routes = new EgressRoutes(host, markMask);
    this.#watch = new TableWatch({
      ...{
        host,
        clock: context.clock,
        log: context.log,
        tables: [`${egressTable.family} ${egressTable.name}`],
      },
      changed: (change) => {
        this.#foreign = worse(this.#foreign, change);
        this.#loop.enqueue(everything, { afterMs: repairMs });
      },
    });
    this.#table = new EgressTable(new Nft(host, this.#watch), markMask);
    this.#objects = informers.informer(egressIPs);
    this.#qos = informers.informer(egressQoSes);
    this.#pods = informers.informer(podsResource, { transform: trimPod });
    this.#namespaces = informers.informer(namespacesResource);
    this.#nodes = informers.informer(nodesResource);
    this.#loop = new KeyLoop(
      context,
      `egress_${nodeName}`,
      { workers: 1, backoff: { base: 1000, max: 30_000 } },
      (loop) => {
        for (const source of [this.#objects, this.#qos, this.#pods, this.#namespaces, this.#nodes])
          loop.waitFor(source);
        return (key) => (key === routeWatch ? this.#watchRoutes() : this.#sync());
      },
    );
    const changed = (): void => this.#loop.enqueue(everything, { afterMs: batchMs });
    // Without objects, Pods and nodes may change as they like.
    const changedIfAny = (): void => {
      if (this.#hasObjects) changed();
    };
    this.#objects.addHandler({ added: changed, updated: changed, deleted: changed });
    this.#qos.addHandler({
      added: changed,
      updated: (object, old) => {
        if (!jsonEqual(object.spec, old.spec)) changed();
      },
      deleted: changed,
    });
    this.#pods.addHandler({
      added: changedIfAny,
      updated: (pod, old) => {
        if (!jsonEqual(partsOfPod(pod), partsOfPod(old))) changedIfAny();
      },
      deleted: changedIfAny,
    });
    this.#namespaces.addHandler({
      added: changedIfAny,
      updated: ({ metadata }, old) => {
        if (!jsonEqual(metadata.labels, old.metadata.labels)) changedIfAny();
      },
    });
    this.#nodes.addHandler({
      added: changedIfAny,
      updated: (node, old) => {
        if (!jsonEqual(peerOf(node), peerOf(old))) changedIfAny();
      },
      deleted: changedIfAny,
    });
    for (const key of [everything, routeWatch]) this.#loop.enqueue(key);
  }

  /** Follows the API until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#watch.start();
    try {
      await this.#loop.run(signal);
    } finally {
      this.#watch.stop();
      await this.#table.close();
    }
  }

  async #watchRoutes(): Promise<ReconcileResult> {
    if (await this.#routes.isChanged()) {
      this.#options.context.log.warn(
        { reason: 'RoutesChanged' },
        'somebody else has changed the ip rules or routes of egress: restoring them',
      );
      this.#routes.invalidate();
      this.#loop.enqueue(everything);
    }
    return { requeueAfterMs: routeWatchMs };
  }

  async #sync(): Promise<ReconcileResult> {
    const { nodeName, clusterCIDRs, context } = this.#options;
    // That it may have changed is nothing new at the start, where the table is made in any case.
    const foreign = this.#foreign;
    this.#foreign = undefined;
    if (foreign !== undefined) this.#table.invalidate();
    const problems: string[] = [];
    const rules = egressRules(this.#objects.cache.values(), problems);
    const qos = new Map<string, QoSRules>();
    for (const object of this.#qos.cache.values()) {
      const read = qosRules(object);
      if (read !== undefined) qos.set(read.namespace, read);
      for (const problem of read?.problems ?? []) problems.push(`${keyOf(object)}: ${problem}`);
    }
    this.#logProblems(problems);
    const peers = [...this.#nodes.cache.values()].map(peerOf);
    const pods = this.#addressed();
    const plan = planEgress({ nodeName, rules, qos, pods, nodes: peers, clusterCIDRs });
    this.#reportStandby(plan.standbys);
    const names = new Set([...plan.leave.values()].flat().filter((name) => name !== nodeName));
    try {
      // The way before what leads to it.
      const numbers = await this.#routes.sync(peers.filter(({ name }) => names.has(name)));
      await this.#table.sync(plan, numbers);
      await this.#routes.prune(names);
      if (foreign !== undefined && foreign !== 'perhaps' && !isEmpty(plan)) {
        context.log.warn(
          { reason: 'TableChanged' },
          'somebody else has changed the rules of egress in the kernel: restored them',
        );
      }
    } catch (error) {
      this.#routes.invalidate();
      this.#table.invalidate();
      throw error;
    }
    return names.size === 0 ? {} : { requeueAfterMs: routeCheckMs };
  }

  get #hasObjects(): boolean {
    return this.#objects.cache.size > 0 || this.#qos.cache.size > 0;
  }

  /** Those that are being deleted first: of two with one address, the later one has it. */
  #addressed(): readonly AddressedPod[] {
    if (!this.#hasObjects) return [];
    const pods = [...this.#pods.cache.values()].filter((pod) => !isFinished(pod));
    const isLeaving = ({ metadata }: Pod): number => (metadata.deletionTimestamp === undefined ? 1 : 0);
    return pods
      .sort((a, b) => isLeaving(a) - isLeaving(b))
      .map((pod) => {
        const { podIPs = [], podIP } = pod.status;
        const texts = podIPs.length > 0 ? podIPs.map(({ ip }) => ip) : [podIP ?? ''];
        const labels = this.#namespaces.cache.get(pod.metadata.namespace ?? '')?.metadata.labels ?? {};
        const addresses = texts.flatMap((text) => parseAddress(text)?.canonical ?? []);
        return { pod: policyPod(pod, labels), addresses };
      });
  }

  /** Sends an Event for each EgressIP that is on standby for a Pod, once, with OVN-Kubernetes' message. */
  #reportStandby(standbys: EgressPlan['standbys']): void {
    const reported = new Set<string>();
    for (const [pod, { servedBy, standby }] of standbys) {
      for (const name of standby) {
        const standbyKey = `${pod} ${servedBy} ${name}`;
        reported.add(standbyKey);
        const object = this.#objects.cache.get(name);
        if (object === undefined || this.#standbys.has(standbyKey)) continue;
        const message = `EgressIP object ${name} will not be configured for pod ${pod.replace('/', '_')} since another egressIP object ${servedBy} is serving it`;
        this.#options.context.events.event(object, 'Warning', 'UndefinedRequest', message);
      }
    }
    this.#standbys = reported;
  }

  #logProblems(problems: readonly string[]): void {
    const text = problems.join('\n');
    if (text === this.#loggedProblems) return;
    this.#loggedProblems = text;
    for (const problem of problems) this.#options.context.log.warn({ reason: 'InvalidEgress' }, problem);
  }
}

/** Takes away all that egress has made on a node. */
export async function removeEgress(host: Host, markMask: number): Promise<void> {
  await new EgressTable(new Nft(host), markMask).cleanUp();
  await new EgressRoutes(host, markMask).cleanUp();
}

function peerOf({ metadata, spec, status }: Node): EgressPeer {
  return {
    name: metadata.name ?? '',
    podCIDRs: (spec.podCIDRs ?? []).flatMap((text) => parseCidr(text) ?? []),
    addresses: (status.addresses ?? []).flatMap(({ address }) => parseAddress(address)?.canonical ?? []),
  };
}

function partsOfPod({ metadata, spec, status }: Pod): readonly unknown[] {
  const { labels, deletionTimestamp } = metadata;
  return [labels, deletionTimestamp === undefined, spec.nodeName, status.phase, status.podIP, status.podIPs];
}
