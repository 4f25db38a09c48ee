import type {
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
} from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual, parseRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { at } from '../../../objects/read.ts';
import { type FieldError, type FieldErrorReason, invalid } from '../../validation/field-errors.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { validateCustomObjectMeta, validateCustomObjectMetaUpdate } from '../../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { Strategy, SubresourceStrategy } from '../../generic/strategy.ts';
import { applyDefaults, withDefaults } from '../schema/defaulting.ts';
import { validateEmbedded } from '../schema/embedded.ts';
import { validateListTypes } from '../schema/list-types.ts';
import { compileAllRules } from '../rules/compile-rules.ts';
import { hasRules } from '../rules/has-rules.ts';
import { validateRules } from '../rules/validate-rules.ts';
import { validateScaleSpec, validateScaleStatus, fieldAt, simplePath } from './scale.ts';
import { validatePart, validateValue } from '../schema/validate-value.ts';

/**
 * True for errors that keep the rules from being evaluated (apiextensions `registry/customresource/strategy.go`
 * hasBlockingErr).
 */
const blocking: ReadonlySet<FieldErrorReason> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);
const notAsked = invalid(
  '<nil>',
  undefined,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

/** A version of a custom resource, as its strategy needs it. */
export interface CustomKind {
  readonly kind: string;
  readonly namespaced: boolean;
  readonly version: CustomResourceDefinitionVersion;
  /** The apiVersion of requests, `<group>/<version>`. */
  readonly apiVersion: string;
  /** The apiVersion in which objects reach the strategy: that of the storage version. */
  readonly storedApiVersion: string;
  /**
   * The revision of the definition: objects that were written later have the defaults of this schema. Undefined where a
   * webhook converts: its results have their defaults.
   */
  readonly since: number | undefined;
}

/** A custom object: metadata and anything else. */
interface CustomObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

/** The rules of the objects of one version of a custom resource (apiextensions `registry/customresource`). */
export function customResourceStrategy(custom: CustomKind): Strategy<CustomObject> {
  const { kind, namespaced, version, apiVersion, storedApiVersion, since } = custom;
  const schema = version.schema?.openAPIV3Schema;
  const hasStatus = version.subresources?.status !== undefined;
  const scale = version.subresources?.scale;
  const rules = { namespaced, nameRule: nameIsDNSSubdomain };
  // A list that was invalid before may stay so.
  const listErrors = (whole: JSONSchemaProps, object: CustomObject, old?: CustomObject): FieldError[] =>
    old !== undefined && validateListTypes(whole, old).length > 0 ? [] : validateListTypes(whole, object);
  const valueErrors = (object: CustomObject, old?: CustomObject): FieldError[] => {
    if (schema === undefined) return [];
    return [
      ...validateValue(schema, object, '', old === undefined ? undefined : { value: old }),
      ...(scale === undefined ? [] : validateScaleSpec(object, scale)),
      ...(scale === undefined ? [] : validateScaleStatus(object, scale)),
      ...validateEmbedded(schema, object),
      ...listErrors(schema, object, old),
    ];
  };
  const statusErrors = (object: CustomObject, old: CustomObject): FieldError[] => {
    const part = schema?.properties?.['status'];
    if (schema === undefined) return [];
    return [
      ...(part === undefined || object.status === undefined
        ? []
        : validatePart(part, object.status, 'status', { value: old.status })),
      ...(scale === undefined ? [] : validateScaleStatus(object, scale)),
      ...listErrors(schema, object, old),
    ];
  };
  const tolerated = new WeakMap<CustomObject, readonly FieldError[]>();
  /** CEL rules come last, and only for a value of the right shape. */
  const withRules = (errors: FieldError[], object: CustomObject, old?: CustomObject): FieldError[] => {
    if (schema === undefined || !hasRules(schema)) return errors;
    if (errors.some(({ reason }) => blocking.has(reason))) return [...errors, notAsked];
    const verdict = validateRules(schema, object, old);
    tolerated.set(object, verdict.tolerated);
    return [...errors, ...verdict.errors];
  };
  const warningsOnUpdate = (object: CustomObject): string[] =>
    (tolerated.get(object) ?? []).map(({ field, body }) => `${field}: ${body}`);
  const kindErrors = (object: CustomObject): FieldError[] => [
    ...(object.kind === kind ? [] : [invalid('kind', object.kind, `must be ${kind}`)]),
    ...(object.apiVersion === storedApiVersion
      ? []
      : [invalid('apiVersion', object.apiVersion, `must be ${apiVersion}`)]),
  ];
  const decorate = (object: CustomObject): CustomObject =>
    schema === undefined || since === undefined || Number(object.metadata.resourceVersion) > since
      ? object
      : withDefaults(schema, object);
  const base = genericStrategy<CustomObject>({ ...rules, allowUnconditionalUpdate: false, hasStatus });
  const status: SubresourceStrategy<CustomObject> = {
    resetFields: [['spec'], ['metadata']],
    prepareForUpdate(object, old) {
      takeAllButStatus(object, old);
    },
    validateUpdate: (object, old) => {
      const errors = validateCustomObjectMetaUpdate(object.metadata, old.metadata);
      return withRules([...errors, ...statusErrors(object, old)], object, old);
    },
    warningsOnUpdate,
  };
  const { status: _unused, ...main } = base;
  return {
    ...main,
    setDefaults: (object) => {
      if (schema !== undefined) applyDefaults(schema, object);
    },
    setAppliedDefaults: (object) => {
      if (schema !== undefined) applyDefaults(schema, object, true);
    },
    prepareForCreate(object) {
      if (hasStatus) delete object.status;
      object.metadata.generation = 1;
    },
    prepareForUpdate(object, old) {
      if (hasStatus) keepStatus(object, old);
      const changed = !jsonEqual(content(object, hasStatus), content(decorate(old), hasStatus));
      object.metadata.generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0);
    },
    ...(schema === undefined ? {} : { prepareValidation: () => compileAllRules(schema) }),
    validateCreate: (object) => {
      const wrong = kindErrors(object);
      if (wrong.length > 0) return withRules(wrong, object);
      const errors = validateCustomObjectMeta(object.metadata, rules);
      return withRules([...errors, ...valueErrors(object)], object);
    },
    validateUpdate: (object, old) => {
      const wrong = kindErrors(object);
      if (wrong.length > 0) return withRules(wrong, object, old);
      const errors = validateCustomObjectMetaUpdate(object.metadata, old.metadata);
      return withRules([...errors, ...valueErrors(object, old)], object, old);
    },
    warningsOnCreate: (object) => [...customWarnings(apiVersion, kind, object)],
    warningsOnUpdate: (object) => [...warningsOnUpdate(object), ...customWarnings(apiVersion, kind, object)],
    decorate,
    isDecorated: ({ revision }) => since === undefined || revision > since,
    fields: selectable(version),
    ...(hasStatus ? { status } : {}),
  };
}

