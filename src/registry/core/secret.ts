import type { Secret } from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { maxDataBytes, pushKeyErrors, validateImmutable } from './configmap.ts';
import { type FieldError, invalid, required, tooLong } from '../validation/field-errors.ts';
import { genericStrategy, readJsonObject } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';

const accountNameAnnotation = 'kubernetes.io/service-account.name';

/** The rules of Secrets (`ValidateSecret`, `ValidateSecretUpdate`; `core/v1/conversion.go` for stringData). */
export const secretStrategy = genericStrategy<Secret>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  repeatsCreate: 'after',
  setDefaults(secret) {
    if (secret.stringData !== undefined) {
      const data = (secret.data ??= {});
      for (const [key, text] of Object.entries(secret.stringData)) {
        Object.defineProperty(data, key, {
          value: Buffer.from(text).toString('base64'),
          writable: true,
          enumerable: true,
          configurable: true,
        });
      }
      if (Object.keys(data).length === 0) delete secret.data;
      delete secret.stringData;
    }
    if ((secret.type ?? '') === '') secret.type = 'Opaque';
  },
  validateCreate(secret) {
    const errors: FieldError[] = [];
    let bytes = 0;
    for (const [key, value] of Object.entries(secret.data ?? {})) {
      pushKeyErrors(errors, 'data', key);
      bytes += Buffer.byteLength(value, 'base64');
    }
    if (bytes > maxDataBytes) errors.push(tooLong('data', maxDataBytes));
    pushAll(errors, validateType(secret));
    return errors;
  },
  validateUpdate: (secret, old) => [
    ...validateImmutableField(secret.type ?? '', old.type ?? '', 'type'),
    ...validateImmutable(secret, old, ['data']),
  ],
  fields: (secret) => ({ type: secret.type ?? '' }),
});

/** The required keys of the well-known types. */
function validateType(secret: Secret): FieldError[] {
  const { data = {}, metadata } = secret;
  const missing = (...keys: string[]) =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
  switch (secret.type) {
    case 'kubernetes.io/service-account-token':
      return (metadata.annotations?.[accountNameAnnotation] ?? '') === ''
        ? [required(`metadata.annotations[${accountNameAnnotation}]`)]
        : [];
    case 'kubernetes.io/dockercfg':
      return validateJson(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return validateJson(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth': {
      const errors = missing('username', 'password');
      return errors.length === 2 ? errors : [];
    }
    case 'kubernetes.io/ssh-auth':
      return (data['ssh-privatekey'] ?? '') === '' ? [required('data[ssh-privatekey]')] : [];
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key');
    default:
      return [];
  }
}

function validateJson(data: Record<string, string>, key: string): FieldError[] {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  if (value === undefined) return [required(`data[${key}]`)];
  const { fault } = readJsonObject(Buffer.from(value, 'base64').toString());
  return fault === '' ? [] : [invalid(`data[${key}]`, '<secret contents redacted>', fault)];
}
