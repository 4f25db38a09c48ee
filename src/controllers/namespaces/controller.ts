import { isNotFound, isConflict } from '../../client/errors.ts';
import { ResourceClient } from '../../client/resource-client.ts';
import type { Transport } from '../../client/transport.ts';
import { isStringList } from '../../objects/json.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { StatusError, errorMessage } from '../../objects/status.ts';
import { describeDiscoveryFailure, discover, type DiscoveredType } from '../../client/discovery.ts';
import { type Pass, finalized, isEmptied, planConditions } from './plan.ts';
import { namespaces } from '../../client/resources.ts';
import type { Namespace } from '../../objects/types/core.generated.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { ControllerSpec } from '../../runtime/key-loop.ts';

/** Deletes everything in a namespace once, Pods first, and reports what remains. */
async function deleteContent(transport: Transport, namespace: string, signal: AbortSignal): Promise<Pass> {
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

/** Options of {@link namespacesController}. */
export interface NamespacesOptions {
  /** For discovery, and for resources that are not known in advance. */
  readonly transport: Transport;
  /**
   * Milliseconds between the deletion of a namespace and the first pass; default 5000, as in kube-controller-manager:
   * requests that were admitted before the deletion are stored by then.
   */
  readonly gracePeriodMs?: number | undefined;
}

/** Milliseconds until the next pass over a namespace that is not empty. */
const nextPassMs = { first: 500, max: 15_000 };

/** Empties namespaces that are being deleted (kube-controller-manager's `namespace-controller`). */
export function namespacesController({ transport, gracePeriodMs = 5000 }: NamespacesOptions): ControllerSpec {
  return {
    name: 'namespace-controller',
    eventSource: 'namespace-controller',
    queue: 'namespace',
    workers: 10,
    build(loop) {
      const { clients, clock, log } = loop.context;
      const client = clients.for(namespaces);
      const informer = loop.cache(namespaces);

      /** Passes over each namespace that is not empty yet. */
      const passes = new Map<ObjectKey, number>();

      loop.on(informer, (change) => {
        const { kind, object } = change;
        const wasDeleted = kind === 'updated' && change.old.metadata.deletionTimestamp !== undefined;
        if (kind !== 'deleted' && object.metadata.deletionTimestamp !== undefined && !wasDeleted) {
          loop.enqueue(keyOf(object), { afterMs: gracePeriodMs });
        }
        return [];
      });

      return async (key, signal) => {
        const cached = informer.cache.get(key);
        if (cached?.metadata.deletionTimestamp === undefined || isFinalized(cached)) {
          passes.delete(key);
          return undefined;
        }
        try {
          // A live read: other clients edit a namespace during its deletion.
          const namespace = await client.get('', key, { signal });
          if (namespace.metadata.deletionTimestamp === undefined || isFinalized(namespace)) return undefined;
          const pass = await deleteContent(transport, key, signal);
          const conditions = planConditions(namespace.status.conditions, pass, formatTime(clock.now()));
          const reported =
            conditions === undefined
              ? namespace
              : await client.replaceStatus(
                  { ...namespace, status: { ...namespace.status, conditions } },
                  { signal },
                );
          if (isEmptied(pass)) {
            await client.replace(finalized(reported), { subresource: 'finalize', signal });
            log.info({ key }, 'namespace emptied');
            passes.delete(key);
            return undefined;
          }
        } catch (error) {
          if (isNotFound(error)) return undefined;
          if (!isConflict(error)) throw error;
        }
        const count = passes.get(key) ?? 0;
        passes.set(key, count + 1);
        return { requeueAfterMs: Math.min(nextPassMs.first * 2 ** count, nextPassMs.max) };
      };
    },
  };
}

/** True when `spec.finalizers` is empty: the API server then removes the namespace. */
function isFinalized({ spec }: Namespace): boolean {
  return (spec.finalizers ?? []).length === 0;
}
