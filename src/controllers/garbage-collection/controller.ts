import { isNotFound } from '../../client/errors.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import type { Transport } from '../../client/transport.ts';
import { isStringList } from '../../objects/json.ts';
import type { KubeObject, OwnerReference } from '../../objects/meta.ts';
import type { ServedResource } from '../api-resources/discovery.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller, TerminalError } from '../runtime/controller.ts';
import { foregroundFinalizer, type GraphNode, orphanFinalizer, OwnerGraph, toNode } from './graph.ts';
import { Monitors } from './monitors.ts';
import { judge, needsOwners, type OwnerState } from './plan.ts';

/** How many owners that do not exist are remembered. */
const rememberedAbsences = 5000;

/** Options of {@link garbageCollector}. */
export interface GarbageCollectorOptions {
  /** For discovery and for resources that nobody knows beforehand. */
  readonly transport: Transport;
}

/** Deletes what no owner is left for (kube-controller-manager's `garbage-collector-controller`). */
export function garbageCollector({ transport }: GarbageCollectorOptions): ControllerDefinition {
  return {
    name: 'garbage-collector-controller',
    start(context): readonly Runnable[] {
      const collector = new Collector(context, transport);
      return [collector.monitors, collector.controller];
    },
  };
}

class Collector {
  readonly monitors: Monitors;
  readonly controller: Controller;
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #graph = new OwnerGraph();
  readonly #absent = new Set<string>();

