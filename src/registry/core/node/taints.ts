import type { Taint } from '../../../objects/types/core.generated.ts';
import { type FieldError, invalid, notSupported, required } from '../../validation/field-errors.ts';
import { isQualifiedName, isValidLabelValue } from '../../../objects/names.ts';

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** The rules of taints (`validateNodeTaints`); kube-apiserver reports them below `metadata`. */
export function validateTaints(taints: readonly Taint[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  taints.forEach((taint, i) => {
    const { key, value = '', effect } = taint;
    const at = `${path}[${i}]`;
    for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
    const faults = isValidLabelValue(value);
    if (faults.length > 0) errors.push(invalid(`${at}.value`, value, faults.join(';')));
    if (effect === '') errors.push(required(`${at}.effect`));
    else if (!taintEffects.includes(effect)) errors.push(notSupported(`${at}.effect`, effect, taintEffects));
    const identity = `${effect}:${key}`;
    if (seen.has(identity)) errors.push(repeated(taint, at));
    seen.add(identity);
  });
  return errors;
}

/** Shows the taint as Go prints the internal type. */
function repeated({ key, value = '', effect, timeAdded }: Taint, field: string): FieldError {
  const shown = JSON.stringify({ Key: key, Value: value, Effect: effect, TimeAdded: timeAdded ?? null });
  const detail = 'taints must be unique by key and effect pair';
  return { field, reason: 'FieldValueDuplicate', body: `Duplicate value: ${shown}: ${detail}` };
}
