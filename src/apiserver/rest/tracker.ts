import type { KubeObject, ManagedFieldsEntry } from '../../objects/meta.ts';
import type { OwnableFields } from '../../registry/generic/strategy.ts';
import { trackConverting, trackingUpdate } from '../patch/apply/track-update.ts';
import type { ApiRequest } from '../http/exchange.ts';
import type { ServedResource } from './served-resource.ts';
import { runInSlices } from '../time-slice.ts';
import { type ServerCore, timestamp } from './server-core.ts';

type Track = (object: KubeObject, live?: KubeObject) => void | Promise<void>;

/** Records the request's manager as the owner of the fields that it changes. */
export function tracker(
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  fieldManager: string,
): Track {
  const manager = managerName(fieldManager === '' ? null : fieldManager, request.headers['user-agent']);
  return trackAs(core, resource, manager, request.info.subresource);
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
export function trackAs(
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
