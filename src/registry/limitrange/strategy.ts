import type { KubeObject } from '../../objects/meta.ts';
import { compareQuantities } from '../../objects/quantity.ts';
import { duplicate, type FieldError, forbiddenField, invalid } from '../field-errors.ts';
import { genericStrategy } from '../generic.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../names.ts';
import { fillParts } from '../workload/workload.ts';

/** Core/v1 LimitRange. */
export interface LimitRange extends KubeObject {
  spec: { limits?: LimitRangeItem[] | null };
}

/** Amounts by the name of a resource. */
export type Quantities = Record<string, string>;

/** The limits of one type of object. */
export interface LimitRangeItem {
  type?: string;
  max?: Quantities;
  min?: Quantities;
  default?: Quantities;
  defaultRequest?: Quantities;
  maxLimitRequestRatio?: Quantities;
}

const standardTypes = new Set(['Pod', 'Container', 'PersistentVolumeClaim']);

/** Pairs of members whose first may not exceed the second, in kube-apiserver's order; errors are at `at`. */
const orders = [
  { low: 'min', high: 'max', at: 'min', names: ['min', 'max'] },
  { low: 'min', high: 'defaultRequest', at: 'defaultRequest', names: ['min', 'default request'] },
  { low: 'defaultRequest', high: 'max', at: 'defaultRequest', names: ['default request', 'max'] },
  {
    low: 'defaultRequest',
    high: 'default',
    at: 'defaultRequest',
    names: ['default request', 'default limit'],
  },
  { low: 'min', high: 'default', at: 'default', names: ['min', 'default'] },
  { low: 'default', high: 'max', at: 'default', names: ['default', 'max'] },
] as const;

/** The rules of LimitRanges (`SetDefaults_LimitRangeItem`, `ValidateLimitRange`). They are applied by admission. */
export const limitRangeStrategy = genericStrategy<LimitRange>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  allowCreateOnUpdate: true,
  repeatsCreate: 'after',
  setDefaults(limitRange) {
    fillParts(limitRange);
    for (const item of limitRange.spec.limits ?? []) {
      if (item.type !== 'Container') continue;
      const limits = { ...item.max, ...item.default };
      const requests = { ...item.min, ...limits, ...item.defaultRequest };
      if (Object.keys(limits).length > 0) item.default = limits;
      if (Object.keys(requests).length > 0) item.defaultRequest = requests;
    }
  },
  validateCreate({ spec }) {
    const seen = new Set<string>();
    return (spec.limits ?? []).flatMap((item, i) => {
      const { type = '' } = item;
      const path = `spec.limits[${i}]`;
      const errors = validateType(type, `${path}.type`);
      if (seen.has(type)) errors.push(duplicate(`${path}.type`, type));
      seen.add(type);
      return [...errors, ...validateItem(item, path)];
    });
  },
});

function validateType(type: string, path: string): FieldError[] {
  const errors = isQualifiedName(type).map((message) => invalid(path, type, message));
  if (errors.length === 0 && !type.includes('/') && !standardTypes.has(type)) {
    errors.push(invalid(path, type, 'must be a standard limit type or fully qualified'));
  }
  return errors;
}

function validateItem(item: LimitRangeItem, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (item.type === 'Pod') {
    for (const member of ['default', 'defaultRequest'] as const) {
      if (item[member] === undefined) continue;
      errors.push(forbiddenField(`${path}.${member}`, "may not be specified when `type` is 'Pod'"));
    }
  }
  const resources = new Set(orders.flatMap(({ low, high }) => Object.keys({ ...item[low], ...item[high] })));
  for (const resource of resources) {
    for (const { low, high, at, names } of orders) {
      const small = amount(item[low], resource);
      const large = amount(item[high], resource);
      if (small === undefined || large === undefined || compareQuantities(small, large) <= 0) continue;
      const detail = `${names[0]} value ${small} is greater than ${names[1]} value ${large}`;
      errors.push(invalid(`${path}.${at}[${resource}]`, amount(item[at], resource), detail));
    }
  }
  return errors;
}

function amount(quantities: Quantities | undefined, resource: string): string | undefined {
  return quantities !== undefined && Object.hasOwn(quantities, resource) ? quantities[resource] : undefined;
}
