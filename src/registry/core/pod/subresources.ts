import type { Container, Pod, ResourceRequirements } from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { compareQuantities } from '../../../objects/quantity.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';
import { resetMetaForStatus, isSpecChanged } from '../../generic/generic.ts';
import { validateObjectMetaUpdate } from '../../generic/metadata.ts';
import type { SubresourceStrategy } from '../../generic/strategy.ts';
import { dropDisabledFields } from '../../generic/disabled-fields.ts';
import { disabledPodFeatures } from './defaults.ts';
import { setPodResourceDefaults } from './pod-resources.ts';
import { validateAnnotationChange } from './field-checks.ts';
import { validateEphemeralChange } from './validation.ts';
import { qosClass } from './status.ts';

import { validateMetadataAndSpec } from './validation.ts';

const resizable = ['cpu', 'memory'];
/** The annotation of a kubelet's static Pods. */
const mirror = 'kubernetes.io/config.mirror';

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
    dropDisabledFields(pod, old, disabledPodFeatures());
    raiseGeneration(pod, old);
  },
  validateUpdate: (pod, old) => [
    ...validateObjectMetaUpdate(pod.metadata, old.metadata),
    ...validateMetadataAndSpec(pod, old.spec),
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
    const { containers, initContainers, resources = old.spec.resources } = pod.spec;
    pod.status = old.status;
    pod.spec = { ...old.spec };
    resetMetaForStatus(pod, old);
    if (containers !== undefined) pod.spec.containers = resized(containers, old.spec.containers);
    if (initContainers !== undefined)
      pod.spec.initContainers = resized(initContainers, old.spec.initContainers);
    if (resources !== undefined) pod.spec.resources = resources;
    setPodResourceDefaults(pod.spec);
    raiseGeneration(pod, old);
  },
  validateUpdate(pod, old) {
    const refused = refusedResize(old);
    if (refused.length > 0) return refused;
    return [
      ...validateObjectMetaUpdate(pod.metadata, old.metadata),
      ...validateMetadataAndSpec(pod, old.spec),
      ...validateResize(pod, old),
    ];
  },
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

/** The fields that a resize may change (`ValidatePodResize`). */
function validateResize({ spec }: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const oldClass = old.status.qosClass ?? qosClass(old.spec);
  if (qosClass(spec) !== oldClass) {
    errors.push(invalid('spec', oldClass, 'Pod QOS Class may not change as a result of resizing'));
  }
  const immutable = (detail: string, path = 'spec') => errors.push(forbiddenField(path, detail));
  if (!isResizeSupported(old)) immutable('Pod running on node without support for resize');
  pushAll(errors, validatePodResourcesResize(spec.resources, old.spec.resources));
  const order = (['containers', 'initContainers'] as const).flatMap((list) =>
    validateOrder(spec, old.spec, list),
  );
  if (order.length > 0) return [...errors, ...order];
  for (const list of ['initContainers', 'containers'] as const) {
    (old.spec[list] ?? []).forEach((before, i) => {
      const path = `spec.${list}[${i}].resources`;
      pushAll(errors, validateKept(spec[list]?.[i]?.resources, before.resources, path, 'resource'));
    });
  }
  (spec.containers ?? []).forEach((container, i) => {
    if (changesOthers(container.resources, old.spec.containers?.[i]?.resources))
      immutable('only cpu and memory resources are mutable');
  });
  (spec.initContainers ?? []).forEach((container, i) => {
    const before = old.spec.initContainers?.[i];
    const path = `spec.initContainers[${i}]`;
    if (changesOthers(container.resources, before?.resources)) {
      immutable('only cpu and memory resources for init or sidecar containers are mutable', path);
    }
    if (container.restartPolicy === 'Always' || jsonEqual(container, before)) return;
    for (const { restartPolicy } of container.resizePolicy ?? []) {
      if (restartPolicy !== 'RestartContainer') continue;
      immutable(
        'non-sidecar init containers with a resize policy of RestartContainer cannot be resized',
        path,
      );
    }
  });
  return errors;
}

/** Pods that nothing resizes; no other error is named then. */
function refusedResize({ metadata, spec }: Pod): FieldError[] {
  if (metadata.annotations?.[mirror] !== undefined)
    return [forbiddenField('', 'static pods cannot be resized')];
  return spec.os?.name === 'windows' ? [forbiddenField('', 'windows pods cannot be resized')] : [];
}

/** False when a container runs without reporting its resources: an old kubelet (`isPodResizeRequestSupported`). */
function isResizeSupported({ status }: Pod): boolean {
  const running = status.containerStatuses?.find(({ state }) => state?.running !== undefined);
  return running === undefined || running.resources !== undefined;
}

/** The resources of the Pod as a whole (`validatePodLevelResourcesResize`). */
function validatePodResourcesResize(
  resources: ResourceRequirements | undefined,
  old: ResourceRequirements | undefined,
): FieldError[] {
  const errors = validateKept(resources, old, 'spec.resources', 'pod-level resource');
  if (changesOthers(resources, old)) {
    errors.push(forbiddenField('spec', 'only cpu and memory resources are mutable at pod-level'));
  }
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
  resources: ResourceRequirements = {},
  old: ResourceRequirements = {},
  path: string,
  what: string,
): FieldError[] {
  return (['requests', 'limits'] as const).flatMap((member) => {
    const now = resources[member] ?? {};
    const gone = Object.keys(old[member] ?? {}).some((name) => !Object.hasOwn(now, name));
    return gone ? [forbiddenField(`${path}.${member}`, `${what} ${member} cannot be removed`)] : [];
  });
}

/** True when anything but CPU and memory differs. */
function changesOthers(resources: ResourceRequirements = {}, old: ResourceRequirements = {}): boolean {
  const names = (list: Record<string, string>) =>
    Object.keys(list).filter((name) => !resizable.includes(name));
  if (!jsonEqual(resources.claims ?? [], old.claims ?? [])) return true;
  return (['requests', 'limits'] as const).some((member) => {
    const now = resources[member] ?? {};
    const before = old[member] ?? {};
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
