import type { Handler } from '../http/exchange.ts';
import type { ServedResources } from './served-resource.ts';

/** Serves `/api`, `/api/v1`, `/apis`, `/apis/<group>` and `/apis/<group>/<version>`, aggregated discovery included. */
export function discoveryHandler(_served: ServedResources, _address: () => string): Handler {
  throw new Error('not built yet');
}
