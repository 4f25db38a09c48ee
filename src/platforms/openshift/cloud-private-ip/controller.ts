import { isNotFound } from '../../../client/errors.ts';
import { cloudPrivateIPConfigs, nodes as nodesResource } from '../../../client/resources.ts';
import type { ParsedAddress } from '../../../objects/address.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../../objects/meta.ts';
import { formatTime } from '../../../objects/time.ts';
import type { CloudPrivateIPConfig } from '../../../objects/types/openshift.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../../runtime/context.ts';
import { Controller } from '../../../runtime/key-loop.ts';
import { whereServed } from '../../../runtime/other-implementations.ts';
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
const maxRetries = 15;
const backoff = { base: 5, max: 1_000_000 };

/**
 * Gives the addresses of CloudPrivateIPConfigs to nodes by a cloud, and writes each step into the status: consumers
 * watch the sequence.
 */
export function cloudPrivateIPController(cloud: Cloud): ControllerDefinition {
  return { name: 'cloud-private-ip-controller', start: (context) => start(context, cloud) };
}

function start(context: ControllerContext, cloud: Cloud): readonly Runnable[] {
  const objects = context.informers.informer(cloudPrivateIPConfigs);
  const nodes = context.informers.informer(nodesResource);
  const client = context.clients.for(cloudPrivateIPConfigs);

  /** Writes the status; the object as it is then, undefined where it has gone. */
  const say = async (
    object: CloudPrivateIPConfig,
    node: string,
    verb: keyof typeof words,
    outcome: StepOutcome,
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> => {
    const { name = '', resourceVersion } = object.metadata;
    const status = statusOf(object, node, verb, outcome, formatTime(context.clock.now()));
    // null takes the node away.
    const patch = { metadata: { resourceVersion }, status: { node: null, ...status } };
    try {
      return await client.mergePatch('', name, patch, { subresource: 'status', signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  const setFinalizers = async (
    { metadata: { name = '' } }: CloudPrivateIPConfig,
    finalizers: readonly string[],
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> => {
    try {
      return await client.mergePatch('', name, { metadata: { finalizers } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  /**
   * Writes that the step is pending, does it, and writes its result; undefined: it succeeded, and this is the
   * object then.
   */
  const step = async (
    object: CloudPrivateIPConfig,
    address: ParsedAddress,
    { verb, pendingAt, doneAt, missing, act }: StepParts,
    signal: AbortSignal,
  ): Promise<CloudPrivateIPConfig | undefined> => {
    let present = await say(object, pendingAt, verb, { kind: 'pending' }, signal);
    if (
      present !== undefined &&
      verb === 'add' &&
      present.metadata.finalizers?.includes(finalizer) !== true
    ) {
      present = await setFinalizers(present, [finalizer], signal);
    }
    if (present === undefined) return undefined;
    if (missing !== undefined && nodes.cache.get(missing) === undefined) {
      const why = `node "${missing}" not found`;
      // No retry: the node must appear, or the object change.
      await say(present, pendingAt, verb, { kind: 'failed', why }, signal);
      return undefined;
    }
    try {
      await act(address);
    } catch (error) {
      const why = errorMessage(error);
      await say(present, pendingAt, verb, { kind: 'failed', why }, signal);
      throw error;
    }
    return doneAt === undefined ? present : say(present, doneAt, verb, { kind: 'done' }, signal);
  };

  const release = async (address: ParsedAddress, node: string): Promise<void> => {
    // A deleted machine has no addresses.
    if (nodes.cache.get(node) === undefined) return;
    try {
      await cloud.release(address, node);
    } catch (error) {
      if (!(error instanceof NotAssignedError)) throw error;
    }
  };

  const assign = async (address: ParsedAddress, node: string): Promise<void> => {
    try {
      await cloud.assign(address, node);
    } catch (error) {
      if (!(error instanceof AlreadyAssignedError)) throw error;
    }
  };

  const move = async (address: ParsedAddress, from: string, to: string): Promise<void> => {
    try {
      await cloud.move(address, from, to);
    } catch (error) {
      // A deleted machine has no addresses to release.
      if (!(error instanceof NotAssignedError)) throw error;
      await assign(address, to);
    }
  };

  const partsOf = (wanted: Exclude<CloudStep, { kind: 'none' }>): StepParts => {
    switch (wanted.kind) {
      case 'delete':
        return {
          ...{ verb: 'release', pendingAt: wanted.from, doneAt: undefined },
          act: (address) => release(address, wanted.from),
        };
      case 'release':
        return {
          ...{ verb: 'release', pendingAt: wanted.from, doneAt: '' },
          act: (address) => release(address, wanted.from),
        };
      case 'move':
        return {
          ...{ verb: 'move', pendingAt: wanted.from, doneAt: wanted.to, missing: wanted.to },
          act: (address) => move(address, wanted.from, wanted.to),
        };
      case 'add':
        return {
          ...{ verb: 'add', pendingAt: wanted.to, doneAt: wanted.to, missing: wanted.to },
          act: (address) => assign(address, wanted.to),
        };
    }
  };

  const controller = new Controller({
    name: 'cloud_private_ip',
    context,
    waitFor: [objects, nodes],
    ...{ maxRetries, backoff },
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const object = objects.cache.get(key);
      const address = addressOf(object?.metadata.name ?? '');
      if (object === undefined || address === undefined) return undefined;
      const wanted = nextStep(object, cloud.canMove);
      if (wanted.kind === 'none') return undefined;
      const done = await step(object, address, partsOf(wanted), signal);
      if (wanted.kind === 'delete' && done !== undefined) {
        const others = (done.metadata.finalizers ?? []).filter((each) => each !== finalizer);
        await setFinalizers(done, others, signal);
      }
      return undefined;
    },
  });
  nodes.addHandler({ deleted: ({ metadata: { name = '' } }) => cloud.nodeGone?.(name) });
  const enqueue = (object: CloudPrivateIPConfig): void => controller.enqueue(keyOf(object));
  objects.addHandler({
    added: enqueue,
    updated: (object, old) => {
      // Its own conditions make no work.
      if (!jsonEqual(triggersOf(object), triggersOf(old))) enqueue(object);
    },
  });
  return [
    whereServed(context, {
      ...{ resource: cloudPrivateIPConfigs, work: 'cloud addresses', runnables: [controller] },
    }),
  ];
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
