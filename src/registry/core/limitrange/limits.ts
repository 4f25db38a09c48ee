/** Applies LimitRanges to Pods and claims (`plugin/pkg/admission/limitranger/admission.go`). PURE. */
import type {
  Container,
  LimitRange,
  LimitRangeItem,
  Pod,
  ResourceRequirements,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
} from '../../../objects/quantity.ts';

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
