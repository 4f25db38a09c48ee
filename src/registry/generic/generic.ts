import { jsonEqual, at, isRecord, type JsonRecord } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { FieldError } from '../validation/field-errors.ts';
import {
  validateCustomObjectMeta,
  validateCustomObjectMetaUpdate,
  validateDeclaredImmutable,
  validateImmutableField,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from './metadata.ts';
import type { NameRule } from '../../objects/names.ts';
import { type DisabledFeature, dropDisabledFields } from './disabled-fields.ts';
import type { FieldPath, Strategy, StrategyContext, SubresourceStrategy } from './strategy.ts';

/**
 * The rules of a kind. Missing members have the value that most kinds have; the methods add to the base and need not
 * repeat it.
 */
export interface KindRules<T extends KubeObject> {
  readonly namespaced: boolean;
  readonly nameRule: NameRule;
  /**
   * The validation of metadata besides the request pipeline's: default `core` (`apis/core/validation`), for some groups
   * apimachinery's, which allows any finalizer, for some none.
   */
  readonly metadataRules?: 'core' | 'machinery' | 'none';
  /**
   * Has a status of its own: a create starts with an empty one, an update of the main resource keeps the stored one,
   * and `/status` writes it.
   */
  readonly hasStatus?: boolean;
  /** The status of a create is kept: for Nodes, which register themselves. */
  readonly keepsStatusOnCreate?: boolean;
  /** The kind has metadata.generation: 1 at first, one more whenever this is true. */
  generationChanges?(object: T, old: T): boolean;
  /** Default false. */
  readonly allowCreateOnUpdate?: boolean;
  /** Default true. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Default false. */
  readonly deleteReturnsObject?: boolean;
  readonly defaultGarbageCollectionPolicy?: 'OrphanDependents';
  readonly deletionWarning?: string;
  /** See {@link Strategy.repeatsErrors}. */
  readonly repeatsErrors?: true;

  /** Values of members of the object that a client leaves out; set before {@link setDefaults}. They are shared. */
  readonly defaults?: Partial<T>;
  /**
   * Fields that an update may not change (`ValidateImmutableField`), as paths such as `spec.selector`; checked after
   * {@link validateUpdate}.
   */
  readonly immutable?: readonly string[];
  /** Those whose immutability is declared at the type ({@link validateDeclaredImmutable}). */
  readonly declaredImmutable?: readonly string[];
  setDefaults?(object: T): void;
  /** What features that are off would have, as paths from the object; dropped before everything else is prepared. */
  readonly disabled?: readonly DisabledFeature[];
  /** The same of the status, for writes of `/status`. */
  readonly disabledStatus?: readonly DisabledFeature[];
  prepareForCreate?(object: T, context: StrategyContext): void;
  /** Called before the generation is compared. */
  prepareForUpdate?(object: T, old: T, context: StrategyContext): void;
  /** Validation after that of the metadata. @param old of an update that {@link repeatsCreate}. */
  validateCreate?(object: T, context: StrategyContext, old?: T): FieldError[];
  /** Validation of an update after that of the metadata. */
  validateUpdate?(object: T, old: T, context: StrategyContext): FieldError[];
  /** An update is validated as a create, metadata included, before, after or instead of the rules of an update. */
  readonly repeatsCreate?: 'before' | 'after' | 'instead';
  /** Copies more than the spec from the stored object in a write of `/status`. */
  prepareStatus?(object: T, old: T, context: StrategyContext): void;
  /** The fields that {@link prepareStatus} copies, which are not owned by field managers. */
  readonly statusResets?: readonly FieldPath[];
  validateStatus?(object: T, old: T): FieldError[];
  /** For a write of `/status`. */
  statusWarnings?(object: T): string[];
  warningsOnCreate?(object: T): string[];
  warningsOnUpdate?(object: T, old: T): string[];
  /** See {@link Strategy.authorize}. */
  authorize?(object: T, old: T | undefined, context: StrategyContext): void;
  fields?(object: T): Record<string, string>;
  gracePeriodSeconds?(object: T, requested: number | undefined): number;
  readonly subresources?: ReadonlyMap<string, SubresourceStrategy<T>>;
}

/** Spec and status. */
interface Parts extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

/** True when the spec differs: the usual reason for a new generation. */
export function isSpecChanged(object: Parts, old: Parts): boolean {
  return !jsonEqual(object.spec ?? {}, old.spec ?? {});
}

/** A strategy from the rules of a kind (the common shape of `pkg/registry/<group>/<kind>/strategy.go`). */
export function genericStrategy<T extends KubeObject>(rules: KindRules<T>): Strategy<T> {
  return {
    allowCreateOnUpdate: rules.allowCreateOnUpdate ?? false,
    allowUnconditionalUpdate: rules.allowUnconditionalUpdate ?? true,
    deleteReturnsObject: rules.deleteReturnsObject ?? false,
    setDefaults(object) {
      for (const [name, value] of Object.entries(rules.defaults ?? {})) {
        if (at(object, name) === undefined) Reflect.set(object, name, value);
      }
      rules.setDefaults?.(object);
    },
    prepareForCreate(object, context) {
      if (rules.hasStatus === true && rules.keepsStatusOnCreate !== true) dropStatus(object);
      if (rules.generationChanges !== undefined) object.metadata.generation = 1;
      dropDisabledFields(object, undefined, rules.disabled ?? []);
      rules.prepareForCreate?.(object, context);
    },
    prepareForUpdate(object, old, context) {
      if (rules.hasStatus === true) restoreStatus(object, old);
      dropDisabledFields(object, old, rules.disabled ?? []);
      rules.prepareForUpdate?.(object, old, context);
      raiseGeneration(rules, object, old);
    },
    validateCreate: (object, context) => createErrors(rules, object, context),
    validateUpdate(object, old, context) {
      if (rules.repeatsCreate === 'instead') return createErrors(rules, object, context, old);
      const errors = updateMetaErrors(rules, object, old);
      for (const error of rules.validateUpdate?.(object, old, context) ?? []) errors.push(error);
      for (const field of rules.immutable ?? []) {
        const path = field.split('.');
        for (const error of validateImmutableField(at(object, ...path), at(old, ...path), field))
          errors.push(error);
      }
      for (const field of rules.declaredImmutable ?? []) {
        const path = field.split('.');
        pushAll(errors, validateDeclaredImmutable(at(object, ...path), at(old, ...path), field));
      }
      if (rules.repeatsCreate === undefined) return errors;
      const repeated = createErrors(rules, object, context, old);
      return rules.repeatsCreate === 'before' ? [...repeated, ...errors] : [...errors, ...repeated];
    },
    ...(rules.hasStatus === true ? { status: statusStrategy(rules), resetFields: [['status']] } : {}),
    ...optionalMethods(rules),
  };
}

function createErrors<T extends KubeObject>(
  rules: KindRules<T>,
  object: T,
  context: StrategyContext,
  old?: T,
): FieldError[] {
  return [...createMetaErrors(rules, object), ...(rules.validateCreate?.(object, context, old) ?? [])];
}

function createMetaErrors<T extends KubeObject>(rules: KindRules<T>, { metadata }: T): FieldError[] {
  if (rules.metadataRules === 'none') return [];
  return rules.metadataRules === 'machinery'
    ? validateCustomObjectMeta(metadata, rules)
    : validateObjectMeta(metadata, rules);
}

function updateMetaErrors<T extends KubeObject>(rules: KindRules<T>, { metadata }: T, old: T): FieldError[] {
  if (rules.metadataRules === 'none') return [];
  return rules.metadataRules === 'machinery'
    ? validateCustomObjectMetaUpdate(metadata, old.metadata)
    : validateObjectMetaUpdate(metadata, old.metadata);
}

/** `/status`: the spec is the stored one, status and most of the metadata are the client's. */
function statusStrategy<T extends KubeObject>(rules: KindRules<T>): SubresourceStrategy<T> {
  return {
    resetFields: [['spec'], ...(rules.statusResets ?? [])],
    prepareForUpdate(object, old, context) {
      keepGeneration(object, old);
      restoreSpec(object, old);
      dropDisabledFields(object, old, rules.disabledStatus ?? []);
      rules.prepareStatus?.(object, old, context);
    },
    validateUpdate: (object, old) => [
      ...updateMetaErrors(rules, object, old),
      ...(rules.validateStatus?.(object, old) ?? []),
    ],
    ...(rules.statusWarnings && { warningsOnUpdate: (object: T) => rules.statusWarnings?.(object) ?? [] }),
  };
}

function optionalMethods<T extends KubeObject>(rules: KindRules<T>): Partial<Strategy<T>> {
  return {
    ...(rules.defaultGarbageCollectionPolicy && {
      defaultGarbageCollectionPolicy: rules.defaultGarbageCollectionPolicy,
    }),
    ...(rules.deletionWarning !== undefined && { deletionWarning: rules.deletionWarning }),
    ...(rules.repeatsErrors && { repeatsErrors: rules.repeatsErrors }),
    ...(rules.warningsOnCreate && { warningsOnCreate: rules.warningsOnCreate.bind(rules) }),
    ...(rules.warningsOnUpdate && { warningsOnUpdate: rules.warningsOnUpdate.bind(rules) }),
    ...(rules.authorize && { authorize: rules.authorize.bind(rules) }),
    ...(rules.fields && { fields: rules.fields.bind(rules) }),
    ...(rules.gracePeriodSeconds && { gracePeriodSeconds: rules.gracePeriodSeconds.bind(rules) }),
    ...(rules.subresources && { subresources: rules.subresources }),
  };
}

/** Clients never set the generation of a stored object, even for kinds without one. */
function raiseGeneration<T extends KubeObject>(rules: KindRules<T>, object: T, old: T): void {
  keepGeneration(object, old);
  if (rules.generationChanges?.(object, old) === true) {
    object.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
}

function keepGeneration(object: KubeObject, old: KubeObject): void {
  if (old.metadata.generation === undefined) delete object.metadata.generation;
  else object.metadata.generation = old.metadata.generation;
}

function dropStatus(object: Parts): void {
  object.status = {};
}

/**
 * The metadata of a status write: only the resourceVersion and the preconditions are the client's (apimachinery
 * `meta/v1` ResetObjectMetaForStatus).
 */
export function resetMetaForStatus(object: KubeObject, old: KubeObject): void {
  const { metadata } = object;
  const members = [
    'deletionTimestamp',
    'generation',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
  ] as const;
  for (const member of members) {
    const value = old.metadata[member];
    if (value === undefined) Reflect.deleteProperty(metadata, member);
    else Object.assign(metadata, { [member]: value });
  }
}

/** The stored part is shared, not copied: a prepared object does not change. */
function restoreStatus(object: Parts, old: Parts): void {
  if (old.status === undefined) delete object.status;
  else object.status = old.status;
}

/** Restores the stored spec, for subresources that do not write it. */
export function restoreSpec(object: Parts, old: Parts): void {
  if (old.spec === undefined) delete object.spec;
  else object.spec = old.spec;
}

/** Adds parts that decoding leaves out when they are empty. */
export function addEmptyParts(workload: { spec?: object; status?: object }): void {
  workload.spec ??= {};
  workload.status ??= {};
}

/**
 * Parses a JSON object in a user's text. `null` gives an empty one, as in Go.
 *
 * @returns `fault`: the error of Go's decoder; "" for a valid text.
 */
export function readJsonObject(text: string): { object: JsonRecord; fault: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const first = text.trimStart().charAt(0);
    const cut = first === '' || '{["'.includes(first);
    return {
      object: {},
      fault: cut
        ? 'unexpected end of JSON input'
        : `invalid character '${first}' looking for beginning of value`,
    };
  }
  if (isRecord(value)) return { object: value, fault: '' };
  if (value === null) return { object: {}, fault: '' };
  const type = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return {
    object: {},
    fault: `json: cannot unmarshal ${type} into Go value of type map[string]interface {}`,
  };
}
