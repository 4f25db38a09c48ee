/**
 * The decision of the garbage collector about one object (pkg/controller/garbagecollector, `garbagecollector.go`).
 * Pure.
 */
import type { OwnerReference } from '../../objects/meta.ts';
import type { GraphNode } from './graph.ts';

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
