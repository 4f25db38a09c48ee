/** Validation of access reviews (`pkg/apis/authorization/validation`). */
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import {
  type FieldError,
  invalid,
  invalidObject,
  required,
} from '../../../registry/validation/field-errors.ts';
import { reviewedUserOf } from './attributes.ts';

/**
 * Checks a review of the caller (`self`), of any user (`subject`), or of any user in one namespace (`local`).
 *
 * @throws {StatusError} 422 without a kind, which the decoded object of kube-apiserver does not have either.
 */
export function checkAccessReview(
  object: KubeObject,
  spec: JsonRecord,
  reviewed: 'self' | 'subject' | 'local',
): void {
  const errors = [
    ...checkAttributes(spec),
    ...(reviewed === 'self' ? [] : checkSubject(spec)),
    ...checkSelectors(spec['resourceAttributes']),
    ...checkMeta(object, reviewed === 'local'),
    ...(reviewed === 'local' ? checkLocal(object, spec) : []),
  ];
  if (errors.length > 0) throw invalidObject({ group: 'authorization.k8s.io', kind: '', name: '' }, errors);
}

function checkAttributes(spec: JsonRecord): FieldError[] {
  const resource = isRecord(spec['resourceAttributes']);
  const path = isRecord(spec['nonResourceAttributes']);
  if (resource !== path) return [];
  return resource
    ? [
        invalid(
          'spec.nonResourceAttributes',
          goAttributes(spec),
          'cannot be specified in combination with resourceAttributes',
        ),
      ]
    : [
        invalid(
          'spec.resourceAttributes',
          undefined,
          'exactly one of nonResourceAttributes or resourceAttributes must be specified',
        ),
      ];
}

function checkSubject(spec: JsonRecord): FieldError[] {
  const { name, groups } = reviewedUserOf(spec);
  return name === '' && groups.length === 0
    ? [invalid('spec.user', '', 'at least one of user or group must be specified')]
    : [];
}

function checkSelectors(attributes: unknown): FieldError[] {
  if (!isRecord(attributes)) return [];
  return ['fieldSelector', 'labelSelector'].flatMap((name) => {
    const selector = attributes[name];
    if (!isRecord(selector)) return [];
    const path = `spec.resourceAttributes.${name}`;
    const { rawSelector = '', requirements } = selector;
    const listed = Array.isArray(requirements) && requirements.length > 0;
    if (rawSelector !== '' && listed) {
      return [
        invalid(`${path}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'),
      ];
    }
    if (rawSelector !== '' || listed) return [];
    return [
      required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    ];
  });
}

/** Fields that the server clears before it validates (`WipeObjectMetaSystemFields`). */
const clearedFields: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'managedFields',
  'selfLink',
  'uid',
]);

function checkMeta({ metadata }: KubeObject, namespaced: boolean): FieldError[] {
  const { name, generateName, namespace, ...rest } = metadata;
  // In Go's order of fields.
  const shown = Object.entries({ name, generateName, namespace, ...rest }).filter(
    ([key, value]) => value !== undefined && !clearedFields.has(key),
  );
  const set = shown.filter(([key, value]) => !isEmpty(value) && !(namespaced && key === 'namespace'));
  if (set.length === 0) return [];
  const detail = namespaced ? 'must be empty except for namespace' : 'must be empty';
  return [invalid('metadata', Object.fromEntries(shown), detail)];
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}

function checkLocal({ metadata }: KubeObject, spec: JsonRecord): FieldError[] {
  const errors: FieldError[] = [];
  const resource = spec['resourceAttributes'];
  if (isRecord(resource)) {
    const { namespace = '' } = resource;
    if (namespace !== (metadata.namespace ?? '')) {
      errors.push(invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'));
    }
  }
  if (isRecord(spec['nonResourceAttributes'])) {
    errors.push(
      invalid('spec.nonResourceAttributes', goAttributes(spec), 'disallowed on this kind of request'),
    );
  }
  return errors;
}

/** The attributes as Go prints them: the internal type has no JSON names. */
function goAttributes(spec: JsonRecord): JsonRecord {
  const attributes = spec['nonResourceAttributes'];
  const { path = '', verb = '' } = isRecord(attributes) ? attributes : {};
  return { Path: path, Verb: verb };
}
