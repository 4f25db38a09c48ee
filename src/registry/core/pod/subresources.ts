import type {
  Container,
  Pod,
  PodSpec,
  PodStatus,
  ResourceRequirements,
} from '../../../objects/types/core.generated.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';
import { validateImmutableField, validateObjectMetaUpdate } from '../../generic/metadata.ts';
import { isQualifiedName } from '../../../objects/names.ts';
import { validateAddressPair, validateLegacyAddress, warningsForAddress } from '../../validation/network.ts';
import { validateAnnotationChange, pushSubdomainErrors, restarts } from './field-checks.ts';
import { hasPodResources, setPodResourceDefaults } from './pod-resources.ts';
import { parseQuantity, compareQuantities } from '../../../objects/formats/quantity.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { resetMetaForStatus, isSpecChanged } from '../../generic/generic.ts';
import type { SubresourceStrategy } from '../../generic/strategy.ts';
import { dropDisabledFields } from '../../generic/disabled-fields.ts';
import { disabledPodFeatures } from './defaults.ts';
import { validateEphemeralChange, validateMetadataAndSpec } from './validation.ts';

const systemConditions = new Set(['PodScheduled', 'Ready', 'Initialized']);
const notNegative = 'must be a non-negative integer';

/** The rules of a write of `/status` (`ValidatePodStatusUpdate`). */
export function validatePodStatus(pod: Pod, old: Pod): FieldError[] {
  const { status, spec } = pod;
  const errors = [...validateAnnotationChange(pod, old), ...validateConditions(status.conditions ?? [])];
  if ((spec.nodeName ?? '') !== (old.spec.nodeName ?? '')) {
    errors.push(forbiddenField('status.nodeName', 'may not be changed directly'));
  }
  pushAll(errors, validateNominatedNode(status.nominatedNodeName ?? '', old));
  const { qosClass = '', observedGeneration = 0 } = status;
  if (observedGeneration < 0) {
    errors.push(invalid('status.observedGeneration', observedGeneration, notNegative));
  }
  pushAll(errors, validateImmutableField(qosClass, old.status.qosClass ?? '', 'status.qosClass'));
  pushAll(errors, validateTransitions(status, old));
  pushAll(errors, validateAddresses(status.podIPs ?? [], old.status.podIPs ?? [], 'status.podIPs'));
  const [firstHost] = status.hostIPs ?? [];
  if (firstHost !== undefined && firstHost.ip !== (status.hostIP ?? '')) {
    errors.push(invalid('status.hostIPs[0].ip', firstHost.ip, 'must be equal to `hostIP`'));
  }
  pushAll(errors, validateAddresses(status.hostIPs ?? [], old.status.hostIPs ?? [], 'status.hostIPs'));
  return errors;
}

function validateConditions(conditions: NonNullable<PodStatus['conditions']>): FieldError[] {
  const errors: FieldError[] = [];
  conditions.forEach(({ type, observedGeneration = 0 }, i) => {
    const at = `status.conditions[${i}]`;
    if (observedGeneration < 0) {
      errors.push(invalid(`${at}.observedGeneration`, observedGeneration, notNegative));
    }
    if (systemConditions.has(type)) return;
    for (const message of isQualifiedName(type)) errors.push(invalid(`${at}.Type`, type, message));
  });
  return errors;
}

/** `nominatedNodeName` is only for Pods without a node. */
function validateNominatedNode(nominated: string, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  if (nominated === '' || nominated === old.status.nominatedNodeName) return errors;
  pushSubdomainErrors(errors, 'status.nominatedNodeName', nominated);
  if ((old.spec.nodeName ?? '') !== '') {
    const detail = 'may not be set on pods that are already bound to a node';
    errors.push(forbiddenField('status.nominatedNodeName', detail));
  }
  return errors;
}

/** A container that has ended runs again only if its restart policy allows it. */
function validateTransitions(status: PodStatus, { spec, status: before }: Pod): FieldError[] {
  return (['containers', 'initContainers'] as const).flatMap((list) => {
    const member = list === 'containers' ? 'containerStatuses' : 'initContainerStatuses';
    const revived = (before[member] ?? []).map(({ name, state }) => {
      const now = status[member]?.find((item) => item.name === name);
      if (state?.terminated === undefined || now === undefined || now.state?.terminated !== undefined)
        return false;
      return !mayRestart(spec[list] ?? [], name, spec, state.terminated.exitCode);
    });
    return revived.flatMap((refused, i) =>
      refused
        ? [forbiddenField(`status.${member}[${i}].state`, 'may not be transitioned to non-terminated state')]
        : [],
    );
  });
}

function mayRestart(
  containers: readonly Container[],
  name: string,
  spec: PodSpec,
  exitCode: number,
): boolean {
  const container = containers.find((item) => item.name === name);
  return container !== undefined && restarts(container, spec, exitCode);
}

/** At most one address of each family, in any spelling without leading zeros; stored ones may stay. */
function validateAddresses(
  list: readonly { ip: string }[],
  old: readonly { ip: string }[],
  path: string,
): FieldError[] {
  const known = old.map(({ ip }) => ip);
  const texts = list.map(({ ip }) => ip);
  // As Go prints the internal type.
  const shown = texts.map((ip) => ({ IP: ip }));
  return [
    ...texts.flatMap((ip, i) => validateLegacyAddress(ip, `${path}[${i}]`, known)),
    ...validateAddressPair(texts, path, shown),
  ];
}

/** Observed generations that the client leaves out are kept, by type of condition. */
export function keepObservedGenerations(status: PodStatus, old: PodStatus): void {
  if (old.observedGeneration !== undefined) status.observedGeneration ??= old.observedGeneration;
  const known = [...(old.conditions ?? [])];
  for (const condition of status.conditions ?? []) {
    const at = known.findIndex(({ type }) => type === condition.type);
    const [before] = at === -1 ? [] : known.splice(at, 1);
    if (before?.observedGeneration !== undefined) condition.observedGeneration ??= before.observedGeneration;
  }
}

/** Warnings of a write of `/status`: addresses in unusual spellings. */
export function statusWarnings({ status: { podIPs = [], hostIPs = [] } }: Pod): string[] {
  return [
    ...podIPs.flatMap(({ ip }, i) => warningsForAddress(ip, `status.podIPs[${i}].ip`)),
    ...hostIPs.flatMap(({ ip }, i) => warningsForAddress(ip, `status.hostIPs[${i}].ip`)),
  ];
}

/** The resources that decide. */
const counted = ['cpu', 'memory'];

/** The QoS class (`ComputePodQOS`): by the Pod's own resources if it has them, else by its containers. */
export function qosClass(spec: PodSpec): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const parts =
    spec.resources === undefined || !hasPodResources(spec)
      ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ resources = {} }) => resources)
      : [spec.resources];
  const amounts = parts.flatMap(({ limits, requests }) =>
    counted.flatMap((resource) => [amount(limits, resource), amount(requests, resource)]),
  );
  if (amounts.every((nanos) => nanos <= 0n)) return 'BestEffort';
  return parts.every(isGuaranteed) ? 'Guaranteed' : 'Burstable';
}

/** True for limits of both resources, and requests that equal them. */
function isGuaranteed({ limits, requests }: ResourceRequirements): boolean {
  return counted.every((resource) => {
    const limit = amount(limits, resource);
    return limit > 0n && amount(requests, resource) === limit;
  });
}

function amount(list: Record<string, string> | undefined, resource: string): bigint {
  const text = list !== undefined && Object.hasOwn(list, resource) ? list[resource] : undefined;
  return text === undefined ? 0n : parseQuantity(text).nanos;
}

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