/** `spec.selectableFields` besides name and namespace. */
function selectable(
  version: CustomResourceDefinitionVersion,
): (object: CustomObject) => Record<string, string> {
  const paths = (version.selectableFields ?? []).map(
    ({ jsonPath }) => [jsonPath.replace(/^\./, ''), simplePath(jsonPath)] as const,
  );
  return (object) =>
    Object.fromEntries(
      paths.map(([name, path]) => {
        const value = fieldAt(object, path);
        const plain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
        return [name, plain ? String(value) : ''];
      }),
    );
}

function keepStatus(object: CustomObject, old: CustomObject): void {
  if (old.status === undefined) delete object.status;
  else object.status = old.status;
}

/** The part that counts for the generation: all but metadata, and without status if that is a subresource. */
function content(object: CustomObject, hasStatus: boolean): Record<string, unknown> {
  const { metadata: _metadata, status, ...rest } = object;
  return hasStatus ? rest : { ...rest, ...(status === undefined ? {} : { status }) };
}

/** A write of `/status` changes status and managedFields, nothing else. */
function takeAllButStatus(object: CustomObject, old: CustomObject): void {
  const { status, metadata } = object;
  const target: object = object;
  if (!isRecord(target)) return;
  for (const name of Object.keys(target)) if (name !== 'metadata') Reflect.deleteProperty(target, name);
  const { metadata: before, status: _old, ...rest } = old;
  // Not by assignment: a client may name a member `__proto__`.
  Object.defineProperties(target, Object.getOwnPropertyDescriptors(rest));
  const { managedFields, resourceVersion } = metadata;
  object.metadata = {
    ...before,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(managedFields === undefined ? {} : { managedFields }),
  };
  if (status !== undefined) object.status = status;
}

/** Warnings about objects that no Pod can use, and that are stored all the same. @param apiVersion of the request. */
function customWarnings(apiVersion: string, kind: string, object: KubeObject): readonly string[] {
  if (kind !== 'NetworkAttachmentDefinition' || !apiVersion.startsWith('k8s.cni.cncf.io/')) return [];
  const config = at(object, 'spec', 'config');
  // Without one, multus looks for a file of the node.
  if (typeof config !== 'string' || config === '' || parseRecord(config) !== undefined) return [];
  return ['spec.config: is no JSON object: Pods that name this network will not start'];
}
