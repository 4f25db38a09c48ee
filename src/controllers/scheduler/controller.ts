import { isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  namespaces,
  nodes as nodesResource,
  deviceClasses,
  persistentVolumeClaims,
  resourceClaims,
  persistentVolumes,
  pods as podsResource,
  storageClasses,
} from '../../client/resources.ts';
import { jsonEqual } from '../../objects/json.ts';
import { conditionOf, joinKey, keyOf, type ObjectKey, transitionTime } from '../../objects/meta.ts';
import { claimsOf, isFinished } from '../../objects/pods.ts';
import type {
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodCondition,
} from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import type { Change, ControllerSpec, KeyLoop } from '../../runtime/key-loop.ts';
import type { DeviceClass, ResourceClaim } from '../../objects/types/resource.generated.ts';
import type { StorageClass } from '../../objects/types/storage.generated.ts';
import { annotations, reservationOf } from '../persistent-volumes/plan.ts';
import { Occupancy } from './occupancy.ts';
import { placePod, type VolumeFilter } from './plan.ts';
import {
  bindClaims,
  type ClaimBinding,
  type ClaimsInput,
  failedBinding,
  unusableClaim,
  ephemeralProblem,
  deviceObstacle,
  type DevicesInput,
  podClaimsOf,
  unusableDevices,
} from './plan-claims.ts';

/** Binds pending Pods to nodes (kube-scheduler, without preemption). */
export const schedulerController: ControllerSpec = {
  name: 'default-scheduler',
  eventSource: 'default-scheduler',
  queue: 'scheduler',
  workers: 16,
  build(loop) {
    const reconciler = new SchedulerReconciler(loop);
    return async (key, signal) => {
      await reconciler.reconcile(key, signal);
      return undefined;
    };
  },
};

class SchedulerReconciler {
  readonly #context: ControllerContext;
  readonly #client: ResourceClient<Pod>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #claimClient: ResourceClient<PersistentVolumeClaim>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumeClient: ResourceClient<PersistentVolume>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #classes: Informer<StorageClass>;
  readonly #namespaces: Informer<Namespace>;
  readonly #resourceClaims: Informer<ResourceClaim>;
  readonly #deviceClasses: Informer<DeviceClass>;
  readonly #occupancy = new Occupancy();
  /** Pods that fit no node, kept until a node changes, or a Pod is gone or has finished. */
  readonly #unschedulable = new Set<ObjectKey>();

