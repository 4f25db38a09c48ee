import { createHash } from 'node:crypto';
import { isNotFound } from '../../client/errors.ts';
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
  staticAddresses,
} from '../../network/attachments/attachments.ts';
import { AttachmentError } from '../../network/attachments/errors.ts';
import {
  formatNetworkStatus,
  isAttached,
  networkStatusAnnotation,
  networkStatusOf,
} from '../../network/attachments/network-status.ts';
import { formatAddress } from '../../objects/address.ts';
import { joinKey, keyOf, type ObjectKey, splitKey } from '../../objects/key.ts';
import { isFinished } from '../../objects/pods.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/attachments.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import type { ReconcileResult } from '../../runtime/controller.ts';
import { Reconciler } from '../../runtime/reconciler.ts';
import { whereServed } from '../../runtime/where-served.ts';
import { attachmentsName } from '../names.ts';
import { AddressCollector } from './address-collector.ts';
import { HostLocalAddresses } from './host-local.ts';
import { IPPools, type Released } from './ip-pools.ts';
import { type Addressed, planNetworkStatus, planOmissions, sandboxMessage } from './plan-status.ts';

/** Milliseconds after which a Pod whose networks cannot be attached is tried again. */
const sandboxRetry = 15_000;

/**
 * Attaches the further networks of Pods, as multus and its IPAM plugins do: finds the NetworkAttachmentDefinitions that
 * they name, gives addresses, writes `network-status`, and gives the addresses back when Pods are gone.
 */
export function attachmentsController(rules: AttachmentRules = {}): ControllerDefinition {
  return {
    name: attachmentsName,
    start(context: ControllerContext): readonly Runnable[] {
      const reservations = context.informers.informer(overlappingRangeIPReservations);
      const pools = new IPPools(context, reservations);
      const attachments = new AttachmentsReconciler(context, rules, pools);
      const collector = new AddressCollector(context, pools, reservations);
      return [
        whereServed(context, {
          resource: networkAttachmentDefinitions,
          work: 'network attachments',
          runnables: [
            whereServed(context, {
              resource: ipPools,
              work: 'address ranges',
              runnables: [attachments, collector],
            }),
          ],
        }),
      ];
    },
  };
}

class AttachmentsReconciler extends Reconciler {
  readonly #rules: AttachmentRules;
  readonly #pods: Informer<Pod>;
  readonly #definitions: Informer<NetworkAttachmentDefinition>;
  readonly #client: ResourceClient<Pod>;
  readonly #pools: IPPools;
  readonly #hostLocal = new HostLocalAddresses();
  /** Pods whose networks cannot be attached now. */
  readonly #waiting = new Set<ObjectKey>();
  /** Pods that were deleted, until their addresses are free. */
  readonly #gone = new Map<ObjectKey, Pod>();

  constructor(context: ControllerContext, rules: AttachmentRules, pools: IPPools) {
    super(context, 'network_attachment');
    this.#rules = rules;
    this.#pools = pools;
    this.#client = context.clients.for(podsResource);
    this.#pods = this.informer(podsResource);
    this.#definitions = this.informer(networkAttachmentDefinitions);
    this.waitFor({ synced: (signal) => this.#observeAll(signal) });
    const changed = (pod: Pod): void => {
      if (asksForNetworks(pod)) this.queue.enqueue(keyOf(pod));
    };
    this.#pods.addHandler({
      added: changed,
      updated: changed,
      deleted: (pod) => {
        this.#hostLocal.release(pod.metadata.uid ?? '');
        if (asksForNetworks(pod)) this.#gone.set(keyOf(pod), pod);
        changed(pod);
      },
    });
    const retry = (): void => this.#retryWaiting();
    this.#definitions.addHandler({ added: retry, updated: retry });
  }

