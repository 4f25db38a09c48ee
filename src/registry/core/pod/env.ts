import type {
  EnvFromSource,
  EnvVar,
  ObjectFieldSelector,
  ResourceFieldSelector,
  SecretKeySelector,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';
import { isConfigMapKey, isQualifiedName, nameIsDNSSubdomain } from '../../../objects/names.ts';

const fieldsOfEnv = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
/** The fields of the downward API for environment variables and volumes. */
const knownFields = new Set([
  ...fieldsOfEnv,
  'metadata.annotations',
  'metadata.labels',
  'spec.host',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);
const resources = ['limits', 'requests'].flatMap((kind) =>
  ['cpu', 'ephemeral-storage', 'memory'].map((resource) => `${kind}.${resource}`),
);

/** Environment variables (`ValidateEnv`). */
export function validateEnv(env: readonly EnvVar[], path: string): FieldError[] {
  return env.flatMap((variable, i) => {
    const { name } = variable;
    const at = `${path}[${i}]`;
    const errors = name === '' ? [required(`${at}.name`)] : validateEnvName(name, `${at}.name`);
    return [...errors, ...validateValueFrom(variable, `${at}.valueFrom`)];
  });
}

/** Whole ConfigMaps and Secrets as variables; errors of an entry are reported at the list (`ValidateEnvFrom`). */
export function validateEnvFrom(sources: readonly EnvFromSource[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  sources.forEach(({ prefix = '', configMapRef, secretRef }, i) => {
    if (prefix !== '') pushAll(errors, validateEnvName(prefix, `${path}[${i}].prefix`));
    for (const [member, reference] of Object.entries({ configMapRef, secretRef })) {
      if (reference === undefined) continue;
      const at = `${path}[${i}].${member}.name`;
      const { name = '' } = reference;
      if (name === '') errors.push(required(at));
      for (const message of name === '' ? [] : nameIsDNSSubdomain(name, true)) {
        errors.push(invalid(at, name, message));
      }
    }
    if (configMapRef === undefined && secretRef === undefined) {
      errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (configMapRef !== undefined && secretRef !== undefined) {
      errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
    }
  });
  return errors;
}

/** Names are printable ASCII without "=" (`RelaxedEnvironmentVariableValidation`). */
function validateEnvName(name: string, path: string): FieldError[] {
  if (/^[ -<>-~]+$/.test(name)) return [];
  const detail =
    "a valid environment variable name must consist only of printable ASCII characters other than '=' (e.g. 'my.env-name', regex used for validation is '[ -<>-~]+')";
  return [invalid(path, name, detail)];
}

function validateValueFrom({ value = '', valueFrom }: EnvVar, path: string): FieldError[] {
  if (valueFrom === undefined) return [];
  const errors: FieldError[] = [];
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = valueFrom;
  if (fieldRef !== undefined)
    pushAll(errors, validateFieldSelector(fieldRef, fieldsOfEnv, `${path}.fieldRef`));
  if (resourceFieldRef !== undefined) {
    pushAll(errors, validateResourceSelector(resourceFieldRef, `${path}.resourceFieldRef`, false));
  }
  if (configMapKeyRef !== undefined) {
    pushAll(errors, validateKeySelector(configMapKeyRef, `${path}.configMapKeyRef`));
  }
  if (secretKeyRef !== undefined) pushAll(errors, validateKeySelector(secretKeyRef, `${path}.secretKeyRef`));
  const sources = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef];
  const given = sources.filter((source) => source !== undefined).length;
  if (given === 0) {
    const detail =
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`';
    errors.push(invalid(path, '', detail));
  } else if (value !== '') {
    errors.push(invalid(path, '', 'may not be specified when `value` is not empty'));
  } else if (given > 1) {
    errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

function validateKeySelector({ name = '', key }: SecretKeySelector, path: string): FieldError[] {
  const errors = nameIsDNSSubdomain(name, false).map((message) => invalid(`${path}.name`, name, message));
  if (key === '') return [...errors, required(`${path}.key`)];
  return [...errors, ...isConfigMapKey(key).map((message) => invalid(`${path}.key`, key, message))];
}

/**
 * A field of the Pod by its path, `metadata.labels['key']` included (`validateObjectFieldSelector`).
 *
 * @param supported the paths without a subscript that may be used here, sorted.
 */
export function validateFieldSelector(
  { apiVersion = '', fieldPath }: ObjectFieldSelector,
  supported: readonly string[],
  path: string,
): FieldError[] {
  const at = `${path}.fieldPath`;
  if (apiVersion === '') return [required(`${path}.apiVersion`)];
  if (fieldPath === '') return [required(at)];
  const refused = (reason: string) => [invalid(at, fieldPath, `error converting fieldPath: ${reason}`)];
  if (apiVersion !== 'v1') return refused(`unsupported pod version: ${apiVersion}`);
  const [, map, key] = /^([^[]*)\['(.*)'\]$/s.exec(fieldPath) ?? [];
  if (map === undefined || map === '' || key === undefined) {
    if (!knownFields.has(fieldPath)) return refused(`field label not supported: ${fieldPath}`);
    const internal = fieldPath === 'spec.host' ? 'spec.nodeName' : fieldPath;
    return supported.includes(internal) ? [] : [notSupported(at, internal, supported)];
  }
  if (map !== 'metadata.annotations' && map !== 'metadata.labels') {
    return refused(`field label does not support subscript: ${fieldPath}`);
  }
  const name = map === 'metadata.annotations' ? key.toLowerCase() : key;
  return isQualifiedName(name).map((message) => invalid(path, name, message));
}

/** A resource of a container (`validateContainerResourceFieldSelector`); in a volume the container must be named. */
export function validateResourceSelector(
  { containerName = '', resource }: ResourceFieldSelector,
  path: string,
  inVolume: boolean,
): FieldError[] {
  if (inVolume && containerName === '') return [required(`${path}.containerName`)];
  if (resource === '') return [required(`${path}.resource`)];
  if (resources.includes(resource) || /^(?:limits|requests)\.hugepages-/.test(resource)) return [];
  return [notSupported(`${path}.resource`, resource, resources)];
}