  constructor(context: ControllerContext, transport: Transport) {
    this.#context = context;
    this.#transport = transport;
    let isWhole = false;
    const enqueue = (uids: Iterable<string>): void => {
      for (const uid of uids) this.controller.enqueue(uid);
    };
    this.monitors = new Monitors(context, transport, {
      upsert: (object, resource) => {
        const concerned = this.#graph.upsert(object, resource);
        if (isWhole) enqueue(concerned);
      },
      remove: ({ metadata }) => {
        const { uid = '' } = metadata;
        this.#remember(uid);
        enqueue(this.#graph.remove(uid));
      },
      dropped: (resource) => {
        const gone = [...this.#graph.values()].filter((node) => node.resource === resource);
        for (const { uid } of gone) enqueue(this.#graph.remove(uid));
      },
    });
    this.controller = new Controller({
      name: 'garbage_collector',
      context,
      workers: 20,
      waitFor: [
        {
          synced: async (signal) => {
            const synced = await this.monitors.synced(signal);
            isWhole = true;
            if (synced) enqueue(this.#graph.suspects());
            return synced;
          },
        },
      ],
      reconcile: async (uid, signal) => {
        const node = this.#graph.get(uid);
        if (node !== undefined) await this.#visit(node, signal);
        return undefined;
      },
    });
  }

  async #visit(known: GraphNode, signal: AbortSignal): Promise<void> {
    const resource = this.monitors.resourceNamed(known.resource);
    if (resource === undefined) return;
    const client = new ResourceClient(this.#transport, resource);
    const live = await find(client, known.namespace, known.name, signal);
    const node = live === undefined ? undefined : toNode(live, known.resource);
    if (live === undefined || node?.uid !== known.uid) {
      for (const uid of this.#graph.remove(known.uid)) this.controller.enqueue(uid);
      return;
    }
    const verdict = judge({
      node,
      dependents: this.#graph.dependentsOf(node.uid),
      owners: needsOwners(node) ? await this.#ownersOf(node, signal) : new Map<string, OwnerState>(),
    });
    switch (verdict.do) {
      case 'nothing':
        return;
      case 'forget owners':
        await forgetOwners(client, live, verdict.uids, signal);
        break;
      case 'delete':
        await remove(client, live, verdict.policy, signal);
        break;
      case 'unblock and delete':
        await remove(client, await unblock(client, live, signal), 'Foreground', signal);
        break;
      case 'visit dependents':
        for (const uid of verdict.uids) this.controller.enqueue(uid);
        return;
      case 'finish foreground':
        await dropFinalizer(client, live, foregroundFinalizer, signal);
        break;
      case 'orphan dependents':
        for (const uid of verdict.uids) await this.#orphan(uid, node.uid, signal);
        await dropFinalizer(client, live, orphanFinalizer, signal);
        break;
    }
    const { namespace, name } = node;
    this.#context.log.info(
      { resource: known.resource, namespace, name, verdict: verdict.do },
      'garbage collected',
    );
  }

  async #orphan(uid: string, owner: string, signal: AbortSignal): Promise<void> {
    const dependent = this.#graph.get(uid);
    const resource = dependent && this.monitors.resourceNamed(dependent.resource);
    if (dependent === undefined || resource === undefined) return;
    const client = new ResourceClient(this.#transport, resource);
    const live = await find(client, dependent.namespace, dependent.name, signal);
    if (live?.metadata.uid === uid) await forgetOwners(client, live, [owner], signal);
  }

  async #ownersOf(node: GraphNode, signal: AbortSignal): Promise<ReadonlyMap<string, OwnerState>> {
    const states = new Map<string, OwnerState>();
    for (const owner of node.owners) {
      if (!states.has(owner.uid)) states.set(owner.uid, await this.#ownerState(node, owner, signal));
    }
    return states;
  }

  /** An owner is the object of that name only if it has that uid, too. */
  async #ownerState(node: GraphNode, owner: OwnerReference, signal: AbortSignal): Promise<OwnerState> {
    const known = this.#graph.get(owner.uid);
    if (known !== undefined && (known.namespace === '' || known.namespace === node.namespace)) {
      return known.foreground ? 'waiting' : 'present';
    }
    if (this.#absent.has(owner.uid)) return 'absent';
    const resource = this.#ownerResource(node, owner);
    const client = new ResourceClient(this.#transport, resource);
    const live = await find(client, resource.namespaced ? node.namespace : '', owner.name, signal);
    const found = live === undefined ? undefined : toNode(live, owner.kind);
    if (found?.uid === owner.uid) return found.foreground ? 'waiting' : 'present';
    this.#remember(owner.uid);
    return 'absent';
  }

  /** @throws when the kind is not served, or cannot own the object: nothing is deleted on a guess. */
  #ownerResource(node: GraphNode, { apiVersion, kind }: OwnerReference): ServedResource {
    const slash = apiVersion.indexOf('/');
    const resource = this.monitors.resourceOf(slash === -1 ? '' : apiVersion.slice(0, slash), kind);
    if (resource === undefined) {
      this.monitors.refresh();
      throw new Error(
        `the owner of ${node.resource} ${node.namespace}/${node.name} is a ${kind} of ${apiVersion}, which is not served`,
      );
    }
    if (resource.namespaced && node.namespace === '') {
      throw new TerminalError(
        `${node.resource} ${node.name} has no namespace, its owner, a ${kind}, has one`,
      );
    }
    return resource;
  }

  #remember(uid: string): void {
    if (uid === '') return;
    this.#absent.add(uid);
    if (this.#absent.size <= rememberedAbsences) return;
    const [oldest] = this.#absent;
    if (oldest !== undefined) this.#absent.delete(oldest);
  }
}

type AnyClient = ResourceClient<KubeObject>;

async function find(
  client: AnyClient,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(namespace, name, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Every write is conditional on the version that it was decided on; of what is gone already there is nothing to do. */
async function patch(
  client: AnyClient,
  object: KubeObject,
  metadata: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { namespace = '', name = '', uid, resourceVersion } = object.metadata;
  try {
    const change = { metadata: { uid, resourceVersion, ...metadata } };
    return await client.mergePatch(namespace, name, change, { signal });
  } catch (error) {
    if (isNotFound(error)) return object;
    throw error;
  }
}

async function forgetOwners(
  client: AnyClient,
  object: KubeObject,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const ownerReferences = (object.metadata.ownerReferences ?? []).filter(({ uid }) => !uids.includes(uid));
  await patch(client, object, { ownerReferences }, signal);
}

async function unblock(client: AnyClient, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
  const ownerReferences = (object.metadata.ownerReferences ?? []).map((owner) => ({
    ...owner,
    blockOwnerDeletion: false,
  }));
  return patch(client, object, { ownerReferences }, signal);
}

async function dropFinalizer(
  client: AnyClient,
  object: KubeObject,
  finalizer: string,
  signal: AbortSignal,
): Promise<void> {
  const present = isStringList(object.metadata.finalizers) ? object.metadata.finalizers : [];
  await patch(client, object, { finalizers: present.filter((each) => each !== finalizer) }, signal);
}

/** A finalizer that the object has already decides over the policy. */
async function remove(
  client: AnyClient,
  object: KubeObject,
  policy: 'Background' | 'Foreground' | 'Orphan',
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '', resourceVersion = '', finalizers = [] } = object.metadata;
  const propagationPolicy = finalizers.includes(orphanFinalizer)
    ? 'Orphan'
    : finalizers.includes(foregroundFinalizer)
      ? 'Foreground'
      : policy;
  try {
    await client.delete(namespace, name, {
      preconditions: { uid, resourceVersion },
      propagationPolicy,
      signal,
    });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
