import type { KubeObject, ManagedFieldsEntry } from '../../objects/meta.ts';
import type { StatusError } from '../../objects/status.ts';
import type {
  Reservation,
  SideObject,
  SideObjectKey,
  StrategyContext,
} from '../../registry/generic/strategy.ts';
import { trackUpdate } from '../patch/apply/track-update.ts';
import { objectKey, PreconditionError, type StoredObject, type Write } from '../storage/storage.ts';
import type { ServerCore } from './server-core.ts';
import { ownableFields } from './tracker.ts';

/** A reservation of nothing. */
export const nothing: Reservation = { creates: [], deletes: [], commit: noop, rollback: noop };

function noop(): void {
  // Nothing was taken.
}

/**
 * Stores the object together with the side objects of the reservation, and settles the reservation: with the write it
 * is committed, else rolled back.
 *
 * @throws {PreconditionError} when the object itself is not as expected.
 * @throws {StatusError} of the reservation when a side object exists already.
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
    throw takenSide(reservation, error) ?? error;
  }
  reservation.commit();
  return stored[reservation.creates.length];
}

/** Another request stored an object with the name of a side object meanwhile. */
function takenSide(reservation: Reservation, error: unknown): StatusError | undefined {
  if (!(error instanceof PreconditionError)) return undefined;
  return reservation.creates.find((side) => keyOfSide(side) === error.key)?.taken();
}

const sideManager = 'kube-apiserver';

function sideCreate(core: ServerCore, side: SideObject, now: string): Write {
  const object: KubeObject = side.object;
  object.metadata.uid = core.newUid();
  object.metadata.creationTimestamp = now;
  const managedFields = sideManagedFields(core, side, now);
  if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  return { key: keyOfSide(side), expect: 'absent', object };
}

/** Side objects of a kind have the same fields, so that what they own is worked out once. */
const sideFields = new Map<string, readonly ManagedFieldsEntry[]>();

function sideManagedFields(
  core: ServerCore,
  side: SideObject,
  now: string,
): ManagedFieldsEntry[] | undefined {
  const kind = `${side.group}/${side.plural}`;
  let entries = sideFields.get(kind);
  if (entries === undefined) {
    const served = core.resources.find(side.group, 'v1', side.plural);
    if (served === undefined) return undefined;
    entries = trackUpdate({
      schema: served.schema,
      live: undefined,
      next: side.object,
      manager: sideManager,
      subresource: '',
      apiVersion: served.apiVersion,
      now,
      ownable: ownableFields(served, ''),
    });
    if (entries === undefined) return undefined;
    sideFields.set(kind, entries);
  }
  return entries.map((entry) => ({ ...entry, time: now }));
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
