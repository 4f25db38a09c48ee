import type { PlannedEndpoint } from '../../network/forwarding/forwarding-plan.ts';

/**
 * The slots of a Service port's endpoints: `slots[i]` gets the connections that draw i. Endpoints that stay keep their
 * slots as far as these exist still, and the others take those that are free, so that removing one endpoint of many
 * changes two slots at most.
 *
 * @param previous the slots until now, as far as they are known.
 * @param endpoints without duplicates. The result is this very list where it has their order already.
 */
export function assignSlots(
  previous: readonly (PlannedEndpoint | undefined)[],
  endpoints: readonly PlannedEndpoint[],
): readonly PlannedEndpoint[] {
  if (previous.length === 0 || isInOrder(previous, endpoints)) return endpoints;
  const unplaced = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const kept = endpoints.map((_, slot) => {
    const key = previous[slot] === undefined ? undefined : endpointKey(previous[slot]);
    const endpoint = key === undefined ? undefined : unplaced.get(key);
    if (endpoint !== undefined && key !== undefined) unplaced.delete(key);
    return endpoint;
  });
  const rest = unplaced.values();
  return kept.map((endpoint) => endpoint ?? next(rest));
}

function isInOrder(
  previous: readonly (PlannedEndpoint | undefined)[],
  endpoints: readonly PlannedEndpoint[],
): boolean {
  return endpoints.every((endpoint, slot) => {
    const former = previous[slot];
    return former?.address === endpoint.address && former.port === endpoint.port;
  });
}

function endpointKey({ address, port }: PlannedEndpoint): string {
  return `${address} ${port}`;
}

function next(endpoints: Iterator<PlannedEndpoint, undefined>): PlannedEndpoint {
  const { value } = endpoints.next();
  if (value === undefined) throw new Error('an endpoint is in the list twice');
  return value;
}
