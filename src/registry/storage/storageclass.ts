import type { StorageClass, VolumeAttributesClass } from '../../objects/types/storage.generated.ts';
import type { TopologySelectorTerm } from '../../objects/types/core.generated.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
} from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../../objects/names.ts';

const reclaimPolicies = ['Delete', 'Retain'];
const bindingModes = ['Immediate', 'WaitForFirstConsumer'];

/** The rules of StorageClasses (`apis/storage/validation` ValidateStorageClass). */
export const storageClassStrategy = genericStrategy<StorageClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  repeatsCreate: 'before',
  defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
  declaredImmutable: ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode'],
  validateCreate: ({ provisioner, parameters = {}, ...rest }) => [
    ...validateProvisioner(provisioner, 'provisioner').map((error) =>
      error.reason === 'FieldValueRequired' ? declarative(error) : error,
    ),
    ...validateParameters(parameters, true),
    ...validateReclaimPolicy(rest.reclaimPolicy ?? ''),
    ...validateBindingMode(rest.volumeBindingMode),
    ...validateTopologies(rest.allowedTopologies ?? []),
  ],
});

function validateReclaimPolicy(policy: string): FieldError[] {
  if (policy === '' || reclaimPolicies.includes(policy)) return [];
  return [notSupported('reclaimPolicy', policy, reclaimPolicies)];
}

function validateBindingMode(mode: string | undefined): FieldError[] {
  if (mode === undefined) return [required('volumeBindingMode')];
  return bindingModes.includes(mode) ? [] : [notSupported('volumeBindingMode', mode, bindingModes)];
}

function validateTopologies(terms: readonly TopologySelectorTerm[]): FieldError[] {
  const errors: FieldError[] = [];
  /** kube-apiserver also compares with as many empty terms. */
  const before: Record<string, string[]>[] = terms.map(() => ({}));
  terms.forEach(({ matchLabelExpressions = [] }, i) => {
    const path = `allowedTopologies[${i}].matchLabelExpressions`;
    const term: Record<string, string[]> = {};
    matchLabelExpressions.forEach(({ key, values: given }, j) => {
      const at = `${path}[${j}]`;
      const values = given ?? [];
      if (values.length === 0) errors.push(required(`${at}.values`));
      values.forEach((value, k) => {
        if (values.indexOf(value) < k) errors.push(duplicate(`${at}.values[${k}]`, value));
      });
      for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
      if (Object.hasOwn(term, key)) errors.push(duplicate(`${at}.key`, key));
      term[key] = [...new Set(values)].sort();
    });
    for (const other of before) if (jsonEqual(other, term)) errors.push(duplicate(path, ''));
    before.push(term);
  });
  return errors;
}

/** Members that an update may not change; one that is absent is as an empty one. */
function forbidUpdates<T extends KubeObject>(
  object: T,
  old: T,
  members: readonly (keyof T & string)[],
): FieldError[] {
  return members
    .filter((member) => !jsonEqual(filled(object[member]), filled(old[member])))
    .map((member) => forbiddenField(member, `updates to ${member} are forbidden.`));
}

function filled(value: unknown): unknown {
  const isEmpty = value === '' || (isRecord(value) && Object.keys(value).length === 0);
  return isEmpty ? undefined : value;
}

const maxBytes = 256 * 1024;

const maxParameters = 512;

/** The driver or provisioner of a class: a qualified name in any case (`validateProvisioner`). */
function validateProvisioner(provisioner: string, path: string): FieldError[] {
  if (provisioner === '') return [required(path)];
  const lower = provisioner.toLowerCase();
  return isQualifiedName(lower).map((message) => invalid(path, lower, message));
}

/** At most 512 parameters of together at most 256 KiB (`validateParameters`). */
function validateParameters(parameters: Readonly<Record<string, string>>, allowEmpty: boolean): FieldError[] {
  const path = 'parameters';
  const entries = Object.entries(parameters);
  if (entries.length > maxParameters) return [tooLong(path, maxParameters)];
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of entries) {
    if (key === '') errors.push(invalid(path, key, 'field can not be empty.'));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > maxBytes) errors.push(tooLong(path, maxBytes));
  if (!allowEmpty && entries.length === 0) {
    errors.push(required(path, 'must contain at least one key/value pair'));
  }
  return errors;
}

/** The rules of VolumeAttributesClasses (`apis/storage/validation` ValidateVolumeAttributesClass). */
export const volumeAttributesClassStrategy = genericStrategy<VolumeAttributesClass>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  repeatsCreate: 'after',
  validateCreate: ({ driverName, parameters = {} }) => [
    ...validateProvisioner(driverName, 'driverName'),
    ...validateParameters(parameters, false),
  ],
  validateUpdate: (attributes, old) => forbidUpdates(attributes, old, ['driverName', 'parameters']),
});
