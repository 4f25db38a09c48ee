import { discovered, type DiscoveredResource, type DiscoveredResources } from './discovery/discovered-resource.ts';
import type { SubresourceHandlers } from './rest/dispatch.ts';
import type { ServerCore } from './rest/server-core.ts';

/** What serves subresources that are no part of their object. */
export function subresourceHandlers(): SubresourceHandlers {
  return new Map();
}

/** The served resources with their subresource rows, as discovery and OpenAPI show them. */
export function servedForDiscovery(core: ServerCore): DiscoveredResources {
  let version = -1;
  let rows: readonly DiscoveredResource[] = [];
  return () => {
    if (version !== core.resources.version) {
      version = core.resources.version;
      rows = core.resources.all().map(({ definition, custom }) => discovered(definition, [], custom));
    }
    return rows;
  };
}
