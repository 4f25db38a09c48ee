import { byNamespace, indexByNamespace } from '../../src/client/informers/cache.ts';
import { namespaces, services } from '../../src/client/resources.ts';
import { type ControllerSpec, ownKey } from '../../src/runtime/key-loop.ts';
import { OwnWrites } from '../../src/runtime/own-writes.ts';

const annotation = 'example.dev/services';

/** Says in an annotation of each namespace how many Services it has: the example of CONTRIBUTING.md. */
export const serviceCountController: ControllerSpec = {
  name: 'service-count-controller',
  eventSource: 'service-count-controller',
  queue: 'service_count',
  build(loop) {
    const client = loop.context.clients.for(namespaces);
    const spaces = loop.cache(namespaces);
    const all = loop.cache(services, { indexes: { [byNamespace]: indexByNamespace } });

    const writes = new OwnWrites(loop, spaces);

    loop.on(spaces, ownKey);
    loop.on(all, ({ object }) => [object.metadata.namespace ?? '']);

    return async (key, signal) => {
      const namespace = spaces.cache.get(key);
      if (namespace === undefined) return undefined;
      const waitMs = writes.pendingMs(key);
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      const count = String(all.cache.byIndex(byNamespace, key).length);
      if (namespace.metadata.annotations?.[annotation] === count) return undefined;
      const patch = { metadata: { annotations: { [annotation]: count } } };
      writes.written(key, await client.mergePatch('', key, patch, { signal }));
      return undefined;
    };
  },
};
