import { StatusError } from '../../objects/status.ts';
import { deleteObject } from '../rest/delete.ts';
import type { CheckedDeleteOptions } from '../rest/options.ts';
import type { ServedResource } from '../rest/served-resource.ts';
import type { ServerCore } from '../rest/server-core.ts';
import { listPrefix } from '../storage/storage.ts';
import { systemUser } from '../authentication/users.ts';

const options: CheckedDeleteOptions = {
  gracePeriodSeconds: undefined,
  preconditions: {},
  orphanDependents: undefined,
  propagationPolicy: undefined,
  dryRun: false,
};

/** The result of the deletion of a definition's objects. */
export interface DeletionResult {
  readonly isEmpty: boolean;
  /** The controller's message where objects could not be deleted; undefined when nothing failed. */
  readonly failure: string | undefined;
}

/**
 * Deletes all objects of a custom resource whose definition is being deleted (apiextensions
 * `pkg/controller/finalizer/crd_finalizer.go`). Objects with finalizers stay until these are removed.
 */
export async function deleteCustomObjects(
  core: ServerCore,
  resource: ServedResource,
): Promise<DeletionResult> {
  const { group, plural } = resource.definition;
  const prefix = listPrefix(group, plural);
  const { items } = core.storage.list(prefix);
  try {
    await resource.conversion?.read(items);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { isEmpty: false, failure: `could not list instances: ${error.message}` };
  }
  const failures = new Set<string>();
  for (const { object } of items) {
    const { namespace = '', name = '' } = object.metadata;
    try {
      await deleteObject(core, resource, {
        namespace,
        name,
        user: systemUser,
        options,
        warn: () => undefined,
      });
    } catch (error) {
      // Deleted already, or refused by a webhook, which the definition waits for.
      if (!(error instanceof StatusError)) throw error;
      if (error.reason === 'NotFound') continue;
      failures.add(error.message);
      core.log.warn(
        { key: `${namespace}/${name}`, resource: plural, err: error },
        'cannot delete an object of a CustomResourceDefinition that is being deleted',
      );
    }
  }
  const texts = [...failures].join(', ');
  return {
    isEmpty: core.storage.count(prefix) === 0,
    failure:
      failures.size === 0
        ? undefined
        : `could not issue all deletes: ${failures.size === 1 ? texts : `[${texts}]`}`,
  };
}
