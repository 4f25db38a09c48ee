import { isNotFound } from '../../client/errors.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import { resourceName } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { isStringList } from '../../objects/json.ts';
import type { KubeObject, OwnerReference } from '../../objects/meta.ts';
import type { DiscoveredType } from '../../client/discovery.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { type ControllerSpec, type KeyLoop, NotYetError, TerminalError } from '../../runtime/key-loop.ts';
import { Monitors } from './monitors.ts';
import {
  foregroundFinalizer,
  type GraphNode,
  isMeant,
  judge,
  needsOwners,
  orphanFinalizer,
  OwnerGraph,
  type OwnerState,
  toNode,
} from './plan.ts';

/** The number of absent owners that are remembered. */
const rememberedAbsences = 5000;

/** Options of {@link garbageCollectorController}. */
export interface GarbageCollectorOptions {
  /** For discovery, and for resources that are not known in advance. */
  readonly transport: Transport;
}

/** Deletes objects without a living owner (kube-controller-manager's `garbage-collector-controller`). */
export function garbageCollectorController({ transport }: GarbageCollectorOptions): ControllerSpec {
  return {
    name: 'garbage-collector-controller',
    eventSource: 'garbage-collector-controller',
    queue: 'garbage_collector',
    workers: 20,
    build(loop) {
      const collector = new GarbageCollector(loop, transport);
      return (uid, signal) => collector.reconcile(uid, signal);
    },
  };
}

/** Its keys are uids: an object of the same name with another uid is another object. */
class GarbageCollector {
  readonly #loop: KeyLoop;
  readonly #context: ControllerContext;
  readonly #transport: Transport;
  readonly #monitors: Monitors;
  readonly #graph = new OwnerGraph();
  /** Absent owners by place, as an owner that is absent in one namespace may exist in another. */
  readonly #absent = new Set<string>();

  constructor(loop: KeyLoop, transport: Transport) {
    this.#loop = loop;
    this.#context = loop.context;
    this.#transport = transport;

    let isWhole = false;
    this.#monitors = new Monitors(loop.context, transport, {
      upsert: (object, type) => {
        const concerned = this.#graph.upsert(object, type);
        if (isWhole) this.#enqueue(concerned);
      },
      remove: ({ metadata }, { resource }) => {
        const { uid = '', namespace = '', name = '' } = metadata;
        this.#remember(placeOf(resource, namespace, name, uid));
        this.#enqueue(this.#graph.remove(uid));
      },
      dropped: (resource) => {
        const gone = [...this.#graph.values()].filter(({ type }) => type.resource === resource);
        for (const { uid } of gone) this.#enqueue(this.#graph.remove(uid));
      },
    });
    loop.runBeside(this.#monitors);
    loop.waitFor({
      synced: async (signal) => {
        const synced = await this.#monitors.synced(signal);
        isWhole = true;
        if (synced) this.#enqueue(this.#graph.suspects());
        return synced;
      },
    });
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<undefined> {
    const node = this.#graph.get(uid);
    if (node !== undefined) await this.#visit(node, signal);
  }

  #enqueue(uids: Iterable<string>): void {
    for (const uid of uids) this.#loop.enqueue(uid);
  }

