import { isRecord, isStringList, jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { KubeObject, OwnerReference } from '../../objects/meta.ts';

/**
 * The graph of owners and dependents over all objects of a server (pkg/controller/garbagecollector,
 * `graph_builder.go`). Pure.
 */

/** The finalizer of foreground deletion. */
export const foregroundFinalizer = 'foregroundDeletion';
/** The finalizer of orphaning. */
export const orphanFinalizer = 'orphan';

/** The resource of a node; one instance for all nodes of it. */
export interface NodeType {
  /** `plural.group` */
  readonly resource: string;
  readonly group: string;
  readonly kind: string;
}

/** One object. */
export interface GraphNode {
  readonly uid: string;
  readonly type: NodeType;
  readonly namespace: string;
  readonly name: string;
  readonly owners: readonly OwnerReference[];
  readonly deleting: boolean;
  /** In foreground deletion: it waits for its dependents to be gone. */
  readonly foreground: boolean;
  /** In orphaning: it waits until no dependent refers to it. */
  readonly orphaning: boolean;
}

/** All objects by uid, and the dependents of each. */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();
  /** Owner uid → dependent uids; also for owners that are not in the graph. */
  readonly #dependents = new Map<string, Set<string>>();

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  values(): IterableIterator<GraphNode> {
    return this.#nodes.values();
  }

  dependentsOf(uid: string): GraphNode[] {
    return [...(this.#dependents.get(uid) ?? [])].flatMap((each) => this.#nodes.get(each) ?? []);
  }

  hasDependents(uid: string): boolean {
    return this.#dependents.has(uid);
  }

  /** Adds an object or its new version. Returns the uids that may be affected. */
  upsert(object: KubeObject, type: NodeType): string[] {
    const node = toNode(object, type);
    if (node === undefined) return [];
    const old = this.#nodes.get(node.uid);
    this.#nodes.set(node.uid, node);
    const before = new Set(old?.owners.map(({ uid }) => uid));
    const now = new Set(node.owners.map(({ uid }) => uid));
    for (const uid of before) if (!now.has(uid)) this.#unlink(uid, node.uid);
    for (const uid of now) if (!before.has(uid)) this.#link(uid, node.uid);

    const concerned: string[] = [];
    if (this.#mayHaveToGo(node) || (this.#isMistaken(node) && !jsonEqual(node.owners, old?.owners))) {
      concerned.push(node.uid);
    }
    // All dependents are affected, also those for which it does not wait.
    if (node.foreground && old?.foreground !== true) {
      pushAll(concerned, this.#dependents.get(node.uid) ?? []);
    }
    if (old === undefined) return concerned;
    // An owner in foreground deletion does not wait for a dependent that dropped it or no longer blocks it.
    for (const { uid, blockOwnerDeletion } of old.owners) {
      const still = node.owners.find((owner) => owner.uid === uid);
      const freed = still === undefined || (blockOwnerDeletion === true && still.blockOwnerDeletion !== true);
      if (freed && this.#nodes.get(uid)?.foreground === true) concerned.push(uid);
    }
    return concerned;
  }

  /** Removes an object. Returns the uids that may be affected. */
  remove(uid: string): string[] {
    const node = this.#nodes.get(uid);
    if (node === undefined) return [];
    this.#nodes.delete(uid);
    const concerned = [...(this.#dependents.get(uid) ?? [])];
    for (const owner of node.owners) {
      this.#unlink(owner.uid, uid);
      if (this.#nodes.get(owner.uid)?.foreground === true) concerned.push(owner.uid);
    }
    return concerned;
  }

  /** The uids to check once the graph is complete. */
  suspects(): string[] {
    return [...this.#nodes.values()]
      .filter((node) => this.#mayHaveToGo(node) || this.#isMistaken(node))
      .map(({ uid }) => uid);
  }

  /** True when a node waits for the collector, or has an owner that is absent or in foreground deletion. */
  #mayHaveToGo(node: GraphNode): boolean {
    if (node.deleting) return node.foreground || node.orphaning;
    return node.owners.some(({ uid }) => {
      const owner = this.#nodes.get(uid);
      return owner === undefined || owner.foreground;
    });
  }

  /** True when a node's reference does not match its owner, in the name or the namespace. */
  #isMistaken({ deleting, namespace, owners }: GraphNode): boolean {
    if (deleting) return false;
    return owners.some((reference) => {
      const owner = this.#nodes.get(reference.uid);
      return owner !== undefined && !isMeant(owner, reference, namespace);
    });
  }

  #link(owner: string, dependent: string): void {
    const dependents = this.#dependents.get(owner);
    if (dependents === undefined) this.#dependents.set(owner, new Set([dependent]));
    else dependents.add(dependent);
  }

  #unlink(owner: string, dependent: string): void {
    const dependents = this.#dependents.get(owner);
    dependents?.delete(dependent);
    if (dependents?.size === 0) this.#dependents.delete(owner);
  }
}

/**
 * True when a reference matches an object in more than the uid. Objects without a namespace may own objects anywhere,
 * others only in their own namespace.
 *
 * @param namespace of the object that has the reference.
 */
export function isMeant(owner: GraphNode, reference: OwnerReference, namespace: string): boolean {
  return (
    owner.uid === reference.uid &&
    owner.name === reference.name &&
    owner.type.kind === reference.kind &&
    owner.type.group === parseGroupVersion(reference.apiVersion).group &&
    (owner.namespace === '' || owner.namespace === namespace)
  );
}

/** The parts of an apiVersion. */
export function parseGroupVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/');
  return slash === -1
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** The node of an object; undefined for one without a uid. */
export function toNode({ metadata }: KubeObject, type: NodeType): GraphNode | undefined {
  const { uid, namespace = '', name = '', deletionTimestamp } = metadata;
  if (uid === undefined || uid === '') return undefined;
  const finalizers = isStringList(metadata.finalizers) ? metadata.finalizers : [];
  const deleting = deletionTimestamp !== undefined;
  return {
    uid,
    type,
    namespace,
    name,
    owners: ownersOf(metadata.ownerReferences),
    deleting,
    foreground: deleting && finalizers.includes(foregroundFinalizer),
    orphaning: deleting && finalizers.includes(orphanFinalizer),
  };
}

const noOwners: readonly OwnerReference[] = [];

/** The owner references of an object, those that are well-formed. */
function ownersOf(value: unknown): readonly OwnerReference[] {
  if (!Array.isArray(value) || value.length === 0) return noOwners;
  return value.flatMap((owner: unknown) => {
    if (!isRecord(owner)) return [];
    const { apiVersion, kind, name, uid, blockOwnerDeletion } = owner;
    if (typeof apiVersion !== 'string' || typeof kind !== 'string') return [];
    if (typeof name !== 'string' || typeof uid !== 'string') return [];
    return [{ apiVersion, kind, name, uid, ...(blockOwnerDeletion === true ? { blockOwnerDeletion } : {}) }];
  });
}

/**
 * The decision of the garbage collector about one object (pkg/controller/garbagecollector, `garbagecollector.go`).
 * Pure.
 */

/** The state of an owner: present, absent, or in foreground deletion. */
export type OwnerState = 'present' | 'absent' | 'waiting';

/** The action for an object. */
export type ObjectAction =
  | { do: 'nothing' }
  /** Remove these owner references: other owners are present. */
  | { do: 'forget owners'; uids: readonly string[] }
  /** Delete: no owner is present. */
  | { do: 'delete'; policy: 'Background' | 'Foreground' }
  /** Delete in the foreground, as its own dependents wait: first make them not block it. */
  | { do: 'unblock and delete' }
  /** It waits for its dependents: process these. */
  | { do: 'visit dependents'; uids: readonly string[] }
  | { do: 'finish foreground' }
  /** Remove the references of all dependents, then the finalizer. */
  | { do: 'orphan dependents'; uids: readonly string[] };

/** The input of a decision. */
export interface Case {
  /** The object as the server has it now. */
  node: GraphNode;
  dependents: readonly GraphNode[];
  /** The state of each owner by uid; read only where it matters. */
  owners: ReadonlyMap<string, OwnerState>;
}

/** True when the decision depends on the states of the owners. */
export function needsOwners({ deleting, owners }: GraphNode): boolean {
  return !deleting && owners.length > 0;
}

/** Decides about one object. */
export function judge({ node, dependents, owners }: Case): ObjectAction {
  if (node.orphaning) return { do: 'orphan dependents', uids: dependents.map(({ uid }) => uid) };
  if (node.foreground) {
    const blocking = dependents.filter((dependent) => blocks(dependent.owners, node.uid));
    if (blocking.length === 0) return { do: 'finish foreground' };
    return {
      do: 'visit dependents',
      uids: blocking.filter(({ foreground }) => !foreground).map(({ uid }) => uid),
    };
  }
  if (!needsOwners(node)) return { do: 'nothing' };

  const going = node.owners.filter(({ uid }) => owners.get(uid) !== 'present');
  if (going.length === 0) return { do: 'nothing' };
  if (going.length < node.owners.length) {
    return { do: 'forget owners', uids: going.map(({ uid }) => uid) };
  }
  const awaited = going.some(({ uid }) => owners.get(uid) === 'waiting');
  if (!awaited || dependents.length === 0) return { do: 'delete', policy: 'Background' };
  // Owner and dependent may wait for each other in a circle.
  return dependents.some(({ foreground }) => foreground)
    ? { do: 'unblock and delete' }
    : { do: 'delete', policy: 'Foreground' };
}

function blocks(owners: readonly OwnerReference[], uid: string): boolean {
  return owners.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true);
}
