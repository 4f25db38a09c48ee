import type { LimitRangeItem } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { compareQuantities, quantityIn } from '../../../objects/quantity.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  required,
} from '../../validation/field-errors.ts';
import { isQualifiedName } from '../../../objects/names.ts';
import {
  mayBeOvercommitted,
  validateContainerResourceName,
  validateResourceName,
} from '../../validation/resource-names.ts';
import type { Quantities } from './limits.ts';

const standardTypes = new Set(['Pod', 'Container', 'PersistentVolumeClaim']);
/** The members of an item that are compared with each other. */
type Bounds = Required<Omit<LimitRangeItem, 'type'>>;

/** Quantities that fit are counted in thousandths (`resource.MaxMilliValue`). */
const maxThousandths = (2n ** 63n - 1n) / 1000n;

/**
 * Pairs of members whose first may not exceed the second, in kube-apiserver's order: the errors are at `at` and show
 * the amount of `shown`.
 */
const orders = [
  { low: 'min', high: 'max', at: 'min', shown: 'min', names: ['min', 'max'] },
  {
    low: 'min',
    high: 'defaultRequest',
    at: 'defaultRequest',
    shown: 'defaultRequest',
    names: ['min', 'default request'],
  },
  {
    low: 'defaultRequest',
    high: 'max',
    at: 'defaultRequest',
    shown: 'defaultRequest',
    names: ['default request', 'max'],
  },
  {
    low: 'defaultRequest',
    high: 'default',
    at: 'defaultRequest',
    shown: 'defaultRequest',
    names: ['default request', 'default limit'],
  },
  { low: 'min', high: 'default', at: 'default', shown: 'min', names: ['min', 'default'] },
  { low: 'default', high: 'max', at: 'default', shown: 'max', names: ['default', 'max'] },
] as const;

/** The rules of the limits of a LimitRange (`ValidateLimitRange`). */
export function validateLimits(limits: readonly LimitRangeItem[]): FieldError[] {
  const seen = new Set<string>();
  return limits.flatMap((item, i) => {
    const { type } = item;
    const path = `spec.limits[${i}]`;
    const errors = validateType(type, `${path}.type`);
    if (seen.has(type)) errors.push(duplicate(`${path}.type`, type));
    seen.add(type);
    return [...errors, ...validateItem(item, path)];
  });
}

function validateType(type: string, path: string): FieldError[] {
  const errors = isQualifiedName(type).map((message) => invalid(path, type, message));
  if (errors.length === 0 && !type.includes('/') && !standardTypes.has(type)) {
    errors.push(invalid(path, type, 'must be a standard limit type or fully qualified'));
  }
  return errors;
}

/** The limits that an item may have: items for Pods have no defaults. */
function boundsOf(item: LimitRangeItem): Bounds {
  const { max = {}, min = {}, maxLimitRequestRatio = {} } = item;
  const fills: Partial<LimitRangeItem> = item.type === 'Pod' ? {} : item;
  return {
    max,
    min,
    default: fills.default ?? {},
    defaultRequest: fills.defaultRequest ?? {},
    maxLimitRequestRatio,
  };
}

function validateItem(item: LimitRangeItem, path: string): FieldError[] {
  const bounds = boundsOf(item);
  const ofContainers = item.type === 'Pod' || item.type === 'Container';
  const rule = ofContainers ? validateContainerResourceName : validateResourceName;
  const names = (member: keyof Bounds) =>
    Object.keys(bounds[member]).flatMap((resource) => rule(resource, `${path}.${member}[${resource}]`));
  const errors = [...names('max'), ...names('min')];
  for (const member of item.type === 'Pod' ? (['default', 'defaultRequest'] as const) : []) {
    if (Object.keys(item[member] ?? {}).length === 0) continue;
    errors.push(forbiddenField(`${path}.${member}`, "may not be specified when `type` is 'Pod'"));
  }
  pushAll(errors, names('default'), names('defaultRequest'));
  if (item.type === 'PersistentVolumeClaim' && !Object.hasOwn({ ...item.min, ...item.max }, 'storage')) {
    const detail = 'either minimum or maximum storage value is required, but neither was provided';
    errors.push(required(`${path}.limits`, detail));
  }
  pushAll(errors, names('maxLimitRequestRatio'));
  const resources = new Set(Object.values(bounds).flatMap((amounts) => Object.keys(amounts)));
  for (const resource of resources) pushAll(errors, validateAmounts(bounds, resource, path));
  return errors;
}

function validateAmounts(bounds: Bounds, resource: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const { low, high, at, shown, names } of orders) {
    const small = amount(bounds[low], resource);
    const large = amount(bounds[high], resource);
    if (small === undefined || large === undefined || compareQuantities(small, large) <= 0) continue;
    const detail = `${names[0]} value ${small} is greater than ${names[1]} value ${large}`;
    errors.push(invalid(`${path}.${at}[${resource}]`, amount(bounds[shown], resource), detail));
  }
  pushAll(errors, validateRatio(bounds, resource, path));
  const limit = amount(bounds.default, resource);
  const request = amount(bounds.defaultRequest, resource);
  if (mayBeOvercommitted(resource) || limit === undefined || request === undefined) return errors;
  if (compareQuantities(limit, request) !== 0) {
    const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${resource}`;
    errors.push(invalid(`${path}.defaultRequest[${resource}]`, request, detail));
  }
  return errors;
}

/** The ratio of limit to request: at least 1, and at most what the bounds allow. */
function validateRatio(bounds: Bounds, resource: string, path: string): FieldError[] {
  const ratio = amount(bounds.maxLimitRequestRatio, resource);
  if (ratio === undefined) return [];
  const at = `${path}.maxLimitRequestRatio[${resource}]`;
  const errors: FieldError[] = [];
  if (compareQuantities(ratio, '1') < 0) errors.push(invalid(at, ratio, `ratio ${ratio} is less than 1`));
  const min = amount(bounds.min, resource);
  const max = amount(bounds.max, resource);
  if (min === undefined || max === undefined) return errors;
  const fine = [ratio, min, max].every((text) => quantityIn(text, 'units') < maxThousandths);
  const scale = fine ? 'thousandths' : 'units';
  const room = Number(quantityIn(max, scale)) / Number(quantityIn(min, scale));
  if (Number(quantityIn(ratio, scale)) / (fine ? 1000 : 1) > room) {
    errors.push(invalid(at, ratio, `ratio ${ratio} is greater than max/min = ${room.toFixed(6)}`));
  }
  return errors;
}

function amount(quantities: Quantities, resource: string): string | undefined {
  return Object.hasOwn(quantities, resource) ? quantities[resource] : undefined;
}
