import { type FieldError, invalid, notSupported, required } from '../field-errors.ts';
import { validateMatchConditions } from '../webhookconfiguration/match-conditions.ts';
import { compilePolicy } from './judge.ts';
import type { PolicySpec } from './policy.ts';

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];

/** The expressions of a policy must be there and compile (`apis/admissionregistration/validation`). The engine must be loaded. */
export function validatePolicySpec(spec: PolicySpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.matchConstraints === undefined) errors.push(required('spec.matchConstraints'));
  const { variables, validations } = compilePolicy(spec);
  const check = (at: string, source: string, program: object | string | undefined) => {
    if (source.trim() === '') errors.push(required(at, 'expression is not specified'));
    else if (typeof program === 'string') errors.push(invalid(at, source, program));
  };
  variables.forEach(([name, program], i) => {
    const at = `spec.variables[${i}]`;
    if (name === '') errors.push(required(`${at}.name`, 'name is not specified'));
    check(`${at}.expression`, spec.variables?.[i]?.expression ?? '', program);
  });
  if (validations.length === 0 && (spec.auditAnnotations ?? []).length === 0) {
    errors.push(
      required('spec.validations', 'validations or auditAnnotations must contain at least one item'),
    );
  }
  validations.forEach(({ validation, program, message }, i) => {
    const at = `spec.validations[${i}]`;
    check(`${at}.expression`, validation.expression ?? '', program);
    const { messageExpression = '', reason } = validation;
    if (messageExpression !== '') check(`${at}.messageExpression`, messageExpression, message);
    if (reason !== undefined && !reasons.includes(reason)) {
      errors.push(notSupported(`${at}.reason`, reason, reasons));
    }
  });
  errors.push(...validateMatchConditions(spec.matchConditions ?? [], 'spec.matchConditions'));
  return errors;
}
