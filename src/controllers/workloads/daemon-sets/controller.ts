import { compareText } from '../../../objects/go-text.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import { nodes as nodesResource, pods as podsResource } from '../../../client/resources.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { joinKey, type ObjectKey } from '../../../objects/meta.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import type { DaemonSet } from '../../../objects/types/apps.generated.ts';
import type { Node, Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import type { ReconcileResult } from '../../../runtime/key-loop.ts';
import { Reconciler } from '../../../runtime/key-loop.ts';
import { History } from '../history.ts';
import { Ownership } from '../ownership.ts';
import { hashOfTemplate } from '../plan-history.ts';
import { nextAvailable } from '../../../objects/pods.ts';
import { controllerRevisionHash } from '../plan-template.ts';
import { PodControl } from '../pod-control.ts';
import { daemonSets as daemonSetsResource } from '../../../client/resources.ts';
import { lookAgain, StatusWriter } from '../../../runtime/own-writes.ts';
import { planDaemonSet, planDaemonSetStatus } from './plan.ts';

/** Runs one Pod of each DaemonSet on each node (kube-controller-manager's `daemonset-controller`). */
export const daemonSetsController: ControllerDefinition = {
  name: 'daemonset-controller',
  start(context: ControllerContext): readonly Runnable[] {
    return [new DaemonSetReconciler(context)];
  },
};

class DaemonSetReconciler extends Reconciler {
  readonly #daemonSets: Informer<DaemonSet>;
  readonly #nodes: Informer<Node>;
  readonly #ownership: Ownership<DaemonSet, Pod>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<DaemonSet>;
  readonly #history: History<DaemonSet>;

  constructor(context: ControllerContext) {
    super(context, 'daemonset', { workers: 2 });
    this.#daemonSets = this.informer(daemonSetsResource);
    this.#nodes = this.informer(nodesResource);
    const pods = this.informer(podsResource);
    this.#podControl = new PodControl(context, pods);
    this.#status = new StatusWriter(context, this.#daemonSets);
    const enqueue = (key: ObjectKey): void => this.queue.enqueue(key);
    this.#history = new History(context, this.#daemonSets, hashOfTemplate(controllerRevisionHash), enqueue);
    this.#ownership = new Ownership({
      selector: ({ spec }) => spec.selector,
      owners: this.#daemonSets,
      children: pods,
      client: context.clients.for(podsResource),
      enqueue,
    });
    this.waitFor(this.#history.informer);
    this.enqueueChanges(this.#daemonSets);
    const all = (): void => {
      for (const key of this.#daemonSets.cache.keys()) enqueue(key);
    };
    this.#nodes.addHandler({
      added: all,
      updated: (node, old) => {
        const same =
          jsonEqual(node.metadata.labels, old.metadata.labels) &&
          jsonEqual(node.spec.taints, old.spec.taints);
        if (!same) all();
      },
      deleted: all,
    });
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const daemonSet = this.#daemonSets.cache.get(key);
    // While one is being deleted, its revisions may be deleted before it, and no status is written (`syncDaemonSet`).
    if (daemonSet === undefined || daemonSet.metadata.deletionTimestamp !== undefined) return undefined;
    const settled = this.#podControl.settled(key) && this.#status.settled(key) && this.#history.settled(key);
    if (!settled) return { requeueAfter: lookAgain };
    const pods = await this.#ownership.claim(daemonSet, signal);
    const { collisionCount } = daemonSet.status;
    const template = daemonSet.spec.template;
    const revisions = await this.#history.sync(key, daemonSet, template, collisionCount, signal);
    if (revisions === undefined) {
      const status = { ...daemonSet.status, collisionCount: (collisionCount ?? 0) + 1 };
      await this.#status.write(daemonSet, status, signal);
      return undefined;
    }
    const nodes = [...this.#nodes.cache.values()].sort((a, b) =>
      compareText(a.metadata.name ?? '', b.metadata.name ?? ''),
    );
    const hash = revisions.update.metadata.labels?.[controllerRevisionHash] ?? '';
    const now = this.context.clock.now();
    const input = { daemonSet, pods, nodes, hash, now };
    const { create, remove, ended } = planDaemonSet(input);
    for (const { pod, node } of ended) this.#sendEvents(daemonSet, pod, node);
    const failure = await this.#podControl.create(key, daemonSet, create, signal);
    await this.#podControl.delete(key, daemonSet, remove, signal);
    await this.#status.write(daemonSet, planDaemonSetStatus(input), signal);
    if (failure !== undefined) throw failure;
    const live = new Set([hash, ...pods.map(({ metadata }) => metadata.labels?.[controllerRevisionHash])]);
    const limit = daemonSet.spec.revisionHistoryLimit ?? 10;
    const isLive = ({ metadata }: KubeObject): boolean => live.has(metadata.labels?.[controllerRevisionHash]);
    await this.#history.truncate(key, revisions.all, isLive, limit, signal);
    const soon = nextAvailable(pods, daemonSet.spec.minReadySeconds ?? 0, now);
    return soon === undefined ? undefined : { requeueAfter: soon };
  }

  #sendEvents(daemonSet: DaemonSet, { metadata, status }: Pod, node: string): void {
    const { events } = this.context;
    const name = joinKey(metadata.namespace ?? '', metadata.name ?? '');
    if (status.phase === 'Failed') {
      const message = `Found failed daemon pod ${name} on node ${node}, will try to kill it`;
      events.event(daemonSet, 'Warning', 'FailedDaemonPod', message);
    } else {
      const message = `Found succeeded daemon pod ${name} on node ${node}, will try to delete it`;
      events.event(daemonSet, 'Normal', 'SucceededDaemonPod', message);
    }
  }
}