  async #visit(known: GraphNode, signal: AbortSignal): Promise<void> {
    const { type } = known;
    const resource = this.#monitors.resourceNamed(type.resource);
    if (resource === undefined) return;
    const client = new ResourceClient(this.#transport, resource);
    const live = await find(client, known.namespace, known.name, signal);
    const node = live === undefined ? undefined : toNode(live, type);
    if (live === undefined || node?.uid !== known.uid) {
      this.#enqueue(this.#graph.remove(known.uid));
      return;
    }
    const verdict = judge({
      node,
      dependents: this.#graph.dependentsOf(node.uid),
      owners: needsOwners(node) ? await this.#ownersOf(node, live, signal) : new Map<string, OwnerState>(),
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
        this.#enqueue(verdict.uids);
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
      { resource: type.resource, namespace, name, verdict: verdict.do },
      'garbage collected',
    );
  }

  async #orphan(uid: string, owner: string, signal: AbortSignal): Promise<void> {
    const dependent = this.#graph.get(uid);
    const resource = dependent && this.#monitors.resourceNamed(dependent.type.resource);
    if (dependent === undefined || resource === undefined) return;
    const client = new ResourceClient(this.#transport, resource);
    const live = await find(client, dependent.namespace, dependent.name, signal);
    if (live?.metadata.uid === uid) await forgetOwners(client, live, [owner], signal);
  }

  async #ownersOf(
    node: GraphNode,
    live: KubeObject,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, OwnerState>> {
    const states = new Map<string, OwnerState>();
    for (const owner of node.owners) {
      const known = this.#graph.get(owner.uid);
      if (known !== undefined && known.namespace !== '' && known.namespace !== node.namespace) {
        const message = otherNamespace(node, owner);
        this.#context.events.event(live, 'Warning', 'OwnerRefInvalidNamespace', message);
      }
      if (!states.has(owner.uid)) states.set(owner.uid, await this.#ownerState(node, owner, signal));
    }
    return states;
  }

  /** The owner is the object of that kind, name and namespace, if it has that uid. */
  async #ownerState(node: GraphNode, owner: OwnerReference, signal: AbortSignal): Promise<OwnerState> {
    const resource = this.#ownerResource(node, owner);
    const known = this.#graph.get(owner.uid);
    if (known !== undefined && isMeant(known, owner, node.namespace)) {
      return known.foreground ? 'waiting' : 'present';
    }
    const namespace = resource.namespaced ? node.namespace : '';
    const place = placeOf(resourceName(resource), namespace, owner.name, owner.uid);
    if (this.#absent.has(place)) return 'absent';
    const live = await find(new ResourceClient(this.#transport, resource), namespace, owner.name, signal);
    const found = live === undefined ? undefined : toNode(live, { ...resource, resource: owner.kind });
    if (found?.uid === owner.uid) return found.foreground ? 'waiting' : 'present';
    this.#remember(place);
    return 'absent';
  }

  /** @throws when the kind is not served, or cannot own the object: nothing is deleted then. */
  #ownerResource(node: GraphNode, owner: OwnerReference): DiscoveredType {
    const { type, namespace, name } = node;
    const { apiVersion, kind } = owner;
    const resource = this.#monitors.resourceOf(owner);
    if (resource === undefined) {
      this.#monitors.refresh();
      // Usually its definition is new (kube-controller-manager logs it at level 5).
      throw new NotYetError(
        `the owner of ${type.resource} ${namespace}/${name} is a ${kind} of ${apiVersion}, which is not served`,
      );
    }
    if (resource.namespaced && namespace === '') {
      throw new TerminalError(`${type.resource} ${name} has no namespace, its owner, a ${kind}, has one`);
    }
    return resource;
  }

  #remember(place: string): void {
    this.#absent.add(place);
    if (this.#absent.size <= rememberedAbsences) return;
    const [oldest] = this.#absent;
    if (oldest !== undefined) this.#absent.delete(oldest);
  }
}

type AnyClient = ResourceClient<KubeObject>;

/** The key of an absence. */
function placeOf(resource: string, namespace: string, name: string, uid: string): string {
  return [resource, namespace, name, uid].join('/');
}

/** The Event about a reference across namespaces (`reportInvalidNamespaceOwnerRef`). */
function otherNamespace({ namespace }: GraphNode, { apiVersion, kind, name, uid }: OwnerReference): string {
  const owner = `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
  return `ownerRef ${owner} does not exist in namespace "${namespace}"`;
}

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

/** Every write is conditional on the version that was decided on; objects that are gone need none. */
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
  const ownerReferences = (object.metadata.ownerReferences ?? []).map((owner) =>
    owner.blockOwnerDeletion === true ? { ...owner, blockOwnerDeletion: false } : owner,
  );
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

/** Finalizers that the object has already decide about its dependents, unless they must be deleted first. */
async function remove(
  client: AnyClient,
  object: KubeObject,
  policy: 'Background' | 'Foreground',
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', name = '', uid = '', resourceVersion = '', finalizers = [] } = object.metadata;
  const propagationPolicy =
    policy === 'Background' && finalizers.includes(orphanFinalizer)
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