  constructor(loop: KeyLoop) {
    this.#context = loop.context;
    this.#client = loop.context.clients.for(podsResource);

    this.#nodes = loop.cache(nodesResource);
    this.#pods = loop.cache(podsResource);
    this.#claimClient = loop.context.clients.for(persistentVolumeClaims);
    this.#claims = loop.cache(persistentVolumeClaims);
    this.#volumeClient = loop.context.clients.for(persistentVolumes);
    this.#volumes = loop.cache(persistentVolumes);
    this.#classes = loop.cache(storageClasses);
    this.#namespaces = loop.cache(namespaces);
    this.#resourceClaims = loop.cache(resourceClaims);
    this.#deviceClasses = loop.cache(deviceClasses, { transform: nameAlone });

    loop.on(this.#pods, (change) => this.#podsToPlace(change));
    loop.on(this.#claims, ({ object: { metadata } }) => this.#takeWaiting(metadata));
    // A volume that is free may be for each of them.
    loop.on(this.#volumes, ({ object }) => this.#takeWaiting(object.spec.claimRef));
    loop.on(this.#classes, () => this.#takeWaiting(undefined));
    loop.on(this.#resourceClaims, ({ object: { metadata } }) =>
      this.#takeUnschedulable(
        (pod) =>
          pod.metadata.namespace === metadata.namespace &&
          podClaimsOf(pod).some(({ name }) => name === metadata.name),
      ),
    );
    loop.on(this.#deviceClasses, ({ kind }) =>
      kind === 'updated' ? [] : this.#takeUnschedulable((pod) => podClaimsOf(pod).length > 0),
    );
    loop.on(this.#nodes, (change) => {
      if (change.kind === 'deleted') this.#occupancy.forget(change.object.metadata.name ?? '');
      const isSame =
        change.kind === 'deleted' ||
        (change.kind === 'updated' && !changesPlacement(change.object, change.old));
      return isSame ? [] : this.#takeUnschedulable();
    });
  }

  #podsToPlace(change: Change<Pod>): readonly ObjectKey[] {
    const pod = change.object;
    if (change.kind === 'deleted') {
      this.#occupancy.leave(pod.metadata.uid ?? '');
      this.#unschedulable.delete(keyOf(pod));
      return this.#takeUnschedulable();
    }
    this.#occupancy.observe(pod);
    const own = isWaiting(pod) ? [keyOf(pod)] : [];
    const old = change.kind === 'updated' ? change.old : undefined;
    if (old !== undefined && isFinished(pod) && !isFinished(old)) {
      return [...own, ...this.#takeUnschedulable()];
    }
    const isNews =
      old?.spec.nodeName !== pod.spec.nodeName || !jsonEqual(old?.metadata.labels, pod.metadata.labels);
    const isNeighbour = (pod.spec.nodeName ?? '') !== '' && isNews;
    return isNeighbour ? [...own, ...this.#takeUnschedulable(looksAtNeighbours)] : own;
  }

  /** Pods that may fit now. */
  #takeUnschedulable(mayFit: (pod: Pod) => boolean = () => true): readonly ObjectKey[] {
    const keys = [...this.#unschedulable].filter((key) => {
      const pod = this.#pods.cache.get(key);
      return pod === undefined || mayFit(pod);
    });
    for (const key of keys) this.#unschedulable.delete(key);
    return keys;
  }

  /** Pods that wait and use this claim; undefined: any claim. */
  #takeWaiting(claim: { readonly namespace?: string; readonly name?: string } | undefined): ObjectKey[] {
    const keys = [...this.#unschedulable].filter((key) => {
      const pod = this.#pods.cache.get(key);
      if (pod === undefined) return false;
      if (claim === undefined) return claimsOf(pod).length > 0;
      return pod.metadata.namespace === claim.namespace && namesClaim(pod, claim.name ?? '');
    });
    for (const key of keys) this.#unschedulable.delete(key);
    return keys;
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const pod = this.#pods.cache.get(key);
    // The Pod was bound just now, and the cache does not show it yet.
    if (pod === undefined || !isWaiting(pod) || this.#occupancy.has(pod.metadata.uid ?? '')) return;
    const input = this.#claimsOf(pod);
    const candidates = [...this.#nodes.cache.values()].map((node) => this.#occupancy.candidate(node));
    const bindings = new Map<string, readonly ClaimBinding[]>();
    const devices = this.#devicesOf(pod);
    const hasClaims = input.claims.length > 0;
    const hasDevices = podClaimsOf(pod).length > 0;
    const volumes: VolumeFilter = {
      problem: unusableClaim(input) ?? unusableDevices(pod, devices),
      obstacle: (node, below) => {
        const found = hasClaims ? bindClaims(input, node, below) : [];
        if ('reasons' in found) return found;
        if (found.length > 0) bindings.set(node.metadata.name ?? '', found);
        return hasDevices ? deviceObstacle(pod, node, devices) : undefined;
      },
    };
    const placement = placePod(
      pod,
      candidates,
      volumes,
      (namespace) => this.#namespaces.cache.get(joinKey('', namespace))?.metadata.labels,
    );
    if ('message' in placement) {
      this.#unschedulable.add(key);
      await this.#report(pod, placement.message, signal);
      return;
    }
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const unbound = bindings.get(placement.node) ?? [];
    if (unbound.length > 0) {
      // It comes back when they are bound.
      this.#unschedulable.add(key);
      for (const binding of unbound) await this.#bindClaim(binding, placement.node, signal);
      const failed = failedBinding(unbound, input);
      if (failed !== undefined) await this.#report(pod, failed, signal);
      return;
    }
    this.#occupancy.take(pod, placement.node);
    try {
      const binding = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { namespace, name, uid },
        target: { kind: 'Node', name: placement.node },
      };
      await this.#client.post(namespace, name, 'binding', binding, { signal });
    } catch (error) {
      this.#occupancy.leave(uid);
      if (isNotFound(error)) return;
      // Another client may have bound it: then the cache will show the node.
      throw error;
    }
    const message = `Successfully assigned ${namespace}/${name} to ${placement.node}`;
    this.#context.events.event(pod, 'Normal', 'Scheduled', message);
  }

