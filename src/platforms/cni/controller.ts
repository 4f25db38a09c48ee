import { isConflict, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  ipPools,
  networkAttachmentDefinitions,
  overlappingRangeIPReservations,
  pods as podsResource,
} from '../../client/resources.ts';
import {
  asksForNetworks,
  type Attachment,
  type AttachmentRules,
  resolveAttachments,
} from '../../network/attachments/attachments.ts';
import { AttachmentError } from '../../network/attachments/ipam.ts';
import {
  formatNetworkStatus,
  isAttached,
  networkStatusAnnotation,
} from '../../network/attachments/network-status.ts';
import { networksAnnotation } from '../../network/attachments/attachments.ts';
import { joinKey, keyOf, type ObjectKey, splitKey } from '../../objects/meta.ts';
import { isFinished } from '../../objects/pods.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { type ControllerSpec, type KeyLoop, ownKey, type ReconcileResult } from '../../runtime/key-loop.ts';
import { AddressAssigner, AddressCollector } from './addresses.ts';
import { IPPools, isSandboxOf, newAttempt, type Released, type SandboxAttempt } from './ip-pools.ts';
import {
  type Addressed,
  addressText,
  holdingOf,
  planNetworkStatus,
  planOmissions,
  reservationHolding,
  sandboxMessage,
} from './plan.ts';

/** Milliseconds after which a Pod whose networks cannot be attached is tried again. */
const sandboxRetryMs = 15_000;
/** How often a status is written anew onto a Pod that others write. */
const statusWrites = 10;

/**
 * Attaches the further networks of Pods, as multus and its IPAM plugins do: finds the NetworkAttachmentDefinitions that
 * they name, gives addresses, writes `network-status`, and gives the addresses back when Pods are gone.
 */
