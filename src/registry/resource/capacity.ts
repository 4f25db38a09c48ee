import { compareQuantities, formatQuantity, parseQuantity } from '../../objects/formats/quantity.ts';
import type {
  CapacityRequestPolicy,
  CapacityRequestPolicyRange,
  DeviceCapacity,
} from '../../objects/types/resource.generated.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  required,
  tooMany,
} from '../validation/field-errors.ts';

/** How much of a device's capacity one request may have. */

const maxValidValues = 10;

/** The capacity of a device that one claim has alone. */
export function validateExclusiveCapacity({ requestPolicy }: DeviceCapacity, path: string): FieldError[] {
  if (requestPolicy === undefined) return [];
  return [forbiddenField(`${path}.requestPolicy`, 'allowMultipleAllocations must be true')];
}

/** The capacity of a device that several claims share. */
export function validateSharedCapacity({ value, requestPolicy }: DeviceCapacity, path: string): FieldError[] {
  return requestPolicy === undefined ? [] : validatePolicy(requestPolicy, value, `${path}.requestPolicy`);
}

function validatePolicy(
  { default: usual, validValues = [], validRange }: CapacityRequestPolicy,
  value: string,
  path: string,
): FieldError[] {
  if (validValues.length > 0 && validRange !== undefined) {
    const detail =
      'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time';
    return [forbiddenField(path, detail)];
  }
  if (validValues.length === 0 && validRange === undefined) return [];
  const which = validRange === undefined ? 'validValues' : 'validRange';
  if (usual === undefined || usual === null) {
    return [required(`${path}.default`, `required when ${which} is defined`)];
  }
  const at = `${path}.${which}`;
  return validRange === undefined
    ? validateValues(validValues, usual, value, at)
    : validateRange(validRange, usual, value, at);
}

/** The values that may be asked for: in order, each once, with the default among them. */
function validateValues(values: readonly string[], usual: string, most: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  values.forEach((value, i) => {
    const before = values[i - 1];
    if (before === undefined || compareQuantities(before, value) <= 0) return;
    errors.push(invalid(`${path}[${i}]`, value, 'values must be sorted in ascending order'));
  });
  if (values.length > maxValidValues) errors.push(tooMany(path, values.length, maxValidValues));
  else {
    values.forEach((value, i) => {
      if (compareQuantities(value, most) <= 0) return;
      errors.push(invalid(`${path}[${i}]`, value, `option is larger than capacity value: ${most}`));
    });
    const seen = new Set<bigint>();
    values.forEach((value, i) => {
      const { nanos } = parseQuantity(value);
      if (seen.has(nanos)) errors.push(duplicate(`${path}[${i}]`, value));
      seen.add(nanos);
    });
  }
  if (values.length > maxValidValues || !values.some((value) => compareQuantities(value, usual) === 0)) {
    errors.push(invalid(path, usual, 'default value is not valid according to the requestPolicy'));
  }
  return errors;
}

const nano = 1_000_000_000n;
const milli = nano / 1000n;
const maxInt64 = 2n ** 63n - 1n;

function validateRange(
  { min, max, step }: CapacityRequestPolicyRange,
  usual: string,
  most: string,
  path: string,
): FieldError[] {
  if (min === undefined) return [required(`${path}.min`, 'required when validRange is defined')];
  const errors: FieldError[] = [];
  const refuse = (member: string, value: string, detail: string) =>
    errors.push(invalid(`${path}.${member}`, value, detail));
  if (compareQuantities(min, most) > 0) refuse('min', min, `min is larger than capacity value: ${most}`);
  if (compareQuantities(usual, min) < 0) refuse('default', usual, `default is less than min: ${min}`);
  if (max !== undefined) {
    if (compareQuantities(min, max) > 0) refuse('max', min, `min is larger than max: ${max}`);
    if (compareQuantities(max, most) > 0) refuse('max', max, `max is larger than capacity value: ${most}`);
    if (compareQuantities(usual, max) > 0) refuse('default', usual, `default is more than max: ${max}`);
  }
  const nanos = (text: string): bigint => parseQuantity(text).nanos;
  const all = Object.entries({ default: usual, min, max, step }).flatMap(([member, text]) =>
    text === undefined ? [] : [{ member, text, nanos: nanos(text) }],
  );
  const isFractional = all.some((each) => each.nanos % nano !== 0n);
  if (isFractional) {
    const unsafe = all.filter((each) => each.nanos % milli !== 0n);
    for (const { member, text } of unsafe)
      refuse(member, text, 'value cannot be represented as a milli value');
    if (unsafe.length > 0) return errors;
  }
  if (step === undefined) return errors;
  if (nanos(step) <= 0n) {
    refuse('step', step, 'must be greater than zero');
    return errors;
  }
  if (nanos(min) + nanos(step) > nanos(most)) {
    refuse('step', step, `one step ${sumText(min, step)} is larger than capacity value: ${most}`);
  }
  if (!isFractional) {
    const before = errors.length;
    for (const each of all) {
      if (each.nanos < 0n) refuse(each.member, each.text, 'must be greater than or equal to 0');
      else if (each.nanos > maxInt64 * nano) {
        refuse(each.member, each.text, 'must not be larger than 9223372036854775807');
      }
    }
    if (errors.length > before) return errors;
  }
  for (const value of max === undefined ? [usual] : [usual, max]) {
    if ((nanos(value) - nanos(min)) % nanos(step) === 0n) continue;
    refuse('step', value, `value is not a multiple of a given step (${step}) from (${min})`);
  }
  return errors;
}

/** The sum of two quantities in the form of the first. */
function sumText(a: string, b: string): string {
  const first = parseQuantity(a);
  return formatQuantity({ ...first, nanos: first.nanos + parseQuantity(b).nanos });
}
