import { isRecord, isStringList } from './json.ts';
import type { Endpoint } from './discovery.generated.ts';
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
