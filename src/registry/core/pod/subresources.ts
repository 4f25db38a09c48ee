import type { Container, Pod, ResourceRequirements } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { compareQuantities } from '../../../objects/quantity.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';
import { resetMetaForStatus, isSpecChanged } from '../../generic/generic.ts';
import { validateObjectMetaUpdate } from '../../generic/metadata.ts';
import type { SubresourceStrategy } from '../../generic/strategy.ts';
import { validateAnnotationChange } from './field-checks.ts';
import { validateEphemeralChange } from './validation.ts';
import { qosClass } from './status.ts';

import { validateMetadataAndSpec } from './validation.ts';

const resizable = ['cpu', 'memory'];

/** `/ephemeralcontainers` adds containers for debugging; existing ones stay (`EphemeralContainersStrategy`). */
export const ephemeralContainers: SubresourceStrategy<Pod> = {
  onlyFields: [['spec', 'ephemeralContainers']],
  prepareForUpdate(pod, old) {
    const { ephemeralContainers: wanted } = pod.spec;
    pod.status = old.status;
    pod.spec = { ...old.spec };
    resetMetaForStatus(pod, old);
    if (wanted === undefined) delete pod.spec.ephemeralContainers;
    else pod.spec.ephemeralContainers = wanted;
    raiseGeneration(pod, old);
  },
  validateUpdate: (pod, old) => [
    ...validateObjectMetaUpdate(pod.metadata, old.metadata),
    ...validateMetadataAndSpec(pod),
    ...validateAnnotationChange(pod, old),
    ...validateEphemeralChange(pod, old),
  ],
};

/** `/resize` changes the resources of running containers and nothing else (`ResizeStrategy`). */
export const resize: SubresourceStrategy<Pod> = {
  onlyFields: ['containers', 'initContainers'].flatMap((list) => [
    ['spec', list, '*', 'resources'],
    ['spec', list, '*', 'resizePolicy'],
  ]),
  prepareForUpdate(pod, old) {
    // Changes of the list of containers are refused by the validation.
    if (!sameNames(pod.spec.containers, old.spec.containers)) return;
    if (!sameNames(pod.spec.initContainers, old.spec.initContainers)) return;
    const { containers, initContainers } = pod.spec;
    pod.status = old.status;
    pod.spec = { ...old.spec };
    resetMetaForStatus(pod, old);
    if (containers !== undefined) pod.spec.containers = resized(containers, old.spec.containers);
    if (initContainers !== undefined)
      pod.spec.initContainers = resized(initContainers, old.spec.initContainers);
    raiseGeneration(pod, old);
  },
  validateUpdate: (pod, old) => [
    ...validateObjectMetaUpdate(pod.metadata, old.metadata),
    ...validateMetadataAndSpec(pod),
    ...validateResize(pod, old),
  ],
};

function sameNames(containers: readonly Container[] = [], old: readonly Container[] = []): boolean {
  return containers.length === old.length && containers.every(({ name }, i) => name === old[i]?.name);
}

function resized(containers: readonly Container[], old: readonly Container[] = []): Container[] {
  return old.map((container, i): Container => {
    const { resizePolicy: _, ...rest } = container;
    const { resources = {}, resizePolicy } = containers[i] ?? container;
    return { ...rest, resources, ...(resizePolicy && { resizePolicy }) };
  });
}

/** The fields that a resize may change (`ValidatePodResize`, for Pods without resources of their own). */
function validateResize({ spec }: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  if (qosClass(spec) !== (old.status.qosClass ?? qosClass(old.spec))) {
    errors.push(
      invalid('spec', old.status.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing'),
    );
  }
  const order = (['containers', 'initContainers'] as const).flatMap((list) =>
    validateOrder(spec, old.spec, list),
  );
  if (order.length > 0) return [...errors, ...order];
  for (const list of ['initContainers', 'containers'] as const) {
    (old.spec[list] ?? []).forEach((before, i) => {
      if (list === 'initContainers' && before.restartPolicy !== 'Always') return;
      const path = `spec.${list}[${i}].resources`;
      pushAll(errors, validateKept(spec[list]?.[i]?.resources ?? {}, before.resources ?? {}, path));
    });
  }
  const immutable = (detail: string, path = 'spec') => errors.push(forbiddenField(path, detail));
  (spec.containers ?? []).forEach((container, i) => {
    if (changesOthers(container, old.spec.containers?.[i]))
      immutable('only cpu and memory resources are mutable');
  });
  (spec.initContainers ?? []).forEach((container, i) => {
    const before = old.spec.initContainers?.[i];
    if (container.restartPolicy !== 'Always') {
      if (!jsonEqual(container, before)) immutable('resources for non-sidecar init containers are immutable');
    } else if (changesOthers(container, before)) {
      const detail = 'only cpu and memory resources for init or sidecar containers are mutable';
      immutable(detail, `spec.initContainers[${i}]`);
    }
  });
  return errors;
}

function validateOrder(
  spec: Pod['spec'],
  old: Pod['spec'],
  list: 'containers' | 'initContainers',
): FieldError[] {
  const now = spec[list] ?? [];
  const before = old[list] ?? [];
  const path = `spec.${list}`;
  if (now.length !== before.length) {
    return [forbiddenField(path, `${list} may not be added or removed on resize`)];
  }
  return before.flatMap(({ name }, i) =>
    now[i]?.name === name
      ? []
      : [forbiddenField(`${path}[${i}].name`, `${list} may not be renamed or reordered on resize`)],
  );
}

/** Resources that are set may change but not be removed. */
function validateKept(
  resources: ResourceRequirements,
  old: ResourceRequirements,
  path: string,
): FieldError[] {
  return (['requests', 'limits'] as const).flatMap((member) => {
    const now = resources[member] ?? {};
    const gone = Object.keys(old[member] ?? {}).some((name) => !Object.hasOwn(now, name));
    return gone ? [forbiddenField(`${path}.${member}`, `resource ${member} cannot be removed`)] : [];
  });
}

/** True when anything but CPU and memory differs. */
function changesOthers(container: Container, old: Container | undefined): boolean {
  const names = (list: Record<string, string> = {}) =>
    Object.keys(list).filter((name) => !resizable.includes(name));
  return (['requests', 'limits'] as const).some((member) => {
    const now = container.resources?.[member] ?? {};
    const before = old?.resources?.[member] ?? {};
    return [...new Set([...names(now), ...names(before)])].some((name) => {
      const [a, b] = [now[name], before[name]];
      return a === undefined || b === undefined || compareQuantities(a, b) !== 0;
    });
  });
}

function raiseGeneration(pod: Pod, old: Pod): void {
  const generation = old.metadata.generation ?? 0;
  pod.metadata.generation = isSpecChanged(pod, old) ? generation + 1 : generation;
}
