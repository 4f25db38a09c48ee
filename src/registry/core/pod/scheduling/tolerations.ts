import type { PodSpec, Toleration } from '../../../../objects/types/core.generated.ts';
import { pushAll } from '../../../../objects/lists.ts';
import { type FieldError, invalid, notSupported } from '../../../validation/field-errors.ts';
import { isQualifiedName, isValidLabelValue } from '../../../../objects/names.ts';
import { taintEffects } from '../../node/taints.ts';

const defaultSeconds = 300;
const toleratedByDefault = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** Admission DefaultTolerationSeconds: Pods stay five minutes on a failed node, unless they have other tolerations. */
export function addDefaultTolerations(spec: PodSpec): void {
  const tolerations = (spec.tolerations ??= []);
  const given = [...tolerations];
  for (const key of toleratedByDefault) {
    if (given.some((toleration) => toleratesNoExecute(toleration, key))) continue;
    tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: defaultSeconds });
  }
}

function toleratesNoExecute({ key = '', effect = '' }: Toleration, taint: string): boolean {
  return (key === taint || key === '') && (effect === 'NoExecute' || effect === '');
}

/** The rules of tolerations (`ValidateTolerations`). */
export function validateTolerations(tolerations: readonly Toleration[], path: string): FieldError[] {
  return tolerations.flatMap(({ key = '', operator = '', value = '', effect = '', tolerationSeconds }, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    if (key !== '')
      for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
    if (key === '' && operator !== 'Exists') {
      const detail =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.push(invalid(`${at}.operator`, operator, detail));
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      errors.push(invalid(`${at}.effect`, effect, detail));
    }
    pushAll(errors, validateOperator(operator, value, `${at}.operator`));
    if (effect !== '' && !taintEffects.includes(effect)) {
      errors.push(notSupported(`${at}.effect`, effect, taintEffects));
    }
    return errors;
  });
}

function validateOperator(operator: string, value: string, path: string): FieldError[] {
  switch (operator) {
    case '':
    case 'Equal': {
      const faults = isValidLabelValue(value);
      return faults.length === 0 ? [] : [invalid(path, value, faults.join(';'))];
    }
    case 'Exists':
      return value === '' ? [] : [invalid(path, value, "value must be empty when `operator` is 'Exists'")];
    default:
      return [notSupported(path, operator, ['Equal', 'Exists'])];
  }
}
