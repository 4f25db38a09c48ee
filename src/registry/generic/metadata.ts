import { goQuote, isPrintable } from '../../objects/formats/go-text.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { ManagedFieldsEntry, ObjectMeta, OwnerReference } from '../../objects/meta.ts';
import {
  declarative,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
  type FieldError,
} from '../validation/field-errors.ts';
import { validateLabels } from '../validation/label-selector.ts';
import {
  isDNS1123Label,
  isQualifiedName,
  nameIsPathSegment,
  type NameRule,
  nameIsDNSSubdomain,
} from '../../objects/names.ts';

/** The rules of a kind's metadata. */
export interface MetaRules {
  readonly namespaced: boolean;
  readonly nameRule: NameRule;
  /** The path of the metadata; `metadata` unless it is a template's. */
  readonly path?: string;
}

/** Most kinds: namespaced, with names that are DNS subdomains. */
export const namespacedSubdomain = { namespaced: true, nameRule: nameIsDNSSubdomain };

/** The limit of all keys and values of an object's annotations together, in bytes. */
const maxAnnotationBytes = 256 * 1024;
const maxManagerBytes = 128;
const maxSubresourceBytes = 256;
const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);
const managerOperations = ['Apply', 'Update'];
const immutable = 'field is immutable';

/**
 * Validates the metadata of a new object, as built-in kinds do (`apis/core/validation` ValidateObjectMeta); the name is
 * generated already.
 */
export function validateObjectMeta(meta: ObjectMeta, rules: MetaRules): FieldError[] {
  const errors = validateCustomObjectMeta(meta, rules);
  pushFinalizerNameErrors(errors, meta.finalizers, rules.path ?? 'metadata');
  return errors;
}

/**
 * Validates the metadata of a changed object, as built-in kinds do (`apis/core/validation` ValidateObjectMetaUpdate).
 */
export function validateObjectMetaUpdate(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors = validateCustomObjectMetaUpdate(meta, old);
  pushFinalizerNameErrors(errors, meta.finalizers, 'metadata');
  return errors;
}

/**
 * The checks of the request pipeline for every update, before the kind's `validateUpdate` (apiserver `rest/update.go`
 * validateCommonFields). Kinds check most of it again.
 */
export function validateCommonFields(meta: ObjectMeta, old: ObjectMeta, namespaced: boolean): FieldError[] {
  const errors = validateCustomObjectMeta(meta, { namespaced, nameRule: nameIsPathSegment });
  pushAll(errors, validateCustomObjectMetaUpdate(meta, old));
  return errors;
}

function pushFinalizerNameErrors(
  errors: FieldError[],
  finalizers: readonly string[] | undefined,
  path: string,
): void {
  finalizers?.forEach((finalizer, i) => {
    if (finalizer.includes('/') || standardFinalizers.has(finalizer)) return;
    const detail = 'name is neither a standard finalizer name nor is it fully qualified';
    errors.push(invalid(`${path}.finalizers[${i}]`, finalizer, detail));
  });
}

/**
 * The metadata rules that every new object has, custom resources included (`apimachinery/pkg/api/validation`
 * ValidateObjectMetaAccessor). The pipeline runs it on a create behind `validateCreate`, with
 * {@link nameIsPathSegment}.
 */
export function validateCustomObjectMeta(meta: ObjectMeta, rules: MetaRules): FieldError[] {
  const path = rules.path ?? 'metadata';
  const errors: FieldError[] = [];
  const { generateName, name, namespace } = meta;
  if (generateName !== undefined && generateName !== '') {
    for (const message of rules.nameRule(generateName, true)) {
      errors.push(invalid(`${path}.generateName`, generateName, message));
    }
  }
  if (name === undefined || name === '') {
    errors.push(required(`${path}.name`, 'name or generateName is required'));
  } else {
    for (const message of rules.nameRule(name, false)) errors.push(invalid(`${path}.name`, name, message));
  }
  if (namespace === undefined || namespace === '') {
    if (rules.namespaced) errors.push(required(`${path}.namespace`));
  } else if (rules.namespaced) {
    for (const message of isDNS1123Label(namespace)) {
      errors.push(invalid(`${path}.namespace`, namespace, message));
    }
  } else {
    errors.push(forbiddenField(`${path}.namespace`, 'not allowed on this type'));
  }
  pushNegativeGeneration(errors, meta, path);
  pushSharedErrors(errors, meta, path);
  pushFinalizerErrors(errors, meta.finalizers ?? [], `${path}.finalizers`);
  pushManagedFieldsErrors(errors, meta.managedFields ?? [], `${path}.managedFields`);
  return errors;
}

