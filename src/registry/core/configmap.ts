import type { ConfigMap } from '../../objects/types/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { type FieldError, forbiddenField, invalid, tooLong } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { isConfigMapKey, nameIsDNSSubdomain } from '../../objects/names.ts';

/** The limit of all keys' values together, in bytes (`MaxSecretSize`). */
export const maxDataBytes = 1024 * 1024;

/** The rules of ConfigMaps (`ValidateConfigMap`, `ValidateConfigMapUpdate`). */
export const configMapStrategy = genericStrategy<ConfigMap>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  repeatsCreate: 'after',
  validateCreate(configMap) {
    const { data = {}, binaryData = {} } = configMap;
    const errors: FieldError[] = [];
    let bytes = 0;
    for (const [key, value] of Object.entries(data)) {
      pushKeyErrors(errors, 'data', key);
      if (Object.hasOwn(binaryData, key)) {
        errors.push(invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
      }
      bytes += Buffer.byteLength(value);
    }
    for (const [key, value] of Object.entries(binaryData)) {
      pushKeyErrors(errors, 'binaryData', key);
      bytes += Buffer.byteLength(value, 'base64');
    }
    if (bytes > maxDataBytes) errors.push(tooLong('', maxDataBytes));
    return errors;
  },
  validateUpdate: (configMap, old) => validateImmutable(configMap, old, ['data', 'binaryData']),
});

/** A key of `data` must be usable as a file name. */
export function pushKeyErrors(errors: FieldError[], path: string, key: string): void {
  for (const message of isConfigMapKey(key)) errors.push(invalid(`${path}[${key}]`, key, message));
}

/** Once `immutable` is set, neither it nor the data can change. */
export function validateImmutable<T extends { immutable?: boolean }>(
  object: T,
  old: T,
  members: readonly (keyof T & string)[],
): FieldError[] {
  if (old.immutable !== true) return [];
  const changed = members.filter((member) => !jsonEqual(object[member] ?? {}, old[member] ?? {}));
  return [...(object.immutable === true ? [] : ['immutable']), ...changed].map((member) =>
    forbiddenField(member, 'field is immutable when `immutable` is set'),
  );
}
