import { compileLabelSelector, matchesLabels } from '../../objects/selectors/labels.ts';
import { pushAll } from '../../objects/lists.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import { type FieldError, forbiddenField, invalid, required } from './field-errors.ts';
import { isQualifiedName, isValidLabelValue } from '../../objects/names.ts';

/**
 * The rules of a LabelSelector (`apis/meta/v1/validation` ValidateLabelSelector).
 *
 * @param allowInvalidValues values of expressions are not validated: the stored selector has invalid ones.
 */
export function validateLabelSelector(
  selector: LabelSelector | null | undefined,
  path: string,
  allowInvalidValues = false,
): FieldError[] {
  const errors = validateLabels(selector?.matchLabels, `${path}.matchLabels`);
  (selector?.matchExpressions ?? []).forEach(({ key, operator, values = [] }, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    pushAll(errors, validateOperator(operator, values, at));
    for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
    if (allowInvalidValues) return;
    values.forEach((value, j) => {
      for (const message of isValidLabelValue(value))
        errors.push(invalid(`${at}.values[${j}]`, value, message));
    });
  });
  return errors;
}

function validateOperator(operator: string, values: readonly string[], path: string): FieldError[] {
  switch (operator) {
    case 'In':
    case 'NotIn': {
      const detail = "must be specified when `operator` is 'In' or 'NotIn'";
      return values.length === 0 ? [required(`${path}.values`, detail)] : [];
    }
    case 'Exists':
    case 'DoesNotExist': {
      const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      return values.length === 0 ? [] : [forbiddenField(`${path}.values`, detail)];
    }
    default:
      return [invalid(`${path}.operator`, operator, 'not a valid selector operator')];
  }
}

/** True for a selector without any requirement, which selects everything. */
export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;
}

/** True when the selector is valid and matches the labels; undefined when it is invalid. */
export function labelSelectorMatches(
  selector: LabelSelector,
  labels: Record<string, string> | undefined,
): boolean | undefined {
  if (validateLabelSelector(selector, '').length > 0) return undefined;
  return matchesLabels(compileLabelSelector(selector), labels);
}

/** Label keys and values; both are reported at `path` itself. Also for `spec.selector` and `matchLabels`. */
export function validateLabels(
  labels: Readonly<Record<string, string>> | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (labels === undefined) return errors;
  for (const name of Object.keys(labels)) {
    for (const message of isQualifiedName(name)) errors.push(invalid(path, name, message));
    const value = labels[name] ?? '';
    for (const message of isValidLabelValue(value)) errors.push(invalid(path, value, message));
  }
  return errors;
}