/**
 * The metadata rules of a changed object against the stored one, custom resources included
 * (ValidateObjectMetaAccessorUpdate). That `resourceVersion` must be set is not checked: the pipeline has filled it
 * in or refused the request.
 */
export function validateCustomObjectMetaUpdate(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined && meta.finalizers !== undefined) {
    const before = new Set(old.finalizers);
    const added = [...new Set(meta.finalizers)].filter((finalizer) => !before.has(finalizer)).sort();
    if (added.length > 0) {
      const list = added.map(goQuote).join(', ');
      const rule = 'no new finalizers can be added if the object is being deleted';
      errors.push(forbiddenField('metadata.finalizers', `${rule}, found new finalizers []string{${list}}`));
    }
  }
  pushNegativeGeneration(errors, meta, 'metadata');
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(invalid('metadata.generation', meta.generation ?? 0, 'must not be decremented'));
  }
  if ((meta.name ?? '') !== (old.name ?? '')) {
    errors.push(invalid('metadata.name', meta.name ?? '', immutable));
  }
  if ((meta.namespace ?? '') !== (old.namespace ?? '')) {
    errors.push(invalid('metadata.namespace', meta.namespace ?? '', immutable));
  }
  if ((meta.uid ?? '') !== (old.uid ?? '')) errors.push(invalid('metadata.uid', meta.uid ?? '', immutable));
  if (meta.creationTimestamp !== old.creationTimestamp) {
    errors.push(invalid('metadata.creationTimestamp', meta.creationTimestamp, immutable));
  }
  if (meta.deletionTimestamp !== old.deletionTimestamp) {
    errors.push(invalid('metadata.deletionTimestamp', meta.deletionTimestamp, immutable));
  }
  if (meta.deletionGracePeriodSeconds !== old.deletionGracePeriodSeconds) {
    errors.push(invalid('metadata.deletionGracePeriodSeconds', meta.deletionGracePeriodSeconds, immutable));
  }
  pushSharedErrors(errors, meta, 'metadata');
  pushManagedFieldsErrors(errors, meta.managedFields ?? [], 'metadata.managedFields');
  return errors;
}

/** The error of a field that may not change (ValidateImmutableField), or none. */
export function validateImmutableField(value: unknown, old: unknown, path: string): FieldError[] {
  return jsonEqual(value, old) ? [] : [invalid(path, value, immutable)];
}

function pushNegativeGeneration(errors: FieldError[], { generation = 0 }: ObjectMeta, path: string): void {
  if (generation >= 0) return;
  errors.push(invalid(`${path}.generation`, generation, 'must be greater than or equal to 0'));
}

/**
 * The same of a field that is declared as immutable: the error does not show the value. An absent value is as an empty
 * one.
 */
export function validateDeclaredImmutable(value: unknown, old: unknown, path: string): FieldError[] {
  return jsonEqual(filled(value), filled(old)) ? [] : [declarative(invalid(path, undefined, immutable))];
}

function filled(value: unknown): unknown {
  const isEmpty = value === '' || (isRecord(value) && Object.keys(value).length === 0);
  return isEmpty ? undefined : value;
}

/** The rules of labels, annotations and owners for create and update. */
function pushSharedErrors(errors: FieldError[], meta: ObjectMeta, path: string): void {
  const { labels, annotations, ownerReferences } = meta;
  // One by one: `push` takes a limited number of arguments.
  const found = [
    labels === undefined ? [] : validateLabels(labels, `${path}.labels`),
    annotations === undefined ? [] : validateAnnotations(annotations, `${path}.annotations`),
    ownerReferences === undefined ? [] : validateOwnerReferences(ownerReferences, `${path}.ownerReferences`),
  ];
  for (const list of found) for (const error of list) errors.push(error);
}

/** Annotation keys are qualified names in any case; their size is bounded together. */
export function validateAnnotations(
  annotations: Readonly<Record<string, string>>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const name of Object.keys(annotations)) {
    for (const message of isQualifiedName(name.toLowerCase())) errors.push(invalid(path, name, message));
    bytes += Buffer.byteLength(name) + Buffer.byteLength(annotations[name] ?? '');
  }
  if (bytes > maxAnnotationBytes) errors.push(tooLong(path, maxAnnotationBytes));
  return errors;
}

