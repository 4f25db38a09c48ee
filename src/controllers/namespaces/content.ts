import { isNotFound } from '../../client/errors.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import type { Transport } from '../../client/transport.ts';
import { isStringList } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { StatusError } from '../../objects/status.ts';
import { describeDiscoveryFailure, discover, type DiscoveredType } from '../../client/discovery.ts';
import type { Pass } from './plan.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** Deletes everything in a namespace once, Pods first, and reports what remains. */
export async function deleteContent(
  transport: Transport,
  namespace: string,
  signal: AbortSignal,
): Promise<Pass> {
  const { resources, failures } = await discover(transport, signal);
  const pass = {
    discoveryFailures: failures.map(describeDiscoveryFailure).sort(),
    contentErrors: [] as string[],
    remaining: new Map<string, number>(),
    finalizers: new Map<string, number>(),
  };
  const deletable = resources
    .filter(({ namespaced, verbs }) => namespaced && verbs.includes('delete') && verbs.includes('list'))
    .sort((a, b) => Number(isPods(b)) - Number(isPods(a)));
  for (const resource of deletable) {
    try {
      const left = await empty(transport, resource, namespace, signal);
      if (left.length > 0) pass.remaining.set(`${resource.plural}.${resource.group}`, left.length);
      for (const { metadata } of left) {
        for (const name of isStringList(metadata.finalizers) ? metadata.finalizers : []) {
          pass.finalizers.set(name, (pass.finalizers.get(name) ?? 0) + 1);
        }
      }
      // Controllers of the Pods may need the other objects until the Pods are gone.
      if (isPods(resource) && left.length > 0) break;
    } catch (error) {
      if (signal.aborted) throw error;
      const why = errorMessage(error);
      pass.contentErrors.push(why);
    }
  }
  return pass;
}

function isPods({ group, plural }: DiscoveredType): boolean {
  return group === '' && plural === 'pods';
}

/** Deletes the objects of a resource in a namespace and returns those that remain. */
async function empty(
  transport: Transport,
  resource: DiscoveredType,
  namespace: string,
  signal: AbortSignal,
): Promise<KubeObject[]> {
  const client = new ResourceClient(transport, resource);
  const before = await listAll(client, namespace, signal);
  if (before.length === 0) return [];
  if (resource.verbs.includes('deletecollection')) {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
    await transport.request('DELETE', client.path(namespace), { body, signal });
  } else {
    for (const { metadata } of before) {
      try {
        await client.delete(namespace, metadata.name ?? '', { propagationPolicy: 'Background', signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }
  return listAll(client, namespace, signal);
}

async function listAll(
  client: ResourceClient<KubeObject>,
  namespace: string,
  signal: AbortSignal,
): Promise<KubeObject[]> {
  const all: KubeObject[] = [];
  try {
    for await (const page of client.pages({ namespace, signal }))
      for (const item of page.items) all.push(item);
  } catch (error) {
    // Discovery may list a custom resource that was just removed.
    if (error instanceof StatusError && (error.code === 404 || error.code === 405)) return [];
    throw error;
  }
  return all;
}
