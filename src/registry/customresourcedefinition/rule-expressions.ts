/** The expressions of a definition's rules (apiextensions `validation.go`, `apiserver/schema/cel/compilation.go`). */
import { compileRules } from '../customresource/rules/compile-rules.ts';
import { isEmbedded } from '../customresource/rules/decl-type.ts';
import { hasRules } from '../customresource/rules/has-rules.ts';
import { validateRules } from '../customresource/rules/validate-rules.ts';
import { type FieldError, invalid } from '../field-errors.ts';
import { itemsOf, type JsonSchema, type ValidationRule, valuesOf } from './json-schema.ts';

/**
 * The expressions that do not compile, and the defaults that break rules which do.
 *
 * @param known errors of the schema: where there are any, in it or deeper, its rules are not looked at.
 */
export function validateRuleExpressions(
  schema: JsonSchema,
  path: string,
  known: readonly FieldError[],
): FieldError[] {
  return expressionErrors(schema, { path, root: true, uncorrelated: undefined }, known);
}

interface Place {
  readonly path: string;
  readonly root: boolean;
  /** The list or map above whose items have no counterpart in a stored object. */
  readonly uncorrelated: string | undefined;
}

function expressionErrors(schema: JsonSchema, place: Place, known: readonly FieldError[]): FieldError[] {
  if (!hasRules(schema)) return [];
  const { path } = place;
  const atomic = schema['x-kubernetes-map-type'] === 'atomic';
  const inner = (at: string, lost: boolean): Place => ({
    path: at,
    root: false,
    uncorrelated: place.uncorrelated ?? (lost ? path : undefined),
  });
  const errors: FieldError[] = [];
  const values = valuesOf(schema);
  if (values !== undefined) {
    errors.push(...expressionErrors(values, inner(`${path}.additionalProperties`, atomic), known));
  }
  const { properties = {} } = schema;
  for (const name of Object.keys(properties).sort()) {
    const property = properties[name];
    if (property === undefined) continue;
    errors.push(...expressionErrors(property, inner(`${path}.properties[${name}]`, atomic), known));
  }
  const items = itemsOf(schema);
  if (items !== undefined) {
    const lost = schema['x-kubernetes-list-type'] !== 'map';
    errors.push(...expressionErrors(items, inner(`${path}.items`, lost), known));
  }
  if (known.some(({ field }) => field.startsWith(path))) return errors;
  const own = ownErrors(schema, place);
  errors.push(...own);
  if (errors.length > 0 || schema.default === undefined) return errors;
  return [...errors, ...validateRules(schema, schema.default, undefined, `${path}.default`).errors];
}

function ownErrors(schema: JsonSchema, { path, root, uncorrelated }: Place): FieldError[] {
  const at = `${path}.x-kubernetes-validations`;
  const compiled = compileRules(schema, root || isEmbedded(schema));
  if (compiled === undefined) {
    const preserves = schema['x-kubernetes-preserve-unknown-fields'] === true;
    const why = `rule declared on schema that does not support validation rules type: '${schema.type ?? ''}' x-kubernetes-preserve-unknown-fields: '${preserves}'`;
    return [{ field: at, reason: 'InternalError', body: `Internal error: ${why}` }];
  }
  return compiled.flatMap(({ rule, error, messageError, usesOldSelf }, i) => {
    const errors: FieldError[] = [];
    if (error !== undefined) errors.push(invalid(`${at}[${i}].rule`, shown(rule), error));
    if (messageError !== undefined) {
      errors.push(invalid(`${at}[${i}].messageExpression`, shown(rule), messageError));
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
function shown(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? '',
    MessageExpression: rule.messageExpression ?? '',
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? '',
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}
