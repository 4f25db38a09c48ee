import { StatusError } from '../../objects/status.ts';
import type { UserInfo } from '../http/exchange.ts';
import { deleteObject } from '../rest/delete.ts';
import type { DeleteOptions } from '../rest/delete-options.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix } from '../storage/storage.ts';

const finalizer: UserInfo = { name: 'system:apiserver', uid: '', groups: ['system:masters'], extra: {} };
const options: DeleteOptions = {
  gracePeriodSeconds: undefined,
  preconditions: {},
  orphanDependents: undefined,
  propagationPolicy: undefined,
  dryRun: false,
};

/**
 * Deletes all objects of a custom resource whose definition goes (apiextensions `finalizer` controller). Those with
 * finalizers stay until somebody has taken them off.
 *
 * @returns true when none is left.
 */
export async function emptyResource(core: ServerCore, resource: ServedResource): Promise<boolean> {
  const { group, plural } = resource.definition;
  const prefix = listPrefix(group, plural);
  for (const { object } of core.storage.list(prefix).items) {
    const { namespace = '', name = '' } = object.metadata;
    try {
      await deleteObject(core, resource, {
        namespace,
        name,
        user: finalizer,
        options,
        warn: () => undefined,
      });
    } catch (error) {
      // Gone already, or kept by a webhook: then the definition waits for it.
      if (!(error instanceof StatusError)) throw error;
      if (error.reason !== 'NotFound')
        core.log.warn(
          { key: `${namespace}/${name}`, resource: plural, err: error },
          'cannot delete an object of a CustomResourceDefinition that is being deleted',
        );
    }
  }
  return core.storage.count(prefix) === 0;
}
