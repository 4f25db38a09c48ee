import type { Container, PodSpec, ResourceRequirements } from '../../../objects/types/core.generated.ts';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
} from '../../../objects/formats/quantity.ts';
import { type FieldError, forbiddenField, invalid, notSupported } from '../../validation/field-errors.ts';
import { isHugePage, mayBeOvercommitted, validateResourceName } from '../../validation/names.ts';
import { pushAll } from '../../../objects/lists.ts';
import { validateRequirements } from './containers.ts';

/** The resources of a Pod as a whole, `spec.resources` (gate PodLevelResources, on). */

type Kind = 'requests' | 'limits';

const supported = ['cpu', 'hugepages-', 'memory'];

function isSupported(resource: string): boolean {
  return resource === 'cpu' || resource === 'memory' || isHugePage(resource);
}

/** True when the Pod as a whole has requests or limits of a resource that counts (`IsPodLevelResourcesSet`). */
export function hasPodResources({ resources }: PodSpec): boolean {
  return Object.keys({ ...resources?.requests, ...resources?.limits }).some(isSupported);
}

/**
 * Requests or limits of all containers together: of those that run beside each other, or of the init container that
 * needs most beside the sidecars before it (`component-helpers/resource` AggregateContainerRequests).
 */
function aggregate(spec: PodSpec, kind: Kind): Map<string, Quantity> {
  const sum = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const most = new Map<string, Quantity>();
  for (const { resources } of spec.containers ?? []) add(sum, amounts(resources, kind));
  for (const { resources, restartPolicy } of spec.initContainers ?? []) {
    const own = amounts(resources, kind);
    const together = new Map(own);
    add(together, sidecars);
    if (restartPolicy === 'Always') {
      add(sum, own);
      add(sidecars, own);
    }
    raise(most, together);
  }
  raise(sum, most);
  return sum;
}

function amounts(resources: ResourceRequirements | undefined, kind: Kind): Map<string, Quantity> {
  return new Map(Object.entries(resources?.[kind] ?? {}).map(([name, text]) => [name, parseQuantity(text)]));
}

function add(sum: Map<string, Quantity>, more: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of more) {
    const { nanos, format } = sum.get(name) ?? { ...quantity, nanos: 0n };
    sum.set(name, { nanos: nanos + quantity.nanos, format: nanos === 0n ? quantity.format : format });
  }
}

function raise(sum: Map<string, Quantity>, other: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of other) {
    const known = sum.get(name);
    if (known === undefined || quantity.nanos > known.nanos) sum.set(name, quantity);
  }
}

/**
 * The defaults of `spec.resources`, which need all containers, those that admission adds too
 * (`pkg/api/pod/util.go` DefaultPodLevelResources): limits of huge pages, then requests, then limits.
 */
export function setPodResourceDefaults(spec: PodSpec): void {
  const { resources } = spec;
  const { requests = {}, limits = {} } = resources ?? {};
  if (resources === undefined || Object.keys({ ...requests, ...limits }).length === 0) return;
  const allLimits = aggregate(spec, 'limits');
  const newLimits = { ...limits };
  for (const [name, quantity] of allLimits) {
    if (!isHugePage(name) || Object.hasOwn(requests, name) || Object.hasOwn(limits, name)) continue;
    newLimits[name] = formatQuantity(quantity);
  }
  const newRequests = { ...requests };
  for (const [name, quantity] of aggregate(spec, 'requests')) {
    if (Object.hasOwn(requests, name) || !isSupported(name) || !mayBeOvercommitted(name)) continue;
    newRequests[name] = formatQuantity(quantity);
  }
  for (const [name, limit] of Object.entries(newLimits)) {
    if (!Object.hasOwn(newRequests, name) && isSupported(name)) newRequests[name] = limit;
  }
  const all = [
    ...(spec.containers ?? []),
    ...(spec.initContainers ?? []),
    ...(spec.ephemeralContainers ?? []),
  ];
  for (const [name, request] of Object.entries(newRequests)) {
    if (!isSupported(name) || Object.hasOwn(newLimits, name)) continue;
    const together = allLimits.get(name);
    if (together === undefined || !all.every((container) => hasLimit(container, name))) continue;
    const limit = formatQuantity(together);
    // A request beyond the limits of all containers is the limit: the Pod stays valid.
    newLimits[name] = compareQuantities(request, limit) > 0 ? request : limit;
  }
  const filled: ResourceRequirements = { ...resources };
  if (Object.keys(newRequests).length > 0) filled.requests = newRequests;
  if (Object.keys(newLimits).length > 0) filled.limits = newLimits;
  spec.resources = filled;
}

function hasLimit({ resources }: Pick<Container, 'resources'>, name: string): boolean {
  return Object.hasOwn(resources?.limits ?? {}, name);
}

/** The rules of `spec.resources` (`validatePodResources`). @param path of the PodSpec. */
export function validatePodResources(spec: PodSpec, path: string): FieldError[] {
  const { resources, os } = spec;
  const at = `${path}.resources`;
  if (resources === undefined) return [];
  if (os?.name === 'windows') return [forbiddenField(at, 'may not be set for a windows pod')];
  const errors: FieldError[] = [];
  if (resources.claims !== undefined) {
    errors.push(forbiddenField(`${at}.claims`, 'claims may not be set for Resources at pod-level'));
  }
  pushAll(errors, validateRequirements(resources, at, validatePodResourceName), validateSums(spec, at));
  return errors;
}

function validatePodResourceName(resource: string, path: string): FieldError[] {
  const errors = validateResourceName(resource, path);
  return errors.length > 0 || isSupported(resource) ? errors : [notSupported(path, resource, supported)];
}

/** The whole Pod has at least what its containers have (`validatePodResourceConsistency`). */
function validateSums(spec: PodSpec, path: string): FieldError[] {
  const { requests = {}, limits = {} } = spec.resources ?? {};
  const errors: FieldError[] = [];
  const atLeast = (kind: Kind, name: string, own: string | undefined, sum: Quantity) => {
    if (own === undefined || sum.nanos <= parseQuantity(own).nanos) return;
    const detail = `must be greater than or equal to aggregate container ${kind} of ${formatQuantity(sum)}`;
    errors.push(invalid(`${path}.${kind}[${name}]`, own, detail));
  };
  for (const [name, sum] of aggregate(spec, 'requests')) atLeast('requests', name, requests[name], sum);
  for (const [name, sum] of aggregate(spec, 'limits')) {
    if (isHugePage(name)) atLeast('limits', name, limits[name], sum);
  }
  (spec.containers ?? []).forEach(({ resources }, i) => {
    for (const [name, limit] of Object.entries(resources?.limits ?? {})) {
      const whole = limits[name];
      if (whole === undefined || compareQuantities(limit, whole) <= 0) continue;
      const detail = `must be less than or equal to pod limits of ${whole}`;
      errors.push(invalid(`${path}.containers[${i}][${name}].limits`, limit, detail));
    }
  });
  return errors;
}
