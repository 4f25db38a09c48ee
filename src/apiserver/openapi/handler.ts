import type { DiscoveredResources } from '../discovery/discovered-resource.ts';
import type { Handler } from '../http/exchange.ts';

/** OpenAPI v3 schemas by component name, as in `components.schemas`. Same object while nothing changed. */
export type SchemaSource = () => ReadonlyMap<string, unknown>;

/** Serves `/openapi/v2` and `/openapi/v3`. */
export function openApiHandler(_served: DiscoveredResources, _schemas: SchemaSource): Handler {
  throw new Error('not built yet');
}