function validateOwnerReferences(owners: readonly OwnerReference[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  let controller = '';
  for (const [i, owner] of owners.entries()) {
    const at = `${path}[${i}]`;
    const [group, version] = groupVersion(owner.apiVersion);
    if (owner.apiVersion === '') errors.push(required(`${at}.apiVersion`, 'must not be empty'));
    else if (version === '')
      errors.push(invalid(`${at}.apiVersion`, owner.apiVersion, 'must be <group>/<version> or <version>'));
    if (owner.kind === '') errors.push(required(`${at}.kind`, 'must not be empty'));
    if (owner.name === '') errors.push(required(`${at}.name`, 'must not be empty'));
    if (owner.uid === '') errors.push(required(`${at}.uid`, 'must not be empty'));
    if (group === '' && version === 'v1' && owner.kind === 'Event') {
      errors.push(invalid(at, rendered(owner), '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (owner.controller !== true) continue;
    const current = `${owner.kind}/${owner.name}`;
    if (controller === '') {
      controller = current;
      continue;
    }
    const rule = 'Only one reference can have Controller set to true';
    const detail = `${rule}. Found "true" in references for ${controller} and ${current}`;
    errors.push(invalid(path, owners.map(rendered), detail));
  }
  return errors;
}

/** An owner with its members in the order of the Go struct. */
function rendered(owner: OwnerReference): OwnerReference {
  const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner;
  return {
    apiVersion,
    kind,
    name,
    uid,
    ...(controller === undefined ? {} : { controller }),
    ...(blockOwnerDeletion === undefined ? {} : { blockOwnerDeletion }),
  };
}

/** Group and version of an apiVersion; both empty when it has more than one slash. */
function groupVersion(apiVersion: string): [group: string, version: string] {
  const parts = apiVersion.split('/');
  if (parts.length === 1) return ['', apiVersion];
  return parts.length === 2 ? [parts[0] ?? '', parts[1] ?? ''] : ['', ''];
}

function pushFinalizerErrors(errors: FieldError[], finalizers: readonly string[], path: string): void {
  for (const finalizer of finalizers) {
    for (const message of isQualifiedName(finalizer)) errors.push(invalid(path, finalizer, message));
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    const detail = 'finalizer orphan and foregroundDeletion cannot be both set';
    errors.push(invalid(path, finalizers, detail));
  }
}

/** The rules of `metadata.managedFields` alone. */
export function validateManagedFields({ managedFields = [] }: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  pushManagedFieldsErrors(errors, managedFields, 'metadata.managedFields');
  return errors;
}

function pushManagedFieldsErrors(
  errors: FieldError[],
  entries: readonly ManagedFieldsEntry[],
  path: string,
): void {
  entries.forEach((entry, i) => {
    const at = `${path}[${i}]`;
    const { fieldsType, subresource, manager = '' } = entry;
    const operation: string = entry.operation ?? '';
    if (operation === '') errors.push(required(`${at}.operation`, 'must not be empty'));
    else if (!managerOperations.includes(operation)) {
      errors.push(notSupported(`${at}.operation`, operation, managerOperations));
    }
    if (fieldsType !== undefined && !['', 'FieldsV1'].includes(fieldsType)) {
      errors.push(invalid(`${at}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    }
    pushAll(errors, validateFieldManager(manager, `${at}.manager`));
    if (subresource !== undefined && Buffer.byteLength(subresource) > maxSubresourceBytes) {
      errors.push(tooLong(`${at}.subresource`, maxSubresourceBytes));
    }
  });
}

/** A fast path for nearly all names. */
const plainManager = /^[\x20-\x7e]{0,128}$/;

/** A field manager's name: at most 128 bytes, printable. Also for the `fieldManager` parameter (path `fieldManager`). */
export function validateFieldManager(manager: string, path: string): FieldError[] {
  if (plainManager.test(manager)) return [];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > maxManagerBytes) errors.push(tooLong(path, maxManagerBytes));
  let position = 0;
  for (const character of manager) {
    if (!isPrintable(character)) {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
      errors.push(invalid(path, manager, `invalid character U+${code} (at position ${position})`));
    }
    position += Buffer.byteLength(character);
  }
  return errors;
}
