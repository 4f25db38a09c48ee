/**
 * `x-kubernetes-validations` of a definition: the rules' fields other than expressions (apiextensions `validation.go`).
 */
import type { JSONSchemaProps, ValidationRule } from '../../../objects/apiextensions.generated.ts';
import { readFieldPath } from '../rules/field-path.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const lineBreak = /[\n\r]/;

/** The fields of one schema's rules, without their expressions. */
export function validateRuleMembers(schema: JSONSchemaProps, path: string): FieldError[] {
  return (schema['x-kubernetes-validations'] ?? []).flatMap((rule, i) =>
    memberErrors(rule, schema, `${path}.x-kubernetes-validations[${i}]`),
  );
}

function memberErrors(rule: ValidationRule, schema: JSONSchemaProps, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message = '', messageExpression = '', reason, fieldPath = '' } = rule;
  const text = message.trim();
  const source = rule.rule.trim();
  if (source === '') errors.push(required(`${at}.rule`, 'rule is not specified'));
  else if (message !== '' && text === '') {
    errors.push(invalid(`${at}.message`, message, 'must be non-empty if specified'));
  } else if (lineBreak.test(text)) {
    errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'));
  } else if (lineBreak.test(source) && text === '') {
    errors.push(required(`${at}.message`, 'message must be specified if rule contains line breaks'));
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'));
  }
  if (reason !== undefined && !reasons.includes(reason)) {
    errors.push(notSupported(`${at}.reason`, reason, reasons));
  }
  const wrongPath = (detail: string) => errors.push(invalid(`${at}.fieldPath`, fieldPath, detail));
  if (fieldPath !== '' && fieldPath.trim() === '') wrongPath('must be non-empty if specified');
  if (lineBreak.test(fieldPath)) wrongPath('must not contain line breaks');
  if (readFieldPath(fieldPath, schema).fault !== undefined) wrongPath('must be a valid path');
  return errors;
}
