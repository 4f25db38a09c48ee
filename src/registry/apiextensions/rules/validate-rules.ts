/** The rules of a custom object's schema (`x-kubernetes-validations`; apiextensions `schema/cel/validation.go`). */
import type { JSONSchemaProps, ValidationRule } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord, jsonEqual } from '../../../objects/json.ts';
import { CostLimitError } from '../../../cel/meter.ts';
import { noValue, Optional, type Value } from '../../../cel/values.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  required,
} from '../../validation/field-errors.ts';
import { listMapKeyOf } from '../schema/validate-value.ts';
import { compileRules, type CompiledRule, hasRules } from './compile-rules.ts';
import { isEmbedded, withTypeMeta } from './decl-type.ts';
import { toValue } from './schema-values.ts';

/** Units of cost for one evaluation, and for all of one object (`apiserver/pkg/apis/cel/config.go`). */
const perCallLimit = 1_000_000;
const objectBudget = 10_000_000;

/** The errors of a write. */
export interface RuleVerdict {
  readonly errors: readonly FieldError[];
  /**
   * Rules that were broken before an update which does not change the value: reported as warnings
   * (CRDValidationRatcheting).
   */
  readonly tolerated: readonly FieldError[];
}

/** A value with its path in the object. */
interface Place {
  readonly path: string;
  /** An object with apiVersion, kind and metadata. */
  readonly resourceRoot: boolean;
  /** The stored value at the same path; undefined where there is none. */
  readonly old: unknown;
  /** Whether the nearest enclosing value with a stored counterpart is unchanged. */
  readonly parentUnchanged: () => boolean;
}

/**
 * Evaluates all rules of a schema for an object.
 *
 * @param old the stored object of an update, undefined on create.
 * @param path of the value in errors; "" for a whole object.
 */
export function validateRules(
  schema: JSONSchemaProps,
  object: unknown,
  old?: unknown,
  path = '',
): RuleVerdict {
  if (!hasRules(schema)) return { errors: [], tolerated: [] };
  const run = new Run();
  run.visit(schema, object, {
    path,
    resourceRoot: path === '' || isEmbedded(schema),
    old,
    parentUnchanged: () => false,
  });
  return run;
}

class Run implements RuleVerdict {
  readonly errors: FieldError[] = [];
  readonly tolerated: FieldError[] = [];
  #budget = objectBudget;

  /** False when the budget is spent and no more rules are evaluated. */
  visit(schema: JSONSchemaProps, value: unknown, place: Place): boolean {
    if (value === null || value === undefined || !hasRules(schema)) return true;
    if (!this.#ask(schema, value, place)) return false;
    if (Array.isArray(value)) return this.#visitList(schema, value, place);
    return isRecord(value) ? this.#visitObject(schema, value, place) : true;
  }

  #visitList(schema: JSONSchemaProps, list: readonly unknown[], place: Place): boolean {
    const items = itemSchemaOf(schema);
    if (items === undefined) return true;
    const stored = storedItems(schema, place.old);
    const keys = schema['x-kubernetes-list-map-keys'] ?? [];
    return list.every((item, i) =>
      this.visit(items, item, {
        path: `${place.path}[${i}]`,
        resourceRoot: isEmbedded(items),
        old: stored?.get(JSON.stringify(listMapKeyOf(item, keys))),
        parentUnchanged: unchangedAbove(list, place),
      }),
    );
  }