  #claimsOf(pod: Pod): ClaimsInput {
    const { namespace = '', uid } = pod.metadata;
    const named = claimsOf(pod);
    const usersOf = (name: string): readonly Pod[] =>
      [...this.#pods.cache.values()].filter(
        (other) =>
          other.metadata.uid !== uid &&
          other.metadata.namespace === namespace &&
          (other.spec.nodeName ?? '') !== '' &&
          !isFinished(other) &&
          namesClaim(other, name),
      );
    return {
      claims: named.map(({ name, isEphemeral }) => {
        const claim = this.#claims.cache.get(joinKey(namespace, name));
        const isExclusive = claim?.spec.accessModes?.includes('ReadWriteOncePod') === true;
        const problem = isEphemeral ? ephemeralProblem(pod, name, claim) : undefined;
        return {
          name,
          claim,
          users: isExclusive ? usersOf(name) : [],
          ...(problem !== undefined && { problem }),
        };
      }),
      volumes: named.length === 0 ? [] : [...this.#volumes.cache.values()],
      classNamed: (name) => this.#classes.cache.get(joinKey('', name)),
    };
  }

  #devicesOf({ metadata: { namespace = '' } }: Pod): DevicesInput {
    return {
      claimNamed: (name) => this.#resourceClaims.cache.get(joinKey(namespace, name)),
      hasClass: (name) => this.#deviceClasses.cache.has(joinKey('', name)),
    };
  }

  /** Gives a claim the volume that is there for the node, or says for which node one is to be made. */
  async #bindClaim({ claim, volume }: ClaimBinding, node: string, signal: AbortSignal): Promise<void> {
    if (volume !== undefined) {
      const reservation = reservationOf(volume, claim);
      if (reservation === undefined) return;
      await this.#volumeClient.mergePatch('', volume.metadata.name ?? '', reservation, { signal });
      return;
    }
    const { namespace = '', name = '', uid, annotations: present } = claim.metadata;
    if (present?.[annotations.selectedNode] !== undefined) return;
    const patch = { metadata: { uid, annotations: { [annotations.selectedNode]: node } } };
    await this.#claimClient.mergePatch(namespace, name, patch, { signal });
  }

  /** Records once why a Pod stays pending. */
  async #report(pod: Pod, message: string, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid, resourceVersion, generation } = pod.metadata;
    const present = conditionOf(pod.status.conditions, 'PodScheduled');
    if (present?.status === 'False' && present.message === message) return;
    const unscheduled = { type: 'PodScheduled', status: 'False' };
    const condition: PodCondition = {
      ...unscheduled,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      lastProbeTime: null,
      lastTransitionTime: transitionTime(pod.status.conditions, unscheduled, this.#context.clock.now()),
      reason: 'Unschedulable',
      message,
    };
    const others = (pod.status.conditions ?? []).filter(({ type }) => type !== condition.type);
    const patch = { metadata: { uid, resourceVersion }, status: { conditions: [...others, condition] } };
    try {
      await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    this.#context.events.event(pod, 'Warning', 'FailedScheduling', message);
  }
}

function nameAlone({ metadata }: DeviceClass): DeviceClass {
  return { metadata, spec: {} };
}

/** True for a Pod that may fit once another one has a node. */
function looksAtNeighbours({ spec: { affinity, topologySpreadConstraints = [] } }: Pod): boolean {
  const required = affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  return required.length > 0 || topologySpreadConstraints.length > 0;
}

function namesClaim(pod: Pod, name: string): boolean {
  return claimsOf(pod).some((claim) => claim.name === name);
}

/** True for a Pod that this scheduler must place. */
function isWaiting({ spec, metadata, status }: Pod): boolean {
  return (
    (spec.nodeName ?? '') === '' &&
    (spec.schedulerName ?? 'default-scheduler') === 'default-scheduler' &&
    (spec.schedulingGates ?? []).length === 0 &&
    metadata.deletionTimestamp === undefined &&
    status.phase === 'Pending'
  );
}

function changesPlacement(node: Node, old: Node): boolean {
  return (
    !jsonEqual(node.spec, old.spec) ||
    !jsonEqual(node.metadata.labels, old.metadata.labels) ||
    !jsonEqual(node.status.allocatable, old.status.allocatable) ||
    conditionOf(node.status.conditions, 'Ready')?.status !==
      conditionOf(old.status.conditions, 'Ready')?.status
  );
}
