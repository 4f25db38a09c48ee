import { StatusError } from '../../objects/status.ts';
import type { ApiRequest, Reply } from '../http/exchange.ts';
import type { CheckedDeleteOptions } from './options/delete-options.ts';
import { deleteObject, warnOfDeletion } from './delete.ts';
import { type Listed, listObjects } from './list.ts';
import type { ListOptions } from './options/list-options.ts';
import type { Selection } from './selection.ts';
import type { ServedResource } from './served-resource.ts';
import type { ServerCore } from './server-core.ts';
import { TimeSlice } from '../time-slice.ts';

/**
 * Deletes the objects of a list, one delete each (`Store.DeleteCollection`): not atomic, and an object that is gone
 * already is no error.
 *
 * @returns the list as it was before.
 */
export async function deleteCollection(
  core: ServerCore,
  resource: ServedResource,
  request: ApiRequest,
  reply: Reply,
  options: ListOptions,
  selection: Selection,
  deletion: CheckedDeleteOptions,
): Promise<Listed> {
  const { namespace } = request.info;
  warnOfDeletion(resource.definition.strategy, deletion, (text) => reply.warn(text));
  const listed = await listObjects(core, resource, namespace, asPage(options), selection, request.signal);
  const slice = new TimeSlice();
  for (const { object } of listed.items) {
    if (slice.isOver) await slice.giveWay();
    try {
      await deleteObject(core, resource, {
        namespace: object.metadata.namespace ?? namespace,
        name: object.metadata.name ?? '',
        user: request.user,
        options: deletion,
        warn: (text) => reply.warn(text),
      });
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'NotFound') throw error;
    }
  }
  return listed;
}

/** Without a limit the store lists in pages; with a limit, a version means exactly that one. */
function asPage(options: ListOptions): ListOptions {
  const { limit, resourceVersion, resourceVersionMatch } = options;
  if (limit !== 0 || resourceVersionMatch !== '' || resourceVersion === '' || resourceVersion === '0')
    return options;
  return { ...options, resourceVersionMatch: 'Exact' };
}
