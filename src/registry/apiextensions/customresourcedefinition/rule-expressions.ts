import { plus, times } from '../../../cel/cost/size.ts';
import {
  type FieldError,
  forbiddenField,
  internalFault,
  invalid,
  maxErrorText,
} from '../../validation/field-errors.ts';
import type { JSONSchemaProps, ValidationRule } from '../../../objects/types/apiextensions.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { compileRules, hasRules } from '../rules/compile-rules.ts';
import type { Program } from '../../../cel/program.ts';
import { declSize, maxCardinality, maxElementsAt, isEmbedded } from '../rules/decl-type.ts';
import { validateRules } from '../rules/validate-rules.ts';
import { itemSchemaOf, valuesOf } from '../schema/json-schema.ts';

/**
 * - The worst-case cost of a definition's rules (apiextensions `validation/{cel_validation,validation}.go`).
 * - The expressions of a definition's rules (apiextensions `validation.go`, `apiserver/schema/cel/compilation.go`).
 */

/** Units for all evaluations of one rule, and for all rules of a schema. */
const ruleLimit = 10_000_000;
const schemaLimit = 100_000_000;
/** Rules below this share of the limit are not listed when the total is too high. */
const notableCost = schemaLimit / 100;
const maxListed = 4;

/** Sums the cost of the rules of one schema. */
class RuleCosts {
  #total = 0;
  #notable: { readonly field: string; readonly cost: number }[] = [];

  /**
   * Counts an expression.
   *
   * @param what `rule` or `messageExpression`.
   * @returns the error when it alone is too costly.
   */
  observe(field: string, what: string, cost: number): FieldError[] {
    this.#total = plus(this.#total, cost);
    if (cost >= notableCost) {
      this.#notable.push({ field, cost });
      this.#notable.sort((a, b) => b.cost - a.cost);
      this.#notable.splice(maxListed);
    }
    return cost > ruleLimit
      ? [forbiddenField(field, tooCostly(`estimated ${what} cost`, cost / ruleLimit))]
      : [];
  }

