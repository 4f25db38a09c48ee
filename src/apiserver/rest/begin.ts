import type { KubeObject } from '../../objects/meta.ts';
import type { Reservation, SideObject, SideObjectKey, StrategyContext } from '../../registry/strategy.ts';
import { trackUpdate } from '../apply/track-update.ts';
import { objectKey, type StoredObject, type Write } from '../storage/storage.ts';
import type { ServerCore } from './server-core.ts';

/** A reservation of nothing. */
export const nothing: Reservation = { creates: [], deletes: [], commit: noop, rollback: noop };

function noop(): void {
  // Nothing was taken.
}

/** Two reservations of one request as one. */
export function both(first: Reservation, second: Reservation): Reservation {
  if (first === nothing) return second;
  if (second === nothing) return first;
  return {
    creates: [...first.creates, ...second.creates],
    deletes: [...first.deletes, ...second.deletes],
    commit: () => {
      first.commit();
      second.commit();
    },
    rollback: () => {
      second.rollback();
      first.rollback();
    },
  };
}

/**
 * Stores the object together with what the reservation wants stored or removed, and settles the reservation: with
 * the write it becomes permanent, without it everything goes back.
 */
export async function commitWith(
  core: ServerCore,
  reservation: Reservation,
  write: Write,
  context: StrategyContext,
): Promise<StoredObject | undefined> {
  const writes = [
    ...reservation.creates.map((side) => sideCreate(core, side, context.now)),
    write,
    ...reservation.deletes.filter((side) => isStored(core, side)).map(sideDelete),
  ];
  let stored: readonly StoredObject[];
  try {
    stored = await core.storage.commit(writes);
  } catch (error) {
    reservation.rollback();
    throw error;
  }
  reservation.commit();
  return stored[reservation.creates.length];
}

const sideManager = 'kube-apiserver';

function sideCreate(core: ServerCore, side: SideObject, now: string): Write {
  const object: KubeObject = side.object;
  object.metadata.uid = core.newUid();
  object.metadata.creationTimestamp = now;
  const served = core.resources.all().find(({ definition }) => definition.group === side.group && definition.plural === side.plural);
  if (served !== undefined) {
    const managedFields = trackUpdate({
      schema: served.schema,
      live: undefined,
      next: object,
      manager: sideManager,
      subresource: '',
      apiVersion: served.apiVersion,
      now,
      hasStatus: served.definition.strategy.status !== undefined,
    });
    if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  }
  return { key: keyOfSide(side), expect: 'absent', object };
}

function keyOfSide(side: SideObjectKey): string {
  return objectKey(side.group, side.plural, side.namespace, side.name);
}

function isStored(core: ServerCore, side: SideObjectKey): boolean {
  return core.storage.getForUpdate(keyOfSide(side)) !== undefined;
}

function sideDelete(side: SideObjectKey): Write {
  return { key: keyOfSide(side), expect: 'any', object: undefined };
}
