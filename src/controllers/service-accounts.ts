import { isAlreadyExists, isNamespaceTerminating } from '../client/errors.ts';
import { namespaces, serviceAccounts } from '../client/resources.ts';
import { joinKey, keyOf } from '../objects/meta.ts';
import type { ControllerSpec } from '../runtime/key-loop.ts';

const accountName = 'default';

/** Maintains a ServiceAccount `default` in every namespace (kube-controller-manager's `serviceaccount-controller`). */
export const serviceAccountsController: ControllerSpec = {
  name: 'serviceaccount-controller',
  eventSource: 'serviceaccount-controller',
  queue: 'serviceaccount',
  build(loop) {
    const client = loop.context.clients.for(serviceAccounts);
    const spaces = loop.cache(namespaces);
    const accounts = loop.cache(serviceAccounts);

    loop.on(spaces, ({ kind, object }) => (kind === 'deleted' ? [] : [keyOf(object)]));
    loop.on(accounts, ({ kind, object: { metadata } }) =>
      kind === 'deleted' && metadata.name === accountName ? [metadata.namespace ?? ''] : [],
    );

    return async (key, signal) => {
      const namespace = spaces.cache.get(key);
      if (namespace === undefined || namespace.status.phase === 'Terminating') return undefined;
      if (accounts.cache.has(joinKey(key, accountName))) return undefined;
      try {
        await client.create({ metadata: { namespace: key, name: accountName } }, { signal });
      } catch (error) {
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error)) throw error;
      }
      return undefined;
    };
  },
};