  #visitObject(schema: JSONSchemaProps, object: Readonly<Record<string, unknown>>, place: Place): boolean {
    const { properties = {} } = schema;
    const values = valuesOf(schema);
    const atomic = schema['x-kubernetes-map-type'] === 'atomic';
    const old = !atomic && isRecord(place.old) ? place.old : {};
    return Object.keys(object)
      .sort()
      .every((name) => {
        const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
        const part = property ?? values;
        if (part === undefined) return true;
        // The apiVersion of an object is that of the request; the stored one has no meaning.
        const typeMeta = place.path === '' && (name === 'apiVersion' || name === 'kind');
        const child = place.path === '' ? name : `${place.path}.${name}`;
        return this.visit(part, object[name], {
          path: property === undefined ? `${place.path}[${name}]` : child,
          resourceRoot: isEmbedded(part),
          old: Object.hasOwn(old, name) ? old[name] : undefined,
          parentUnchanged: typeMeta ? () => false : unchangedAbove(object, place),
        });
      });
  }

  /** Evaluates the rules of one schema. */
  #ask(schema: JSONSchemaProps, value: unknown, place: Place): boolean {
    const rules = compileRules(schema, place.resourceRoot) ?? [];
    if (rules.length === 0) return true;
    const at = place.path === '' ? '<nil>' : place.path;
    const { type = '' } = schema;
    if (this.#budget <= 0) return this.#stop(invalid(at, type, outOfBudget));
    const typed = place.resourceRoot ? withTypeMeta(schema) : schema;
    const known = place.old === null ? undefined : place.old;
    for (const rule of rules) {
      if (rule.program === undefined) {
        this.errors.push(invalid(at, type, `rule compile error: ${rule.error ?? ''}`));
        continue;
      }
      const optional = rule.rule.optionalOldSelf === true;
      if (rule.usesOldSelf && known === undefined && !optional) continue;
      const bindings = bind(typed, value, known, optional, rule.usesOldSelf);
      if (bindings instanceof Error)
        this.errors.push(invalid(at, type, `${bindings.message} evaluating rule: ${shown(rule.rule)}`));
      else if (!this.#evaluate(rule, bindings, at, type, value, () => isUnchanged(value, place)))
        return false;
    }
    return true;
  }

  #evaluate(
    rule: CompiledRule,
    bindings: ReadonlyMap<string, Value>,
    at: string,
    type: string,
    judged: unknown,
    unchanged: () => boolean,
  ): boolean {
    const outcome = rule.program?.evaluate(bindings, perCallLimit);
    if (outcome === undefined) return true;
    const { value, error, burden: cost } = outcome;
    if (error instanceof CostLimitError) {
      const why = 'no further validation rules will be run due to call cost exceeds limit for rule';
      return this.#stop(invalid(at, type, `'${error.message}': ${why}: ${shown(rule.rule)}`));
    }
    if (cost > this.#budget) return this.#stop(invalid(at, type, outOfBudget));
    this.#budget -= cost;
    if (error !== undefined) {
      this.errors.push(invalid(at, type, failure(error, rule.rule)));
      return true;
    }
    if (value === true) return true;
    const below = rule.fieldPath === '' ? at : at === '<nil>' ? rule.fieldPath : `${at}.${rule.fieldPath}`;
    const {
      text,
      cost: spent,
      fatal,
    } = evaluateMessage(rule, bindings, Math.min(perCallLimit, this.#budget));
    this.#budget -= spent;
    const found = fatal === undefined ? broken(rule.rule, below, judged, text) : invalid(below, type, fatal);
    (!rule.usesOldSelf && unchanged() ? this.tolerated : this.errors).push(found);
    return fatal === undefined;
  }

  #stop(error: FieldError): false {
    this.errors.push(error);
    return false;
  }
}

const outOfBudget =
  'validation failed due to running out of cost budget, no further validation rules will be run';

/** The variables of a rule, or the error of their values. */
function bind(
  schema: JSONSchemaProps,
  value: unknown,
  old: unknown,
  optional: boolean,
  usesOldSelf: boolean,
): ReadonlyMap<string, Value> | Error {
  try {
    const bindings = new Map<string, Value>([['self', toValue(schema, value)]]);
    if (!usesOldSelf) return bindings;
    const before = old === undefined ? undefined : toValue(schema, old);
    if (optional) bindings.set('oldSelf', before === undefined ? noValue : new Optional(before));
    else if (before !== undefined) bindings.set('oldSelf', before);
    return bindings;
  } catch (error) {
    if (error instanceof Error && error.name === 'EvaluationError') return error;
    throw error;
  }
}

function isUnchanged(value: unknown, { old, parentUnchanged }: Place): boolean {
  return old === undefined ? parentUnchanged() : jsonEqual(old, value);
}

/** Whether a value with parts is unchanged, computed on first use. */
function unchangedAbove(value: unknown, place: Place): () => boolean {
  let known: boolean | undefined;
  return () => (known ??= isUnchanged(value, place));
}

/** The stored items of a list by their keys; undefined where lists have none. */
function storedItems(schema: JSONSchemaProps, old: unknown): ReadonlyMap<string, unknown> | undefined {
  if (schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(old)) return undefined;
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  return new Map(old.map((item: unknown) => [JSON.stringify(listMapKeyOf(item, keys)), item]));
}

function failure(error: Error, rule: ValidationRule): string {
  if (!error.message.startsWith('no such overload'))
    return `${error.message} evaluating rule: ${shown(rule)}`;
  const why = 'call arguments did not match a supported operator, function or macro signature for rule';
  return `'${error.message}': ${why}: ${shown(rule)}`;
}

/** A rule as errors name it. */
function shown({ message = '', rule }: ValidationRule): string {
  return (message === '' ? rule : message).trim();
}

/** Lists and objects are never printed (`fieldErrorForReason`). */
function broken(rule: ValidationRule, at: string, value: unknown, text: string | undefined): FieldError {
  const { message = '' } = rule;
  const hidden = typeof value === 'object' && value !== null;
  const detail = text ?? (message === '' ? `failed rule: ${rule.rule.trim()}` : message.trim());
  switch (rule.reason) {
    case 'FieldValueForbidden':
      return forbiddenField(at, detail);
    case 'FieldValueRequired':
      return required(at, detail);
    case 'FieldValueDuplicate':
      return hidden ? valueless(duplicate(at, value), 'Duplicate value') : duplicate(at, value);
    default: {
      const error = invalid(at, value, detail);
      return hidden ? valueless(error, `Invalid value: ${detail}`) : error;
    }
  }
}

function valueless(error: FieldError, body: string): FieldError {
  return { ...error, body };
}

/** Bytes that an evaluated message may have (`apiserver/pkg/apis/cel/config.go`). */
const maxMessage = 5 * 1024;

/** The result of a `messageExpression`. */
interface Message {
  /** Undefined when it has none, or no usable one: then the rule's `message` is used. */
  readonly text: string | undefined;
  readonly cost: number;
  /** Stops the validation of the object. */
  readonly fatal?: string;
}

/** The message of a broken rule: one line, not too long (apiextensions `schema/cel/validation.go` evalMessageExpression). */
function evaluateMessage(
  { message, rule }: CompiledRule,
  bindings: ReadonlyMap<string, Value>,
  costLimit: number,
): Message {
  if (message === undefined) return { text: undefined, cost: 0 };
  const { value, error, burden: cost } = message.evaluate(bindings, costLimit);
  if (error instanceof CostLimitError) {
    const source = JSON.stringify(rule.messageExpression);
    const why =
      'no further validation rules will be run due to call cost exceeds limit for messageExpression';
    return { text: undefined, cost, fatal: `${why}: ${source}` };
  }
  const text = typeof value === 'string' ? value.trim() : '';
  const usable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessage;
  return { text: usable ? text : undefined, cost };
}
