import type { KubeObject, ManagedFieldsEntry } from '../../objects/meta.ts';
import { managerName } from '../patch/apply/manager-name.ts';
import type { OwnableFields } from '../../registry/generic/strategy.ts';
import { trackConverting, trackUpdate } from '../patch/apply/track-update.ts';
import type { ApiRequest } from '../http/exchange.ts';
import type { ServedResource } from './served-resource.ts';
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
    if (conversion === undefined) {
      setManagedFields(object, trackUpdate(update));
      return undefined;
    }
    return trackConverting(update, conversion).then((entries) => setManagedFields(object, entries));
  };
}

function setManagedFields({ metadata }: KubeObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries === undefined) delete metadata.managedFields;
  else metadata.managedFields = entries;
}
