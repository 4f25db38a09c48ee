import { isRecord, isStringList } from './json.ts';
import type { EndpointAddress, EndpointSubset } from './types/core.generated.ts';
import type { Endpoint } from './types/discovery.generated.ts';
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

/** Adds what kube-apiserver always sends: both lists, and the conditions of each endpoint. */
export function completeSlice(slice: object): void {
  for (const list of ['endpoints', 'ports']) {
    if (Reflect.get(slice, list) === undefined) Reflect.set(slice, list, null);
  }
  const endpoints: unknown = Reflect.get(slice, 'endpoints');
  if (!Array.isArray(endpoints)) return;
  for (const endpoint of endpoints) if (isRecord(endpoint)) endpoint['conditions'] ??= {};
}

/** True for endpoints in the shape that all readers rely on. */
export function isSliceEndpoint(value: unknown): value is Endpoint {
  if (!isRecord(value) || !isStringList(value['addresses'])) return false;
  const { conditions, targetRef, hints } = value;
  return (
    isRecord(conditions) &&
    (targetRef === undefined || isRecord(targetRef)) &&
    (hints === undefined || isRecord(hints))
  );
}
