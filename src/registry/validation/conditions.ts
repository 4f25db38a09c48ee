import type { Condition } from '../../objects/meta.ts';
import { isQualifiedName } from '../../objects/names.ts';
import { duplicate, type FieldError, invalid, notSupported, required, tooLong } from './field-errors.ts';

const statuses = ['False', 'True', 'Unknown'];
const reasonFormat = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?';
const reasonRule = new RegExp(`^${reasonFormat}$`);
const reasonFault =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'" +
  ` (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '${reasonFormat}')`;
const maxReason = 1024;
const maxMessage = 32 * 1024;

/** The rules of a list of conditions, whose types are unique (apimachinery `meta/v1/validation` ValidateConditions). */
export function validateConditions(conditions: readonly Condition[], path: string): FieldError[] {
  const seen = new Set<string>();
  return conditions.flatMap((condition, i) => {
    const at = `${path}[${i}]`;
    const errors = seen.has(condition.type) ? [duplicate(at, condition.type)] : [];
    seen.add(condition.type);
    return [...errors, ...validateCondition(condition, at)];
  });
}

/** Members may be absent, whatever their type says. */
function validateCondition(condition: Partial<Condition>, path: string): FieldError[] {
  const { type = '', observedGeneration = 0, lastTransitionTime = '', reason = '', message = '' } = condition;
  const status: string = condition.status ?? '';
  const errors: FieldError[] = [];
  if (type === '') errors.push(required(`${path}.type`, 'is required'));
  else for (const fault of isQualifiedName(type)) errors.push(invalid(`${path}.type`, type, fault));
  if (status === '') errors.push(required(`${path}.status`));
  else if (!statuses.includes(status)) errors.push(notSupported(`${path}.status`, status, statuses));
  if (observedGeneration < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(invalid(`${path}.observedGeneration`, observedGeneration, detail));
  }
  if (lastTransitionTime === '') errors.push(required(`${path}.lastTransitionTime`));
  if (reason === '') errors.push(required(`${path}.reason`));
  else {
    if (!reasonRule.test(reason)) errors.push(invalid(`${path}.reason`, reason, reasonFault));
    if (Buffer.byteLength(reason) > maxReason) errors.push(tooLong(`${path}.reason`, maxReason));
  }
  if (Buffer.byteLength(message) > maxMessage) errors.push(tooLong(`${path}.message`, maxMessage));
  return errors;
}
