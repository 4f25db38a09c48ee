import { isAlreadyExists, isNamespaceTerminating } from '../client/errors.ts';
import { namespaces, serviceAccounts } from '../client/resources.ts';
import { joinKey, keyOf, type ObjectKey } from '../objects/meta.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../runtime/context.ts';
import { Controller } from '../runtime/key-loop.ts';

const accountName = 'default';

/** Maintains a ServiceAccount `default` in every namespace (kube-controller-manager's `serviceaccount-controller`). */
export const serviceAccountsController: ControllerDefinition = {
  name: 'serviceaccount-controller',
  start,
};

function start(context: ControllerContext): readonly Runnable[] {
  const spaces = context.informers.informer(namespaces);
  const accounts = context.informers.informer(serviceAccounts);
  const client = context.clients.for(serviceAccounts);

  const controller = new Controller({
    name: 'serviceaccount',
    context,
    waitFor: [spaces, accounts],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const namespace = spaces.cache.get(key);
      if (namespace === undefined || namespace.status.phase === 'Terminating') return undefined;
      if (accounts.cache.has(joinKey(key, accountName))) return undefined;
      try {
        await client.create({ metadata: { namespace: key, name: accountName } }, { signal });
      } catch (error) {
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
      }
      return undefined;
    },
  });
  spaces.addHandler({
    added: (namespace) => controller.enqueue(keyOf(namespace)),
    updated: (namespace) => controller.enqueue(keyOf(namespace)),
  });
  accounts.addHandler({
    deleted: ({ metadata }) => {
      if (metadata.name === accountName) controller.enqueue(metadata.namespace ?? '');
    },
  });
  return [controller];
}
