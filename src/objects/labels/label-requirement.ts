import { labelValueErrors, qualifiedNameErrors } from './label-syntax.ts';
import { badRequest } from '../status-errors.ts';

/** How a requirement relates a label to its values (apimachinery `selection/operator.go`). */
export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/** One term of a label selector; a selector is a list of terms that must all hold. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Distinct, sorted; empty for `exists` and `!`. */
  readonly values: readonly string[];
}

/** The labels of an object, as `metadata.labels` carries them. */
export type Labels = Readonly<Record<string, string>>;

/** True when the labels meet one requirement (`Requirement.Matches`). */
export function requirementHolds({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case '=':
    case '==':
    case 'in':
      return value !== undefined && values.includes(value);
    case '!=':
    case 'notin':
      return value === undefined || !values.includes(value);
    case 'exists':
      return value !== undefined;
    case '!':
      return value === undefined;
    case 'gt':
    case 'lt': {
      const have = value === undefined ? undefined : parseInt64(value);
      const want = values.length === 1 ? parseInt64(values[0] ?? '') : undefined;
      if (have === undefined || want === undefined) return false;
      return operator === 'gt' ? have > want : have < want;
    }
  }
}

/** Go's `strconv.ParseInt(text, 10, 64)`: undefined where that fails. */
function parseInt64(text: string): bigint | undefined {
  if (text.length > 64 || !/^[+-]?[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/**
 * Checks a requirement as `labels.NewRequirement` does.
 *
 * @throws {StatusError} 400 that names every broken rule.
 */
export function newRequirement(
  key: string,
  operator: LabelOperator,
  given: readonly string[],
): LabelRequirement {
  const values = [...new Set(given)].sort();
  const errors: string[] = [];
  const add = (path: string, value: unknown, detail: string): void => {
    errors.push(`${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`);
  };
  const keyErrors = qualifiedNameErrors(key);
  if (keyErrors.length > 0) add('key', key, keyErrors.join('; '));
  if (operator === 'in' || operator === 'notin') {
    if (values.length === 0) add('values', values, "for 'in', 'notin' operators, values set can't be empty");
  } else if (operator === 'exists' || operator === '!') {
    if (values.length > 0) add('values', values, 'values set must be empty for exists and does not exist');
  } else if (operator === 'gt' || operator === 'lt') {
    values.forEach((value, i) => {
      if (parseInt64(value) !== undefined) return;
      add(`values[${i}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer");
    });
  }
  values.forEach((value, i) => {
    const found = labelValueErrors(value);
    if (found.length > 0) add(`values[${i}][${key}]`, value, found.join('; '));
  });
  if (errors.length > 0) throw badRequest(aggregate(errors));
  return { key, operator, values };
}

/** One error as it is, several in brackets without repeats (apimachinery `util/errors` Aggregate). */
function aggregate(errors: readonly string[]): string {
  const texts = [...new Set(errors)];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}