  /** The errors when all rules together are too costly. */
  total(path: string): FieldError[] {
    if (this.#total <= schemaLimit) return [];
    const share = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
    const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
    return [
      ...this.#notable.map(({ field }) => forbiddenField(field, share)),
      forbiddenField(path, tooCostly(what, this.#total / schemaLimit)),
    ];
  }
}

const hint =
  'try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared';

function tooCostly(what: string, factor: number): string {
  return `${what} exceeds budget by factor of ${shownFactor(factor)} (${hint})`;
}

function shownFactor(factor: number): string {
  if (factor > 100) return 'more than 100x';
  return factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
}

/**
 * The errors of expressions that do not compile or may cost too much, and of defaults that break rules.
 *
 * @param known errors of the schema: rules of a part with errors are skipped.
 */
export function validateRuleExpressions(
  schema: JSONSchemaProps,
  path: string,
  known: readonly FieldError[],
): FieldError[] {
  const costs = new RuleCosts();
  const root: Place = {
    path,
    root: true,
    uncorrelated: undefined,
    cardinality: 1,
    costs,
    shown: { length: 0 },
  };
  return [...expressionErrors(schema, root, known), ...costs.total(path)];
}

interface Place {
  readonly path: string;
  readonly root: boolean;
  /** The enclosing list or map whose items cannot be correlated with those of the stored object. */
  readonly uncorrelated: string | undefined;
  /** The largest number of values with the schema; undefined when an enclosing list or map has no bound. */
  readonly cardinality: number | undefined;
  readonly costs: RuleCosts;
  /** Characters of the errors so far: a response shows at most this many, so that no more are compiled. */
  readonly shown: { length: number };
}

function expressionErrors(schema: JSONSchemaProps, place: Place, known: readonly FieldError[]): FieldError[] {
  const { path, shown } = place;
  if (!hasRules(schema) || shown.length > maxErrorText) return [];
  const atomic = schema['x-kubernetes-map-type'] === 'atomic';
  const elements = maxElementsOf(schema);
  const inner = (at: string, lost: boolean): Place => ({
    path: at,
    root: false,
    uncorrelated: place.uncorrelated ?? (lost ? path : undefined),
    cardinality:
      place.cardinality === undefined || elements === undefined
        ? undefined
        : times(place.cardinality, elements),
    costs: place.costs,
    shown,
  });
  const errors: FieldError[] = [];
  const values = valuesOf(schema);
  if (values !== undefined) {
    pushAll(errors, expressionErrors(values, inner(`${path}.additionalProperties`, atomic), known));
  }
  const { properties = {} } = schema;
  for (const name of Object.keys(properties).sort()) {
    const property = properties[name];
    if (property === undefined) continue;
    pushAll(errors, expressionErrors(property, inner(`${path}.properties[${name}]`, atomic), known));
  }
  const items = itemSchemaOf(schema);
  if (items !== undefined) {
    const lost = schema['x-kubernetes-list-type'] !== 'map';
    pushAll(errors, expressionErrors(items, inner(`${path}.items`, lost), known));
  }
  if (known.some(({ field }) => field.startsWith(path))) return errors;
  const own = ownErrors(schema, place);
  for (const { body } of own) shown.length += body.length;
  pushAll(errors, own);
  if (errors.length > 0 || schema.default === undefined) return errors;
  return [...errors, ...validateRules(schema, schema.default, undefined, `${path}.default`).errors];
}

/** The factor by which a schema multiplies the values of its parts; undefined when it has no bound. */
function maxElementsOf(schema: JSONSchemaProps): number | undefined {
  const { maxItems, maxProperties, additionalProperties } = schema;
  const bound = (most: number | undefined) => (most === undefined ? undefined : Math.max(0, most));
  if (schema.type === 'array') return bound(maxItems);
  return schema.type === 'object' && additionalProperties !== undefined ? bound(maxProperties) : 1;
}

function ownErrors(schema: JSONSchemaProps, place: Place): FieldError[] {
  const { path, root, uncorrelated, costs } = place;
  const at = `${path}.x-kubernetes-validations`;
  const compiled = compileRules(schema, root || isEmbedded(schema));
  const size = declSize(schema, root || isEmbedded(schema));
  if (compiled === undefined || size === undefined) {
    const step = 'failed to construct type information for x-kubernetes-validations rules';
    const why = 'unable to convert structural schema to CEL declarations';
    return [internalFault(at, `internal error: ${step}: ${why}`)];
  }
  const costOf = (program: Program) => program.estimateCost((way) => maxElementsAt(size, way));
  return compiled.flatMap(({ rule, program, error, message, messageError, usesOldSelf }, i) => {
    const errors: FieldError[] = [];
    if (program !== undefined) {
      const cost = times(costOf(program), place.cardinality ?? maxCardinality(size));
      pushAll(errors, costs.observe(`${at}[${i}].rule`, 'rule', cost));
    }
    if (error !== undefined) errors.push(invalid(`${at}[${i}].rule`, internalForm(rule), error));
    if (messageError !== undefined) {
      errors.push(invalid(`${at}[${i}].messageExpression`, internalForm(rule), messageError));
    } else if (message !== undefined) {
      pushAll(errors, costs.observe(`${at}[${i}].messageExpression`, 'messageExpression', costOf(message)));
    }
    if (usesOldSelf && uncorrelated !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelated}`;
      errors.push(invalid(`${at}[${i}].rule`, rule.rule, detail));
    } else if (!usesOldSelf && error === undefined && rule.optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule';
      errors.push(invalid(`${at}[${i}].optionalOldSelf`, rule.optionalOldSelf, detail));
    }
    return errors;
  });
}

/** As Go prints the internal type. */
function internalForm(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? '',
    MessageExpression: rule.messageExpression ?? '',
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? '',
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}
