import type { Handler } from '../http/exchange.ts';
import type { DiscoveredResources } from './discovered-resource.ts';

/** Serves `/api`, `/api/v1`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`, aggregated discovery included. */
export function discoveryHandler(_served: DiscoveredResources, _address: () => string): Handler {
  throw new Error('not built yet');
}
