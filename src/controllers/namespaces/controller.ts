import { isConflict, isNotFound } from '../../client/errors.ts';
import { namespaces } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { Namespace } from '../../objects/types/core.generated.ts';
import { formatTime } from '../../objects/time.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller, type ReconcileResult } from '../../runtime/controller.ts';
import { deleteContent } from './content.ts';
import { finalized, isEmptied, planConditions } from './plan.ts';

/** Options of {@link namespacesController}. */
export interface NamespacesOptions {
  /** For discovery, and for resources that are not known in advance. */
  readonly transport: Transport;
  /**
   * Milliseconds between the deletion of a namespace and the first pass; default 5000, as in kube-controller-manager:
   * requests that were admitted before the deletion are stored by then.
   */
  readonly gracePeriod?: number;
}

/** Milliseconds until the next pass over a namespace that is not empty. */
const nextPass = { first: 500, max: 15_000 };

/** Empties namespaces that are being deleted (kube-controller-manager's `namespace-controller`). */
export function namespacesController({
  transport,
  gracePeriod = 5000,
}: NamespacesOptions): ControllerDefinition {
  return {
    name: 'namespace-controller',
    start: (context) => start(context, transport, gracePeriod),
  };
}

function start(context: ControllerContext, transport: Transport, gracePeriod: number): readonly Runnable[] {
  const informer = context.informers.informer(namespaces);
  const client = context.clients.for(namespaces);
  const passes = new Map<ObjectKey, number>();

  const reconcile = async (key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> => {
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
      const conditions = planConditions(namespace.status.conditions, pass, formatTime(context.clock.now()));
      const reported =
        conditions === undefined
          ? namespace
          : await client.replaceStatus(
              { ...namespace, status: { ...namespace.status, conditions } },
              { signal },
            );
      if (isEmptied(pass)) {
        await client.replace(finalized(reported), { subresource: 'finalize', signal });
        context.log.info({ key }, 'namespace emptied');
        passes.delete(key);
        return undefined;
      }
    } catch (error) {
      if (isNotFound(error)) return undefined;
      if (!isConflict(error)) throw error;
    }
    const count = passes.get(key) ?? 0;
    passes.set(key, count + 1);
    return { requeueAfter: Math.min(nextPass.first * 2 ** count, nextPass.max) };
  };

  const controller = new Controller({
    name: 'namespace',
    context,
    reconcile,
    workers: 10,
    waitFor: [informer],
  });
  const note = (namespace: Namespace, after: number): void => {
    if (namespace.metadata.deletionTimestamp !== undefined) controller.enqueue(keyOf(namespace), { after });
  };
  informer.addHandler({
    added: (namespace) => note(namespace, gracePeriod),
    updated: (namespace, old) => {
      if (old.metadata.deletionTimestamp === undefined) note(namespace, gracePeriod);
    },
  });
  return [controller];
}

/** True when `spec.finalizers` is empty: the API server then removes the namespace. */
function isFinalized({ spec }: Namespace): boolean {
  return (spec.finalizers ?? []).length === 0;
}
