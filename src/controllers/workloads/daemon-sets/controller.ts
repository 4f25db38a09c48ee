import type { Informer } from '../../../client/informers/informer.ts';
import {
  daemonSets as daemonSetsResource,
  nodes as nodesResource,
  pods as podsResource,
} from '../../../client/resources.ts';
import { compareText } from '../../../objects/formats/go-text.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { joinKey, type KubeObject, type ObjectKey } from '../../../objects/meta.ts';
import { nextAvailable } from '../../../objects/pods.ts';
import type { DaemonSet } from '../../../objects/types/apps.generated.ts';
import type { Node, Pod } from '../../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import {
  type ControllerSpec,
  type KeyLoop,
  ownKey,
  type ReconcileResult,
} from '../../../runtime/key-loop.ts';
import { StatusWriter } from '../../../runtime/status-writer.ts';
import { History } from '../history.ts';
import { Ownership } from '../ownership.ts';
import { hashOfTemplate } from '../plan-history.ts';
import { controllerRevisionHash } from '../plan-template.ts';
import { PodControl } from '../pod-control.ts';
import { planDaemonSet, planDaemonSetStatus } from './plan.ts';

/** Runs one Pod of each DaemonSet on each node (kube-controller-manager's `daemonset-controller`). */
export const daemonSetsController: ControllerSpec = {
  name: 'daemonset-controller',
  eventSource: 'daemonset-controller',
  queue: 'daemonset',
  workers: 2,
  build(loop) {
    const reconciler = new DaemonSetReconciler(loop);
    return (key, signal) => reconciler.reconcile(key, signal);
  },
};

class DaemonSetReconciler {
  readonly #context: ControllerContext;
  readonly #daemonSets: Informer<DaemonSet>;
  readonly #nodes: Informer<Node>;
  readonly #podControl: PodControl;
  readonly #status: StatusWriter<DaemonSet>;
  readonly #history: History<DaemonSet>;
  readonly #ownership: Ownership<DaemonSet, Pod>;

  constructor(loop: KeyLoop) {
    this.#context = loop.context;

    this.#daemonSets = loop.cache(daemonSetsResource);
    this.#nodes = loop.cache(nodesResource);
    const pods = loop.cache(podsResource);

    this.#podControl = new PodControl(loop, pods);
    this.#status = new StatusWriter(loop, this.#daemonSets);
    this.#history = new History(loop, this.#daemonSets, hashOfTemplate(controllerRevisionHash));

    this.#ownership = new Ownership(loop, {
      selector: ({ spec }) => spec.selector,
      owners: this.#daemonSets,
      children: pods,
    });
    loop.on(this.#daemonSets, ownKey);
    loop.on(this.#nodes, (change) => {
      const isAffected = change.kind !== 'updated' || changesPlacement(change.object, change.old);
      return isAffected ? this.#daemonSets.cache.keys() : [];
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const daemonSet = this.#daemonSets.cache.get(key);
    // While one is being deleted, its revisions may be deleted before it, and no status is written (`syncDaemonSet`).
    if (daemonSet === undefined || daemonSet.metadata.deletionTimestamp !== undefined) return undefined;
    const podsMs = this.#podControl.pendingMs(key);
    const waitMs = Math.max(podsMs, this.#status.pendingMs(key), this.#history.pendingMs(key));
    if (waitMs > 0) return { requeueAfterMs: waitMs };

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
    const now = this.#context.clock.now();
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
    return soon === undefined ? undefined : { requeueAfterMs: soon };
  }

  #sendEvents(daemonSet: DaemonSet, { metadata, status }: Pod, node: string): void {
    const { events } = this.#context;
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

function changesPlacement(node: Node, old: Node): boolean {
  return (
    !jsonEqual(node.metadata.labels, old.metadata.labels) || !jsonEqual(node.spec.taints, old.spec.taints)
  );
}
