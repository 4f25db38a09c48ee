import type {
  Container,
  LimitRange,
  LimitRangeItem,
  Pod,
  ResourceRequirements,
} from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityIn,
} from '../../objects/formats/quantity.ts';
import { duplicate, type FieldError, forbiddenField, invalid, required } from '../validation/field-errors.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../../objects/names.ts';
import {
  mayBeOvercommitted,
  validateContainerResourceName,
  validateResourceName,
} from '../validation/names.ts';
import { genericStrategy } from '../generic/generic.ts';
import type { StrategyContext } from '../generic/strategy.ts';

/** Applies LimitRanges to Pods and claims (`plugin/pkg/admission/limitranger/admission.go`). PURE. */

/** Amounts by the name of a resource. */
export type Quantities = Record<string, string>;

const annotation = 'kubernetes.io/limit-ranger';

/** Sets missing requests and limits of a Pod's containers, in place, and records them in an annotation. */
export function applyDefaultLimits(range: LimitRange, pod: Pod): void {
  const item = itemsOf(range, 'Container')[0];
  if (item === undefined) return;
  const notes = [
    ...(pod.spec.containers ?? []).flatMap((container) => fill(container, item, 'container')),
    ...(pod.spec.initContainers ?? []).flatMap((container) => fill(container, item, 'init container')),
  ];
  if (notes.length === 0) return;
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [annotation]: `LimitRanger plugin set: ${notes.join('; ')}`,
  };
}

function fill(
  container: Container,
  { default: limits, defaultRequest }: LimitRangeItem,
  what: string,
): string[] {
  const resources = (container.resources ??= {});
  const notes: string[] = [];
  for (const [member, defaults, word] of [
    ['requests', defaultRequest, 'request'],
    ['limits', limits, 'limit'],
  ] as const) {
    const given = resources[member] ?? {};
    const open = Object.keys(defaults ?? {}).filter((name) => !Object.hasOwn(given, name));
    if (open.length === 0) continue;
    resources[member] = { ...defaults, ...given };
    notes.push(`${open.sort().join(', ')} ${word} for ${what} ${container.name}`);
  }
  return notes;
}

/** The limits that a Pod breaks, as texts. */
export function brokenPodLimits(range: LimitRange, { spec }: Pod): string[] {
  const containers = spec.containers ?? [];
  const init = spec.initContainers ?? [];
  const faults: string[] = [];
  for (const item of range.spec.limits ?? []) {
    if (item.type === 'Container') {
      for (const { resources = {} } of [...containers, ...init]) pushAll(faults, broken(item, resources));
    } else if (item.type === 'Pod') {
      pushAll(faults, broken(item, podResources(containers, init)));
    }
  }
  return faults;
}

/** The limits that a PersistentVolumeClaim breaks: only its request counts. */
export function brokenClaimLimits(range: LimitRange, requests: Quantities): string[] {
  return itemsOf(range, 'PersistentVolumeClaim').flatMap(({ min = {}, max = {} }) => [
    ...sorted(min).flatMap(([name, least]) => below(name, 'PersistentVolumeClaim', least, { requests })),
    ...sorted(max).flatMap(([name, most]) => {
      const start = `maximum ${name} usage per PersistentVolumeClaim is ${shown(most)}`;
      const request = own(requests, name);
      if (request === undefined) return [`${start}.  No request is specified`];
      return compareQuantities(request, most) > 0 ? [`${start}, but request is ${shown(request)}`] : [];
    }),
  ]);
}

function itemsOf(range: LimitRange, type: string): LimitRangeItem[] {
  return (range.spec.limits ?? []).filter((item) => item.type === type);
}

function sorted(quantities: Quantities): [string, string][] {
  return Object.entries(quantities).sort(([a], [b]) => (a < b ? -1 : 1));
}

function own(quantities: Quantities | undefined, name: string): string | undefined {
  return quantities !== undefined && Object.hasOwn(quantities, name) ? quantities[name] : undefined;
}

function shown(quantity: string): string {
  return canonicalQuantity(quantity);
}

function broken(item: LimitRangeItem, resources: ResourceRequirements): string[] {
  const { type, min = {}, max = {}, maxLimitRequestRatio = {} } = item;
  return [
    ...sorted(min).flatMap(([name, least]) => below(name, type, least, resources)),
    ...sorted(max).flatMap(([name, most]) => above(name, type, most, resources)),
    ...sorted(maxLimitRequestRatio).flatMap(([name, most]) => ratioAbove(name, type, most, resources)),
  ];
}

function below(
  name: string,
  type: string,
  least: string,
  { requests, limits }: ResourceRequirements,
): string[] {
  const start = `minimum ${name} usage per ${type} is ${shown(least)}`;
  const request = own(requests, name);
  const limit = own(limits, name);
  if (request === undefined) return [`${start}.  No request is specified`];
  if (compareQuantities(request, least) < 0) return [`${start}, but request is ${shown(request)}`];
  if (limit === undefined || compareQuantities(limit, least) >= 0) return [];
  return [`${start}, but limit is ${shown(limit)}`];
}

function above(
  name: string,
  type: string,
  most: string,
  { requests, limits }: ResourceRequirements,
): string[] {
  const start = `maximum ${name} usage per ${type} is ${shown(most)}`;
  const request = own(requests, name);
  const limit = own(limits, name);
  if (limit === undefined) return [`${start}.  No limit is specified`];
  if (compareQuantities(limit, most) > 0) return [`${start}, but limit is ${shown(limit)}`];
  if (request === undefined || compareQuantities(request, most) <= 0) return [];
  return [`${start}, but request is ${shown(request)}`];
}

