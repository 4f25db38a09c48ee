import { isRecord } from './json.ts';
import type { EndpointAddress, EndpointSubset } from './core.generated.ts';
/** True for subsets in the shape that all readers rely on. */
export function isEndpointSubset(value: unknown): value is EndpointSubset {
  if (!isRecord(value)) return false;
  const { addresses, notReadyAddresses, ports } = value;
  return (
    [addresses, notReadyAddresses].every((list) => isListOf(list, isAddress)) && isListOf(ports, isRecord)
  );
}

function isAddress(value: unknown): value is EndpointAddress {
  if (!isRecord(value) || typeof value['ip'] !== 'string') return false;
  return value['targetRef'] === undefined || isRecord(value['targetRef']);
}

/** True for a list of such items, or none. */
function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.every(isItem));
}
