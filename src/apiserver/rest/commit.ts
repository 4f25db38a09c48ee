import type { KubeObject, ManagedFieldsEntry } from '../../objects/meta.ts';
import type {
  OwnableFields,
  Reservation,
  SideObject,
  SideObjectKey,
  StrategyContext,
} from '../../registry/generic/strategy.ts';
import { trackConverting, trackingUpdate, trackUpdate } from '../patch/apply/track-update.ts';
import type { ApiRequest } from '../http/exchange.ts';
import type { ServedResource } from './served-resource.ts';
import { runInSlices } from '../../telemetry/time-slice.ts';
import { type ServerCore, timestamp } from './server-core.ts';
import type { StatusError } from '../../objects/status.ts';
import { objectKey, PreconditionError, type StoredObject, type Write } from '../storage/storage.ts';

type Track = (object: KubeObject, live?: KubeObject) => void | Promise<void>;

/** Records the request's manager, `named` or "", as the owner of the fields that it changes. */
export function fieldManager(
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  named: string,
): Track {
  const manager = managerName(named === '' ? null : named, request.headers['user-agent']);
  return recordFieldManager(core, resource, manager, request.info.subresource);
}

/** The fields that writers of an endpoint can own; `subresource` is "" for the main resource. */
export function ownableFields({ definition }: ServedResource, subresource: string): OwnableFields {
  const { strategy } = definition;
  if (subresource === '') return strategy;
  if (subresource === 'status') return strategy.status ?? everything;
  return strategy.subresources?.get(subresource) ?? everything;
}

const everything: OwnableFields = {};

/** Records a manager as the owner of the fields that it changes through a subresource, "" for the main resource. */
export function recordFieldManager(
  core: ServerCore,
  resource: ServedResource,
  manager: string,
  subresource: string,
): Track {
  const ownable = ownableFields(resource, subresource);
  const { conversion } = resource;
  return (object, live) => {
    const update = {
      schema: resource.schema,
      live,
      next: object,
      manager,
      subresource,
      apiVersion: resource.apiVersion,
      now: timestamp(core.now()),
      ownable,
    };
    const entries =
      conversion === undefined ? runInSlices(trackingUpdate(update)) : trackConverting(update, conversion);
    if (entries instanceof Promise) return entries.then((found) => setManagedFields(object, found));
    setManagedFields(object, entries);
    return undefined;
  };
}

function setManagedFields({ metadata }: KubeObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries === undefined) delete metadata.managedFields;
  else metadata.managedFields = entries;
}

/** Bytes that a manager's name may have (apimachinery `meta/v1/validation` FieldManagerMaxLength). */
const maxBytes = 128;

const printable = /[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/**
 * The manager that a write is recorded under: the `fieldManager` parameter, else the User-Agent up to the first
 * "/", without unprintable characters, as much of it as fits into 128 bytes; "unknown" when nothing is left.
 */
export function managerName(fieldManager: string | null, userAgent = ''): string {
  if (fieldManager !== null && fieldManager !== '') return fieldManager;
  if (last.userAgent !== userAgent) last = { userAgent, name: nameOf(userAgent) };
  return last.name;
}

/** Most requests come from the client of the one before. */
let last = { userAgent: '', name: 'unknown' };

function nameOf(userAgent: string): string {
  let name = '';
  for (const character of userAgent.split('/', 1)[0] ?? '') {
    if (!printable.test(character)) continue;
    if (Buffer.byteLength(name + character) > maxBytes) break;
    name += character;
  }
  return name === '' ? 'unknown' : name;
}

/** A reservation of nothing. */
export const emptyReservation: Reservation = { creates: [], deletes: [], commit: noop, rollback: noop };

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
export async function commit(
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
    throw sideObjectExists(reservation, error) ?? error;
  }
  reservation.commit();
  return stored[reservation.creates.length];
}

/** Another request stored an object with the name of a side object meanwhile. */
function sideObjectExists(reservation: Reservation, error: unknown): StatusError | undefined {
  if (!(error instanceof PreconditionError)) return undefined;
  return reservation.creates.find((side) => keyOfSide(side) === error.key)?.nameTaken();
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

/**
 * The error of kube-apiserver's storage for a failed precondition (`storage.Preconditions.Check`): passed to clients
 * unchanged.
 *
 * @param key where kube-apiserver keeps the object in etcd.
 * @param found what the stored object has, "" where there is none.
 */
export function preconditionFailed(
  key: string,
  field: 'UID' | 'ResourceVersion',
  wanted: string,
  found: string,
): string {
  return invalidStoredObject(
    key,
    `Precondition failed: ${field} in precondition: ${wanted}, ${field} in object meta: ${found}`,
  );
}

function invalidStoredObject(key: string, why: string): string {
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
}

/** The message for a delete that is meant for an object that cannot be read. */
export function readableObject(resource: ServedResource, namespace: string, name: string): string {
  const why = 'unsafe deletion is not allowed because the object is decodable from storage';
  return invalidStoredObject(registryPath(resource, namespace, name), why);
}

/** The message for an object that has another uid than the request named. */
export function uidMismatch(
  resource: ServedResource,
  namespace: string,
  name: string,
  wanted: string,
  found = '',
): string {
  return preconditionFailed(registryPath(resource, namespace, name), 'UID', wanted, found);
}

/** Where kube-apiserver keeps the object in etcd: part of some error texts. */
function registryPath(resource: ServedResource, namespace: string, name: string): string {
  const { group, plural, namespaced } = resource.definition;
  const special = new Map([
    ['services', 'services/specs'],
    ['endpoints', 'services/endpoints'],
    ['nodes', 'minions'],
    ['replicationcontrollers', 'controllers'],
    ['customresourcedefinitions', 'apiextensions.k8s.io/customresourcedefinitions'],
    ['ingresses', 'ingress'],
  ]);
  const folder = resource.custom ? `${group}/${plural}` : (special.get(plural) ?? plural);
  return `/registry/${folder}/${namespaced ? `${namespace}/` : ''}${name}`;
}
