import type { EndpointSubset } from '../../../objects/core.generated.ts';

/** The most addresses that one Endpoints object may hold (`maxCapacity` of the endpoints controller). */
const maxAddresses = 1000;

/**
 * Cuts subsets to at most {@link maxAddresses} addresses: ready ones come before those that are not, and each subset
 * keeps a share in proportion to its size, rounded up, so that the last ones may keep less. Undefined when all fit.
 */
export function truncate(subsets: readonly EndpointSubset[]): EndpointSubset[] | undefined {
  let ready = 0;
  let notReady = 0;
  for (const subset of subsets) {
    ready += subset.addresses?.length ?? 0;
    notReady += subset.notReadyAddresses?.length ?? 0;
  }
  if (ready + notReady <= maxAddresses) return undefined;

  const cutReady = ready > maxAddresses;
  const room = cutReady ? maxAddresses : maxAddresses - ready;
  const total = cutReady ? ready : notReady;
  let left = room;
  const result: EndpointSubset[] = [];
  for (const subset of subsets) {
    const { addresses = [], notReadyAddresses = [], ports } = subset;
    const cut = cutReady ? addresses : notReadyAddresses;
    const kept = cut.slice(0, Math.min(left, Math.ceil((cut.length / total) * room)));
    left -= kept.length;
    const keptReady = cutReady ? kept : addresses;
    const keptNotReady = cutReady ? [] : kept;
    // A subset without addresses is invalid.
    if (keptReady.length + keptNotReady.length === 0) continue;
    result.push({
      ...(keptReady.length === 0 ? {} : { addresses: keptReady }),
      ...(keptNotReady.length === 0 ? {} : { notReadyAddresses: keptNotReady }),
      ...(ports === undefined ? {} : { ports }),
    });
  }
  return result;
}
