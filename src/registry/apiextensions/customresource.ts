import type {
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
} from '../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual, parseRecord, at } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { internalError } from '../../objects/status.ts';
import { type FieldError, invalid, type FieldErrorReason } from '../validation/field-errors.ts';
import { type ScaleForm, scaleMetadata } from '../generic/scale.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateCustomObjectMeta, validateCustomObjectMetaUpdate } from '../generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type { Strategy, SubresourceStrategy } from '../generic/strategy.ts';
import { applyDefaults, withDefaults, validateEmbedded } from './schema/defaulting.ts';
import { validateListTypes, validatePart, validateValue } from './schema/validate-value.ts';
import { compileAllRules, hasRules } from './rules/compile-rules.ts';
import { validateRules } from './rules/validate-rules.ts';

type ScalePaths = NonNullable<NonNullable<CustomResourceDefinitionVersion['subresources']>['scale']>;

/** `/scale` of a custom resource, by the paths that its definition names (apiextensions `registry/customresource/etcd.go`). */
export function customScale({
  specReplicasPath,
  statusReplicasPath,
  labelSelectorPath = '',
}: ScalePaths): ScaleForm {
  const specPath = simplePath(specReplicasPath);
  const statusPath = simplePath(statusReplicasPath);
  const selectorPath = simplePath(labelSelectorPath);
  return {
    read(object) {
      const replicas = numberAt(object, specPath) ?? 0;
      const selector = selectorPath.length === 0 ? undefined : fieldAt(object, selectorPath);
      return {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: scaleMetadata(object.metadata),
        spec: replicas === 0 ? {} : { replicas },
        status: {
          replicas: numberAt(object, statusPath) ?? 0,
          ...(typeof selector === 'string' && selector !== '' ? { selector } : {}),
        },
      };
    },
    check(object) {
      if (numberAt(object, specPath) !== undefined) return;
      throw internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);
    },
    write(object, scale) {
      const next = structuredClone(object);
      const { resourceVersion } = scale.metadata;
      if (resourceVersion !== undefined) next.metadata.resourceVersion = resourceVersion;
      setAt(next, specPath, scale.spec.replicas ?? 0);
      return next;
    },
  };
}

const maxReplicas = 2 ** 31 - 1;

/** The replicas that `/scale` reads must be a number (`registry/customresource/validator.go` ValidateScaleSpec). */
function validateScaleSpec(object: KubeObject, { specReplicasPath }: ScalePaths): FieldError[] {
  return validateReplicas(object, specReplicasPath);
}

/** The rules of status replicas, and of the selector's text (ValidateScaleStatus). */
function validateScaleStatus(
  object: KubeObject,
  { statusReplicasPath, labelSelectorPath = '' }: ScalePaths,
): FieldError[] {
  const errors = validateReplicas(object, statusReplicasPath);
  const fault = accessFault(object, labelSelectorPath, 'string', (value) => typeof value === 'string');
  if (fault !== undefined) errors.push(invalid(labelSelectorPath, '', fault));
  return errors;
}

function validateReplicas(object: KubeObject, path: string): FieldError[] {
  const fault = accessFault(object, path, 'int64', Number.isInteger);
  if (fault !== undefined) return [invalid(path, 0, fault)];
  const value = numberAt(object, simplePath(path)) ?? 0;
  if (value < 0) return [invalid(path, value, 'should be a non-negative integer')];
  return value > maxReplicas ? [invalid(path, value, `should be less than or equal to ${maxReplicas}`)] : [];
}

/**
 * Why a value cannot be read at a path; an absent value is no error (apimachinery `unstructured.NestedInt64` and its
 * like).
 */
function accessFault(
  object: KubeObject,
  path: string,
  wanted: string,
  fits: (value: unknown) => boolean,
): string | undefined {
  let value: unknown = object;
  for (const name of simplePath(path)) {
    if (value === undefined || value === null) return undefined;
    if (!isRecord(value)) return accessorError(path, value, 'map[string]interface{}');
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value === undefined || value === object || fits(value)
    ? undefined
    : accessorError(path, value, wanted);
}

function accessorError(path: string, value: unknown, wanted: string): string {
  const number = Number.isInteger(value) ? 'int64' : 'float64';
  const types: Record<string, string> = { string: 'string', boolean: 'bool', number };
  const type = types[typeof value] ?? (Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}');
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  return `${path} accessor error: ${shown} is of the type ${type}, expected ${wanted}`;
}

function numberAt(object: KubeObject, path: readonly string[]): number | undefined {
  const value = fieldAt(object, path);
  return typeof value === 'number' ? value : undefined;
}

/** Sets the value at a path, in place; creates the objects on the path. */
function setAt(object: object, path: readonly string[], value: unknown): void {
  let parent: object = object;
  for (const [i, name] of path.entries()) {
    const last = i === path.length - 1;
    const present: unknown = Object.hasOwn(parent, name) ? Reflect.get(parent, name) : undefined;
    const next = last ? value : isRecord(present) ? present : {};
    Object.defineProperty(parent, name, {
      value: next,
      enumerable: true,
      configurable: true,
      writable: true,
    });
    if (!isRecord(next)) return;
    parent = next;
  }
}

/** The names of a simple JSONPath such as `.spec.color`, the only form that selectableFields and scale take. */
function simplePath(path: string): readonly string[] {
  return path.split('.').filter((name) => name !== '');
}

/** The value at a path of names below an object, undefined when a part is missing. */
function fieldAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const name of path) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

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
  /** Its schema is read with the first object that needs it. */
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
  const schemaOf = (): JSONSchemaProps | undefined => version.schema?.openAPIV3Schema;
  const hasStatus = version.subresources?.status !== undefined;
  const scale = version.subresources?.scale;
  const rules = { namespaced, nameRule: nameIsDNSSubdomain };
  // A list that was invalid before may stay so.
  const listErrors = (whole: JSONSchemaProps, object: CustomObject, old?: CustomObject): FieldError[] =>
    old !== undefined && validateListTypes(whole, old).length > 0 ? [] : validateListTypes(whole, object);
  const valueErrors = (object: CustomObject, old?: CustomObject): FieldError[] => {
    const schema = schemaOf();
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
    const schema = schemaOf();
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
    const schema = schemaOf();
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
  const decorate = (object: CustomObject): CustomObject => {
    if (since === undefined || Number(object.metadata.resourceVersion) > since) return object;
    const schema = schemaOf();
    return schema === undefined ? object : withDefaults(schema, object);
  };
  const setDefaults = (object: CustomObject, keepNulls: boolean): void => {
    const schema = schemaOf();
    if (schema !== undefined) applyDefaults(schema, object, keepNulls);
  };
  const base = genericStrategy<CustomObject>({
    ...rules,
    allowUnconditionalUpdate: false,
    repeatsErrors: true,
    hasStatus,
  });
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
    setDefaults: (object) => setDefaults(object, false),
    setAppliedDefaults: (object) => setDefaults(object, true),
    prepareForCreate(object) {
      if (hasStatus) delete object.status;
      object.metadata.generation = 1;
    },
    prepareForUpdate(object, old) {
      if (hasStatus) keepStatus(object, old);
      const changed = !jsonEqual(content(object, hasStatus), content(decorate(old), hasStatus));
      object.metadata.generation = (old.metadata.generation ?? 0) + (changed ? 1 : 0);
    },
    *prepareValidation() {
      const schema = schemaOf();
      if (schema !== undefined) yield* compileAllRules(schema);
    },
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
