/** JSON Merge Patch (RFC 7386). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/json/go-json.ts';
import { setMember } from '../schema/schema.ts';

/**
 * `target` with the patch merged in; neither is changed, and the result may share parts of both. Members of merged
 * objects come sorted, as Go writes them.
 */
export function applyMergePatch(target: JsonRecord, patch: JsonRecord): JsonRecord {
  const merged = new Map(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      merged.delete(key);
    } else {
      const before = merged.get(key);
      merged.set(
        key,
        isObject(before) && isObject(value) ? applyMergePatch(before, value) : withoutNulls(value),
      );
    }
  }
  const result: JsonRecord = {};
  for (const key of [...merged.keys()].sort()) setMember(result, key, merged.get(key));
  return result;
}

export function isObject(value: unknown): value is JsonRecord {
  return isRecord(value) && !(value instanceof RawNumber);
}

/** A new value loses its null members, those of objects in lists included; what is left comes sorted. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: JsonRecord = {};
  for (const key of Object.keys(value).sort()) {
    if (value[key] !== null) setMember(kept, key, withoutNulls(value[key]));
  }
  return kept;
}
