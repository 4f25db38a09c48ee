import { isAlreadyExists, isNotFound } from '../client/errors.ts';
import type { Draft, ResourceClient } from '../client/resource-client.ts';
import type { KubeObject } from '../objects/meta.ts';

/**
 * Creates an object of the cluster's own, unless there is one of the name: that of an earlier run, or the user's. It is
 * looked for first: a create of what exists can be refused for another reason, such as its cluster IP.
 */
export async function createMissing<T extends KubeObject>(
  client: ResourceClient<T>,
  object: Draft<T>,
): Promise<void> {
  const { namespace = '', name = '' } = object.metadata;
  try {
    await client.get(namespace, name);
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  try {
    await client.create(object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
