import type { ServedResource as DiscoveredResource, ServedResources } from './discovery/served-resource.ts';
import type { ServerCore } from './rest/server-core.ts';
import type { SubresourceHandlers } from './rest/dispatch.ts';

/** What serves subresources that are no part of their object. */
export function subresourceHandlers(): SubresourceHandlers {
  return new Map();
}

/** The served resources with their subresource rows, as discovery shows them. */
export function servedForDiscovery(core: ServerCore): ServedResources {
  let version = -1;
  let rows: readonly DiscoveredResource[] = [];
  return () => {
    if (version !== core.resources.version) {
      version = core.resources.version;
      rows = core.resources.all().map(({ definition }) => ({ definition, subresources: [] }));
    }
    return rows;
  };
}
