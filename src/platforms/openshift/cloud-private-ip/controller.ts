import { isNotFound } from '../../../client/errors.ts';
import type { Informer } from '../../../client/informers/informer.ts';
import type { ResourceClient } from '../../../client/resource-client.ts';
import { cloudPrivateIPConfigs, nodes as nodesResource } from '../../../client/resources.ts';
import type { ParsedAddress } from '../../../objects/address.ts';
import { jsonEqual } from '../../../objects/json.ts';
import type { ObjectKey } from '../../../objects/meta.ts';
import { formatTime } from '../../../objects/formats/time.ts';
import type { Node } from '../../../objects/types/core.generated.ts';
import type { CloudPrivateIPConfig } from '../../../objects/types/openshift.ts';
import type { ControllerContext } from '../../../runtime/context.ts';
import { type ControllerSpec, type KeyLoop, ownKey } from '../../../runtime/key-loop.ts';
import { AlreadyAssignedError, type Cloud, NotAssignedError } from './cloud.ts';
import {
  addressOf,
  finalizer,
  nextStep,
  type StepOutcome,
  statusOf,
  type CloudStep,
  type words,
} from './plan.ts';
import { errorMessage } from '../../../objects/status.ts';

/** The limits of cloud-network-config-controller; `backoff` in milliseconds. */
const limits = { maxRetries: 15, backoff: { base: 5, max: 1_000_000 } };

/**
 * Gives the addresses of CloudPrivateIPConfigs to nodes by a cloud, and writes each step into the status: consumers
 * watch the sequence.
 */
export function cloudPrivateIPController(cloud: Cloud): ControllerSpec {
  return {
    name: 'cloud-private-ip-controller',
    eventSource: 'cloud-network-config-controller',
    queue: 'cloud_private_ip',
    ...limits,
    where: { serves: cloudPrivateIPConfigs, work: 'cloud addresses' },
    build(loop) {
      const reconciler = new CloudPrivateIPReconciler(loop, cloud);
      return (key, signal) => reconciler.reconcile(key, signal);
    },
  };
}

class CloudPrivateIPReconciler {
  readonly #context: ControllerContext;
  readonly #cloud: Cloud;
  readonly #client: ResourceClient<CloudPrivateIPConfig>;
  readonly #objects: Informer<CloudPrivateIPConfig>;
  readonly #nodes: Informer<Node>;