export function attachmentsController(rules: AttachmentRules = {}): ControllerSpec {
  return {
    name: 'network-attachment-controller',
    eventSource: 'servicenet-network-attachment',
    queue: 'network_attachment',
    where: [
      { serves: networkAttachmentDefinitions, work: 'network attachments' },
      { serves: ipPools, work: 'address ranges' },
    ],
    build(loop) {
      const pools = new IPPools(loop.context, loop.cache(overlappingRangeIPReservations));
      loop.beside('ip_pool', {}, (own) => {
        const collector = new AddressCollector(own, pools);
        return (_key, signal) => collector.reconcile(signal);
      });
      const reconciler = new AttachmentsReconciler(loop, rules, pools);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class AttachmentsReconciler {
  readonly #context: ControllerContext;
  readonly #loop: KeyLoop;
  readonly #rules: AttachmentRules;
  readonly #pods: Informer<Pod>;
  readonly #definitions: Informer<NetworkAttachmentDefinition>;
  readonly #client: ResourceClient<Pod>;
  readonly #pools: IPPools;
  readonly #assigner: AddressAssigner;
  /** Pods whose networks cannot be attached now. */
  readonly #waiting = new Set<ObjectKey>();
  /** Pods that were deleted, until their addresses are free. */
  readonly #gone = new Map<ObjectKey, Pod>();
  /** Pods of which not all is known to be as their status says, with the attempt that comes next. */
  readonly #attempts = new Map<ObjectKey, SandboxAttempt>();

  constructor(loop: KeyLoop, rules: AttachmentRules, pools: IPPools) {
    this.#context = loop.context;
    this.#loop = loop;
    this.#rules = rules;
    this.#client = loop.context.clients.for(podsResource);

    this.#pods = loop.cache(podsResource);
    this.#definitions = loop.cache(networkAttachmentDefinitions);

    this.#pools = pools;
    this.#assigner = new AddressAssigner(pools);
    loop.waitFor({ synced: (signal) => this.#observeAll(signal) });

    loop.on(this.#pods, (change) => {
      const { kind, object: pod } = change;
      if (kind === 'deleted') {
        this.#assigner.releaseLocal(pod);
        if (asksForNetworks(pod)) this.#gone.set(keyOf(pod), pod);
      }
      return asksForNetworks(pod) ? ownKey(change) : [];
    });
    loop.on(this.#definitions, ({ kind }) => (kind === 'deleted' ? [] : this.#waiting));
  }

  /** Loads the addresses that the plugin `host-local` has given before it gives more. */
  async #observeAll(signal: AbortSignal): Promise<boolean> {
    if (!(await this.#pods.synced(signal)) || !(await this.#definitions.synced(signal))) return false;
    for (const pod of this.#pods.cache.values()) {
      if (isFinished(pod) || !isAttached(pod)) continue;
      this.#assigner.observe(pod, this.#attachments(pod) ?? []);
    }
    return true;
  }

  #attachments(pod: Pod): readonly Attachment[] | undefined {
    try {
      return this.#resolve(pod);
    } catch (error) {
      if (error instanceof AttachmentError) return undefined;
      throw error;
    }
  }

  #resolve(pod: Pod): readonly Attachment[] {
    const find = (namespace: string, name: string): NetworkAttachmentDefinition | undefined =>
      this.#definitions.cache.get(joinKey(namespace, name));
    return resolveAttachments(pod, find, this.#rules);
  }

  #retryWaiting(): void {
    for (const key of this.#waiting) this.#loop.enqueue(key);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    if (pod === undefined || isFinished(pod)) {
      this.#waiting.delete(key);
      if (pod !== undefined) this.#assigner.releaseLocal(pod);
      await this.#release(key, pod ?? this.#gone.get(key), signal);
      this.#gone.delete(key);
      this.#attempts.delete(key);
      return undefined;
    }
    this.#gone.delete(key);
    if (!isWaiting(pod)) {
      this.#waiting.delete(key);
      if (this.#attempts.has(key) && isAttached(pod)) await this.#tidy(key, signal);
      return undefined;
    }
    const attempt = this.#attempt(pod);
    try {
      await this.#attach(pod, attempt, signal);
      this.#waiting.delete(key);
      return undefined;
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      const { events } = this.#context;
      if (error.reason !== undefined) events.event(pod, 'Warning', error.reason, error.message);
      const message = sandboxMessage(pod, attempt.sandbox, error.message);
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', message);
      this.#waiting.add(key);
      return { requeueAfterMs: sandboxRetryMs };
    }
  }

  /** The attempt that goes on after a request that failed, whose writes may come late, or a new one. */
  #attempt(pod: Pod): SandboxAttempt {
    const key = keyOf(pod);
    const last = this.#attempts.get(key);
    if (last !== undefined && isSandboxOf(pod, last.sandbox)) {
      last.hasLeftovers = true;
      return last;
    }
    const attempt = newAttempt(pod, last !== undefined);
    this.#attempts.set(key, attempt);
    return attempt;
  }

  /** @throws {AttachmentError}, and what a request throws. */
  async #attach(pod: Pod, attempt: SandboxAttempt, signal: AbortSignal): Promise<void> {
    const key = keyOf(pod);
    let attachments: readonly Attachment[];
    let addressed: readonly Addressed[];
    try {
      attachments = this.#resolve(pod);
      addressed = await this.#assigner.assign(pod, attachments, attempt, signal);
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      // Meanwhile nothing is held, as with a sandbox that is removed.
      this.#assigner.releaseLocal(pod);
      this.#attempts.set(key, newAttempt(pod, true));
      await this.#pools.release(attempt, signal);
      if (!attempt.hasLeftovers) this.#attempts.delete(key);
      throw error;
    }
    if (!(await this.#writeStatus(pod, addressed, signal))) return;
    if (!attempt.hasLeftovers) this.#attempts.delete(key);
    for (const message of planOmissions(pod, attachments)) {
      this.#context.events.event(pod, 'Warning', 'AttachmentIncomplete', message);
    }
  }

  /**
   * Writes onto the version of the Pod that was read: of several writers the first one says what the Pod has.
   *
   * @returns false where the Pod has changed so that the addresses are not for it: its change comes here.
   */
  async #writeStatus(read: Pod, addressed: readonly Addressed[], signal: AbortSignal): Promise<boolean> {
    const { namespace = '', name = '', uid } = read.metadata;
    let pod = read;
    for (let write = 1; ; write++) {
      const annotations = {
        [networkStatusAnnotation]: formatNetworkStatus(planNetworkStatus(pod, addressed)),
      };
      const patch = { metadata: { uid, resourceVersion: pod.metadata.resourceVersion, annotations } };
      try {
        await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
        return true;
      } catch (error) {
        if (isNotFound(error)) return false;
        if (!isConflict(error) || write === statusWrites) throw error;
      }
      const found = await this.#read(namespace, name, signal);
      if (found === undefined || found.metadata.uid !== uid || !isWaiting(found)) return false;
      if (asked(found) !== asked(read)) return false;
      pod = found;
    }
  }

  /** Gives back what an attached Pod holds and its status does not have: remains of other attempts. */
  async #tidy(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    // Before the Pod is read, as where it is gone.
    const held = await this.#pools.held(key, signal);
    const pod = await this.#read(namespace, name, signal);
    if (pod === undefined || !isAttached(pod)) return;
    await this.#pools.release(
      {
        entries: held.entries.filter(
          ({ pool, entry }) => holdingOf(pod, entry.ifname, addressText(pool, entry)) !== 'held',
        ),
        reservations: held.reservations.filter((each) => reservationHolding(pod, each) !== 'held'),
      },
      signal,
    );
    this.#attempts.delete(key);
    this.#retryWaiting();
  }

  /**
   * A Pod or its sandbox was deleted: its addresses are free, unless another Pod of its name (a StatefulSet's)
   * exists.
   */
  async #release(key: ObjectKey, pod: Pod | undefined, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const { events } = this.#context;
    let released: readonly Released[];
    try {
      // Before the Pod is read: what is given behind that belongs to a later Pod of the name.
      const held = await this.#pools.held(key, signal);
      if (await this.#isThere(namespace, name, signal)) return;
      released = await this.#pools.release(held, signal);
    } catch (error) {
      const message = `failed to garbage collect addresses for pod ${key}`;
      if (pod !== undefined) events.event(pod, 'Warning', 'IPAddressGarbageCollectionFailed', message);
      throw error;
    }
    for (const { pool, address, id } of released) {
      // Addresses of its own sandbox are given back without an Event.
      if (pod === undefined || isSandboxOf(pod, id)) continue;
      const message = `successful cleanup of IP address [${address}] from network ${pool.metadata.name ?? ''}`;
      events.event(pod, 'Normal', 'IPAddressGarbageCollected', message);
    }
    if (released.length > 0) this.#retryWaiting();
  }

  async #isThere(namespace: string, name: string, signal: AbortSignal): Promise<boolean> {
    const pod = await this.#read(namespace, name, signal);
    return pod !== undefined && !isFinished(pod);
  }

  async #read(namespace: string, name: string, signal: AbortSignal): Promise<Pod | undefined> {
    try {
      return await this.#client.get(namespace, name, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** Whether a Pod has addresses of the cluster's network, and not those of its further networks. */
function isWaiting(pod: Pod): boolean {
  const { metadata, spec, status } = pod;
  const isBound = (spec.nodeName ?? '') !== '' && (status.podIPs ?? []).length > 0;
  const isEnding = metadata.deletionTimestamp !== undefined || isFinished(pod);
  return isBound && !isEnding && asksForNetworks(pod) && !isAttached(pod);
}

/** The networks that a Pod asks for, as they are written. */
function asked({ metadata }: Pod): string | undefined {
  return metadata.annotations?.[networksAnnotation];
}