  /** Loads the addresses that the plugin `host-local` has given before it gives more. */
  async #observeAll(signal: AbortSignal): Promise<boolean> {
    if (!(await this.#pods.synced(signal)) || !(await this.#definitions.synced(signal))) return false;
    for (const pod of this.#pods.cache.values()) {
      if (isFinished(pod) || !isAttached(pod)) continue;
      for (const status of networkStatusOf(pod) ?? []) {
        const attachment = this.#attachments(pod)?.find((each) => each.interface === status.interface);
        if (attachment?.config.plugin.ipam.type !== 'host-local') continue;
        const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
        for (const ip of status.ips ?? []) this.#hostLocal.observe(scopeOf(pod, attachment), ip, holder);
      }
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
    for (const key of this.#waiting) this.queue.enqueue(key);
  }

  protected override async reconcile(
    key: ObjectKey,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const pod = this.#pods.cache.get(key);
    if (pod === undefined || isFinished(pod)) {
      this.#waiting.delete(key);
      if (pod !== undefined) this.#hostLocal.release(pod.metadata.uid ?? '');
      await this.#release(key, pod ?? this.#gone.get(key), signal);
      this.#gone.delete(key);
      return undefined;
    }
    this.#gone.delete(key);
    const { deletionTimestamp } = pod.metadata;
    const isBound = (pod.spec.nodeName ?? '') !== '' && (pod.status.podIPs ?? []).length > 0;
    if (!isBound || deletionTimestamp !== undefined || !asksForNetworks(pod) || isAttached(pod)) {
      this.#waiting.delete(key);
      return undefined;
    }
    try {
      await this.#attach(pod, signal);
      this.#waiting.delete(key);
      return undefined;
    } catch (error) {
      if (!(error instanceof AttachmentError)) throw error;
      const { events } = this.context;
      if (error.reason !== undefined) events.event(pod, 'Warning', error.reason, error.message);
      const message = sandboxMessage(pod, sandboxId(pod), error.message);
      events.event(pod, 'Warning', 'FailedCreatePodSandBox', message);
      this.#waiting.add(key);
      return { requeueAfter: sandboxRetry };
    }
  }

  /** @throws {AttachmentError}, and what a request throws. */
  async #attach(pod: Pod, signal: AbortSignal): Promise<void> {
    const attachments = this.#resolve(pod);
    const addressed: Addressed[] = [];
    try {
      for (const attachment of attachments) {
        addressed.push({ attachment, ips: await this.#addresses(pod, attachment, signal) });
      }
    } catch (error) {
      // Meanwhile nothing is held, as with a sandbox that is removed.
      if (error instanceof AttachmentError) {
        this.#hostLocal.release(pod.metadata.uid ?? '');
        await this.#pools.release(await this.#pools.held(keyOf(pod), signal), signal);
      }
      throw error;
    }
    const { namespace = '', name = '', uid } = pod.metadata;
    const text = formatNetworkStatus(planNetworkStatus(pod, addressed));
    const patch = { metadata: { uid, annotations: { [networkStatusAnnotation]: text } } };
    try {
      await this.#client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
    } catch (error) {
      // Its deletion comes here.
      if (isNotFound(error)) return;
      throw error;
    }
    for (const message of planOmissions(pod, attachments)) {
      this.context.events.event(pod, 'Warning', 'AttachmentIncomplete', message);
    }
  }

  async #addresses(pod: Pod, attachment: Attachment, signal: AbortSignal): Promise<readonly string[]> {
    const { ipam } = attachment.config.plugin;
    switch (ipam.type) {
      case 'none':
      case 'other':
        return [];
      case 'static':
        return staticAddresses(attachment).map(({ address }) => address);
      case 'host-local': {
        const holder = { uid: pod.metadata.uid ?? '', interface: attachment.interface };
        return this.#hostLocal.assign(scopeOf(pod, attachment), ipam.sets, attachment.selection.ips, holder);
      }
      case 'whereabouts': {
        const { ranges, networkName, overlapping } = ipam;
        const owner = { id: sandboxId(pod), podref: keyOf(pod), ifname: attachment.interface };
        const found: string[] = [];
        for (const range of ranges) {
          const value = await this.#pools.allocate({ range, networkName, overlapping }, owner, signal);
          found.push(formatAddress(range.network.family, value));
        }
        return found;
      }
    }
  }

  /**
   * A Pod or its sandbox was deleted: its addresses are free, unless another Pod of its name (a StatefulSet's)
   * exists.
   */
  async #release(key: ObjectKey, pod: Pod | undefined, signal: AbortSignal): Promise<void> {
    const { namespace, name } = splitKey(key);
    const { events } = this.context;
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
      if (pod === undefined || id === sandboxId(pod)) continue;
      const message = `successful cleanup of IP address [${address}] from network ${pool.metadata.name ?? ''}`;
      events.event(pod, 'Normal', 'IPAddressGarbageCollected', message);
    }
    if (released.length > 0) this.#retryWaiting();
  }

  async #isThere(namespace: string, name: string, signal: AbortSignal): Promise<boolean> {
    try {
      return !isFinished(await this.#client.get(namespace, name, { signal }));
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

/** The id of a Pod's sandbox: the same after a restart of the controller. */
function sandboxId({ metadata }: Pod): string {
  return createHash('sha256')
    .update(metadata.uid ?? '')
    .digest('hex');
}

/** The plugin `host-local` keeps what it gives on each node, by the network's name. */
function scopeOf({ spec }: Pod, { config }: Attachment): string {
  return `${spec.nodeName ?? ''}/${config.name}`;
}