  constructor(loop: KeyLoop, cloud: Cloud) {
    this.#context = loop.context;
    this.#cloud = cloud;
    this.#client = loop.context.clients.for(cloudPrivateIPConfigs);

    this.#objects = loop.cache(cloudPrivateIPConfigs);
    this.#nodes = loop.cache(nodesResource);

    loop.on(this.#nodes, ({ kind, object }) => {
      if (kind === 'deleted') cloud.nodeGone?.(object.metadata.name ?? '');
      return [];
    });
    loop.on(this.#objects, (change) => {
      if (change.kind === 'deleted') return [];
      // Its own conditions make no work.
      const isSame =
        change.kind === 'updated' && jsonEqual(triggersOf(change.object), triggersOf(change.old));
      return isSame ? [] : ownKey(change);
    });
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<undefined> {
    const object = this.#objects.cache.get(key);
    const address = addressOf(object?.metadata.name ?? '');
    if (object === undefined || address === undefined) return;
    const wanted = nextStep(object, this.#cloud.canMove);
    if (wanted.kind === 'none') return;
    const done = await this.#step(object, address, this.#partsOf(wanted), signal);
    if (wanted.kind !== 'delete' || done === undefined) return;
    const others = (done.metadata.finalizers ?? []).filter((each) => each !== finalizer);
    await this.#setFinalizers(done, others, signal);
  }

  /** Writes the status. Returns the stored object; undefined if it was deleted meanwhile, which ends the step. */
  async #writeStatus(
    object: CloudPrivateIPConfig,
    node: string,
    verb: keyof typeof words,
    outcome: StepOutcome,
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> {
    const { name = '', resourceVersion } = object.metadata;
    const status = statusOf(object, node, verb, outcome, formatTime(this.#context.clock.now()));
    // null takes the node away.
    const patch = { metadata: { resourceVersion }, status: { node: null, ...status } };
    try {
      return await this.#client.mergePatch('', name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #setFinalizers(
    { metadata: { name = '' } }: CloudPrivateIPConfig,
    finalizers: readonly string[],
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> {
    try {
      return await this.#client.mergePatch('', name, { metadata: { finalizers } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /**
   * Writes that the step is pending, does it, and writes its result. Returns the object as it is then; undefined if it
   * was deleted meanwhile, or has to wait for a node.
   */
  async #step(
    object: CloudPrivateIPConfig,
    address: ParsedAddress,
    { verb, pendingAt, doneAt, missing, act }: StepParts,
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> {
    let present = await this.#writeStatus(object, pendingAt, verb, { kind: 'pending' }, signal);
    if (
      present !== undefined &&
      verb === 'add' &&
      present.metadata.finalizers?.includes(finalizer) !== true
    ) {
      present = await this.#setFinalizers(present, [finalizer], signal);
    }
    if (present === undefined) return undefined;
    if (missing !== undefined && this.#nodes.cache.get(missing) === undefined) {
      const why = `node "${missing}" not found`;
      // No retry: the node must appear, or the object change.
      await this.#writeStatus(present, pendingAt, verb, { kind: 'failed', why }, signal);
      return undefined;
    }
    try {
      await act(address);
    } catch (error) {
      const why = errorMessage(error);
      await this.#writeStatus(present, pendingAt, verb, { kind: 'failed', why }, signal);
      throw error;
    }
    if (doneAt === undefined) return present;
    return this.#writeStatus(present, doneAt, verb, { kind: 'done' }, signal);
  }

  async #release(address: ParsedAddress, node: string): Promise<void> {
    // A deleted machine has no addresses.
    if (this.#nodes.cache.get(node) === undefined) return;
    try {
      await this.#cloud.release(address, node);
    } catch (error) {
      if (!(error instanceof NotAssignedError)) throw error;
    }
  }

  async #assign(address: ParsedAddress, node: string): Promise<void> {
    try {
      await this.#cloud.assign(address, node);
    } catch (error) {
      if (!(error instanceof AlreadyAssignedError)) throw error;
    }
  }

  async #move(address: ParsedAddress, from: string, to: string): Promise<void> {
    try {
      await this.#cloud.move(address, from, to);
    } catch (error) {
      // A deleted machine has no addresses to release.
      if (!(error instanceof NotAssignedError)) throw error;
      await this.#assign(address, to);
    }
  }

  #partsOf(wanted: Exclude<CloudStep, { kind: 'none' }>): StepParts {
    switch (wanted.kind) {
      case 'delete':
        return {
          ...{ verb: 'release', pendingAt: wanted.from, doneAt: undefined },
          act: (address) => this.#release(address, wanted.from),
        };
      case 'release':
        return {
          ...{ verb: 'release', pendingAt: wanted.from, doneAt: '' },
          act: (address) => this.#release(address, wanted.from),
        };
      case 'move':
        return {
          ...{ verb: 'move', pendingAt: wanted.from, doneAt: wanted.to, missing: wanted.to },
          act: (address) => this.#move(address, wanted.from, wanted.to),
        };
      case 'add':
        return {
          ...{ verb: 'add', pendingAt: wanted.to, doneAt: wanted.to, missing: wanted.to },
          act: (address) => this.#assign(address, wanted.to),
        };
    }
  }
}

/** A step with its messages. */
interface StepParts {
  readonly verb: keyof typeof words;
  /** `status.node` while it waits, and where it fails. */
  readonly pendingAt: string;
  /** `status.node` when it is done; undefined: not written. */
  readonly doneAt: string | undefined;
  /** The node that has to be there. */
  readonly missing?: string;
  readonly act: (address: ParsedAddress) => Promise<void>;
}

function triggersOf({ metadata, spec, status }: CloudPrivateIPConfig): readonly unknown[] {
  return [spec, status?.node, metadata.deletionTimestamp !== undefined];
}