function ratioAbove(
  name: string,
  type: string,
  most: string,
  { requests, limits }: ResourceRequirements,
): string[] {
  const start = `${name} max limit to request ratio per ${type} is ${shown(most)}`;
  const request = amount(own(requests, name));
  const limit = amount(own(limits, name));
  if (request === 0) return [`${start}, but no request is specified or request is 0`];
  if (limit === 0) return [`${start}, but no limit is specified or limit is 0`];
  const ratio = limit / request;
  return ratio > amount(most) ? [`${start}, but provided ratio is ${ratio.toFixed(6)}`] : [];
}

function amount(quantity: string | undefined): number {
  return quantity === undefined ? 0 : Number(parseQuantity(quantity).nanos) / 1e9;
}

/**
 * The sum of the containers, or the largest init container if that is more. Undefined when one container has no value.
 */
function podResources(containers: readonly Container[], init: readonly Container[]): ResourceRequirements {
  const total = (member: 'requests' | 'limits'): Quantities => {
    const lists = containers.map(({ resources }) => resources?.[member] ?? {});
    const sums: Record<string, string> = {};
    for (const name of new Set(lists.flatMap((list) => Object.keys(list)))) {
      if (!lists.every((list) => Object.hasOwn(list, name))) continue;
      const nanos = lists.reduce((sum, list) => sum + parseQuantity(own(list, name) ?? '0').nanos, 0n);
      sums[name] = formatQuantity({ nanos, format: 'DecimalSI' });
    }
    for (const { resources } of init) {
      for (const [name, quantity] of Object.entries(resources?.[member] ?? {})) {
        const known = own(sums, name);
        if (known !== undefined && compareQuantities(quantity, known) > 0) sums[name] = quantity;
      }
    }
    return sums;
  };
  return { requests: total('requests'), limits: total('limits') };
}

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
function validateLimits(limits: readonly LimitRangeItem[]): FieldError[] {
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
    const small = boundOf(bounds[low], resource);
    const large = boundOf(bounds[high], resource);
    if (small === undefined || large === undefined || compareQuantities(small, large) <= 0) continue;
    const detail = `${names[0]} value ${small} is greater than ${names[1]} value ${large}`;
    errors.push(invalid(`${path}.${at}[${resource}]`, boundOf(bounds[shown], resource), detail));
  }
  pushAll(errors, validateRatio(bounds, resource, path));
  const limit = boundOf(bounds.default, resource);
  const request = boundOf(bounds.defaultRequest, resource);
  if (mayBeOvercommitted(resource) || limit === undefined || request === undefined) return errors;
  if (compareQuantities(limit, request) !== 0) {
    const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${resource}`;
    errors.push(invalid(`${path}.defaultRequest[${resource}]`, request, detail));
  }
  return errors;
}

/** The ratio of limit to request: at least 1, and at most what the bounds allow. */
function validateRatio(bounds: Bounds, resource: string, path: string): FieldError[] {
  const ratio = boundOf(bounds.maxLimitRequestRatio, resource);
  if (ratio === undefined) return [];
  const at = `${path}.maxLimitRequestRatio[${resource}]`;
  const errors: FieldError[] = [];
  if (compareQuantities(ratio, '1') < 0) errors.push(invalid(at, ratio, `ratio ${ratio} is less than 1`));
  const min = boundOf(bounds.min, resource);
  const max = boundOf(bounds.max, resource);
  if (min === undefined || max === undefined) return errors;
  const fine = [ratio, min, max].every((text) => quantityIn(text, 'units') < maxThousandths);
  const scale = fine ? 'thousandths' : 'units';
  const room = Number(quantityIn(max, scale)) / Number(quantityIn(min, scale));
  if (Number(quantityIn(ratio, scale)) / (fine ? 1000 : 1) > room) {
    errors.push(invalid(at, ratio, `ratio ${ratio} is greater than max/min = ${room.toFixed(6)}`));
  }
  return errors;
}

function boundOf(quantities: Quantities, resource: string): string | undefined {
  return Object.hasOwn(quantities, resource) ? quantities[resource] : undefined;
}

/** The rules of LimitRanges (`SetDefaults_LimitRangeItem`, `ValidateLimitRange`). They are applied by admission. */
export const limitRangeStrategy = genericStrategy<LimitRange>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  allowCreateOnUpdate: true,
  repeatsCreate: 'instead',
  // A LimitRange gets a name when the client gives none.
  prepareForCreate({ metadata }, context) {
    if ((metadata.name ?? '') === '') metadata.name = newUuid(context);
  },
  setDefaults(limitRange: Partial<Pick<LimitRange, 'spec'>>) {
    const spec = (limitRange.spec ??= {});
    for (const item of spec.limits ?? []) {
      if (item.type !== 'Container') continue;
      const limits = { ...item.max, ...item.default };
      const requests = { ...item.min, ...limits, ...item.defaultRequest };
      if (Object.keys(limits).length > 0) item.default = limits;
      if (Object.keys(requests).length > 0) item.defaultRequest = requests;
    }
  },
  validateCreate: ({ spec }) => validateLimits(spec.limits ?? []),
});

/** A random UUID, of version 4. */
function newUuid(context: StrategyContext): string {
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (digit) =>
    Math.floor(digit === 'x' ? context.random() * 16 : 8 + context.random() * 4).toString(16),
  );
}
