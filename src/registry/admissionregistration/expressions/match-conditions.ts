/** `matchConditions` of webhooks and policies: CEL over the request. */
import type { MatchCondition } from '../../../objects/types/admissionregistration.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { duplicate, type FieldError, invalid, required, tooMany } from '../../validation/field-errors.ts';
import { compileCondition } from './evaluate-conditions.ts';
import { isQualifiedName } from '../../../objects/names.ts';

const maxConditions = 64;

/**
 * The errors of conditions, compilation included.
 *
 * @param compile returns the compilation error of an expression as text; by default with the variables of webhooks.
 */
export function validateMatchConditions(
  conditions: readonly MatchCondition[],
  path: string,
  compile: (source: string) => unknown = (source) => compileCondition(source),
): FieldError[] {
  const errors: FieldError[] = [];
  if (conditions.length > maxConditions) errors.push(tooMany(path, conditions.length, maxConditions));
  const names = new Set<string>();
  conditions.forEach(({ name, expression }, i) => {
    const at = `${path}[${i}]`;
    const source = expression.trim();
    if (source === '') errors.push(required(`${at}.expression`));
    else {
      const fault = compile(source);
      if (typeof fault === 'string') errors.push(invalid(`${at}.expression`, expression, fault));
    }
    if (name === '') errors.push(required(`${at}.name`));
    else {
      pushAll(
        errors,
        isQualifiedName(name).map((fault) => invalid(`${at}.name`, name, fault)),
      );
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    }
    names.add(name);
  });
  return errors;
}
