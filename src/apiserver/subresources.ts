import { discovered, type DiscoveredResource, type DiscoveredResources } from './discovery/discovered-resource.ts';
import type { SpecialHandlers } from './rest/dispatch.ts';
import type { ResourceHandler } from './rest/handlers.ts';
import { reviewHandler } from './reviews/handler.ts';
import { reviewKinds, type ReviewSources } from './reviews/reviews.ts';
import type { ServerCore } from './rest/server-core.ts';

/** What serves subresources that are no part of their object, and reviews. */
export function specialHandlers(reviews: ReviewSources): SpecialHandlers {
  const handlers = new Map<string, ResourceHandler>();
  for (const [name, { review }] of reviewKinds) handlers.set(`${name}/`, reviewHandler(review, reviews));
  return handlers;
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
