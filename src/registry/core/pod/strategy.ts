import type {
  Container,
  NodeSelectorTerm,
  PodSpec,
  Toleration,
  Pod,
} from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { validateTolerations, applyMatchKeys } from './scheduling.ts';
import { genericStrategy, isSpecChanged } from '../../generic/generic.ts';
import { validateAnnotationChange, validatePodAnnotations } from './field-checks.ts';
import { setPodDefaults, disabledPodFeatures, disabledStatusFeatures } from './defaults.ts';
import { setPodResourceDefaults } from './pod-resources.ts';
import {
  qosClass,
  keepObservedGenerations,
  statusWarnings,
  validatePodStatus,
  ephemeralContainers,
  resize,
} from './subresources.ts';
import { validateMetadataAndSpec, validatePodOnly, validatePodSpec } from './validation.ts';
import { hostnameWarnings, podWarnings } from './warnings.ts';
import { namespacedSubdomain } from '../../generic/metadata.ts';

const changeable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');
const maxInt32 = 2 ** 31 - 1;
/** What a write of `/status` keeps where it leaves it out. */
const claimStatuses = [
  'resourceClaimStatuses',
  'extendedResourceClaimStatus',
  'nodeAllocatableResourceClaimStatuses',
] as const;

/** The fields of a Pod's spec that may change (`ValidatePodUpdate`). */
function validatePodChange(spec: PodSpec, old: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = spec[list] ?? [];
    if (containers.length !== (old[list] ?? []).length) {
      errors.push(forbiddenField(`spec.${list}`, 'pod updates may not add or remove containers'));
      return errors;
    }
    pushAll(errors, validateImages(containers, `spec.${list}`));
  }
  if (!pushDeadlineErrors(errors, spec.activeDeadlineSeconds, old.activeDeadlineSeconds)) return errors;
  pushAll(errors, validateAddedTolerations(spec.tolerations ?? [], old.tolerations ?? []));
  pushAll(errors, validateRemovedGates(spec, old));
  const isGated = (old.schedulingGates ?? []).length > 0;
  if (isGated) pushAll(errors, validateNarrowing(spec, old));
  const restored = withOldParts(spec, old);
  if (!jsonEqual(isGated ? withOldPlaces(restored, old) : restored, old)) {
    // kube-apiserver appends a Go dump of the difference.
    errors.push(forbiddenField('spec', `pod updates may not change fields other than ${changeable}\n`));
  }
  return errors;
}

function validateImages(containers: readonly Container[], path: string): FieldError[] {
  return containers.flatMap(({ image = '' }, i) => {
    const at = `${path}[${i}].image`;
    if (image === '') return [required(at)];
    return image.trim() === image ? [] : [invalid(at, image, 'must not have leading or trailing whitespace')];
  });
}

/** A deadline may be set and shortened. @returns false when the other rules are skipped. */
function pushDeadlineErrors(
  errors: FieldError[],
  deadline: number | undefined,
  old: number | undefined,
): boolean {
  const path = 'spec.activeDeadlineSeconds';
  if (deadline === undefined) {
    if (old !== undefined)
      errors.push(invalid(path, null, 'must not update from a positive integer to nil value'));
    return true;
  }
  if (deadline < 0 || deadline > maxInt32) {
    errors.push(invalid(path, deadline, `must be between 0 and ${maxInt32}, inclusive`));
    return false;
  }
  if (old !== undefined && old < deadline) {
    errors.push(invalid(path, deadline, 'must be less than or equal to previous value'));
    return false;
  }
  return true;
}

function validateAddedTolerations(
  tolerations: readonly Toleration[],
  old: readonly Toleration[],
): FieldError[] {
  const path = 'spec.tolerations';
  const timeless = tolerations.map((toleration) => ({ ...toleration, tolerationSeconds: undefined }));
  const kept = old.every((before) =>
    timeless.some((toleration) => jsonEqual(toleration, { ...before, tolerationSeconds: undefined })),
  );
  if (!kept) {
    return [forbiddenField(path, 'existing toleration can not be modified except its tolerationSeconds')];
  }
  return validateTolerations(tolerations, path);
}

function validateRemovedGates({ schedulingGates = [] }: PodSpec, old: PodSpec): FieldError[] {
  const before = new Set((old.schedulingGates ?? []).map(({ name }) => name));
  return schedulingGates.flatMap(({ name = '' }, i) => {
    if (before.has(name)) return [];
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbiddenField(`spec.schedulingGates[${i}].name`, detail)];
  });
}

/** A gated Pod may be narrowed down to fewer nodes, in a PUT or a patch, before it is scheduled. */
function validateNarrowing(spec: PodSpec, old: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const selector = spec.nodeSelector ?? {};
  const lost = Object.entries(old.nodeSelector ?? {}).some(
    ([key, value]) => !Object.hasOwn(selector, key) || selector[key] !== value,
  );
  if (lost) {
    const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    errors.push(invalid('spec.nodeSelector', spec.nodeSelector, detail));
  }
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  const terms = requiredTerms(spec);
  const oldTerms = requiredTerms(old);
  if (oldTerms.length > 0 && oldTerms.length !== terms.length) {
    const detail = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    errors.push(invalid(path, terms.length === 0 ? undefined : terms.map(goTerm), detail));
    return errors;
  }
  oldTerms.forEach((oldTerm, i) => {
    const term = terms[i] ?? {};
    if (hasOnlyAdditions(term, oldTerm)) return;
    const detail = 'only additions are allowed (no mutations or deletions)';
    errors.push(invalid(`${path}[${i}]`, goTerm(term), detail));
  });
  return errors;
}

function requiredTerms({ affinity }: PodSpec): readonly NodeSelectorTerm[] {
  return affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
}

/** True when the requirements of the old term come first, as they were; a term without any selects no node. */
function hasOnlyAdditions(term: NodeSelectorTerm, old: NodeSelectorTerm): boolean {
  const lists = (['matchExpressions', 'matchFields'] as const).map(
    (member) => [term[member] ?? [], old[member] ?? []] as const,
  );
  if (lists.every(([, before]) => before.length === 0)) return lists.every(([now]) => now.length === 0);
  return lists.every(([now, before]) => jsonEqual(now.slice(0, before.length), before));
}

/** As Go prints the internal type. */
function goTerm({ matchExpressions, matchFields }: NodeSelectorTerm): object {
  const shown = (list: NodeSelectorTerm['matchFields']) =>
    list?.map(({ key, operator, values }) => ({ Key: key, Operator: operator, Values: values ?? null })) ??
    null;
  return { MatchExpressions: shown(matchExpressions), MatchFields: shown(matchFields) };
}

/** The new spec with the node selector and the node affinity of a gated Pod reset. */
function withOldPlaces(spec: PodSpec, { nodeSelector, affinity }: PodSpec): PodSpec {
  const { nodeAffinity: _, ...others } = spec.affinity ?? {};
  const oldAffinity = affinity?.nodeAffinity;
  const wanted = { ...others, ...(oldAffinity && { nodeAffinity: oldAffinity }) };
  const isUnset = Object.keys(wanted).length === 0 && (affinity === undefined || spec.affinity === undefined);
  const { nodeSelector: _selector, affinity: _affinity, ...rest } = spec;
  return {
    ...rest,
    ...(nodeSelector && { nodeSelector }),
    ...(isUnset ? {} : { affinity: wanted }),
  };
}

/** The new spec with mutable fields reset: other differences are not allowed. */
function withOldParts(spec: PodSpec, old: PodSpec): PodSpec {
  const { activeDeadlineSeconds, schedulingGates, tolerations, terminationGracePeriodSeconds } = old;
  const oldImages = (list: 'containers' | 'initContainers') =>
    spec[list]?.map((container, i) => ({ ...container, image: old[list]?.[i]?.image }));
  const restored = {
    ...spec,
    containers: oldImages('containers'),
    initContainers: oldImages('initContainers'),
    activeDeadlineSeconds,
    schedulingGates,
    tolerations,
  };
  const wasNegative = (terminationGracePeriodSeconds ?? 0) < 0;
  const grace =
    wasNegative && spec.terminationGracePeriodSeconds === 1
      ? terminationGracePeriodSeconds
      : spec.terminationGracePeriodSeconds;
  return withoutUndefined({ ...restored, terminationGracePeriodSeconds: grace });
}

function withoutUndefined(spec: { [Member in keyof PodSpec]?: unknown }): PodSpec {
  const result: PodSpec = {};
  return Object.assign(result, spec);
}

/**
 * The rules of Pods (`pkg/registry/core/pod/strategy.go`, `ValidatePodCreate`). Those of the admission plugins are in
 * `admission.ts`.
 */
export const podStrategy = genericStrategy<Pod>({
  ...namespacedSubdomain,
  hasStatus: true,
  deleteReturnsObject: true,
  generationChanges: isSpecChanged,
  setDefaults: setPodDefaults,
  disabled: disabledPodFeatures(),
  disabledStatus: disabledStatusFeatures,
  prepareForCreate(pod, { now }) {
    applyPodKeys(pod);
    setPodResourceDefaults(pod.spec);
    pod.status = { phase: 'Pending', qosClass: qosClass(pod.spec) };
    if ((pod.spec.schedulingGates ?? []).length === 0) return;
    pod.status.conditions = [
      {
        type: 'PodScheduled',
        status: 'False',
        lastTransitionTime: now,
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
      },
    ];
  },
  prepareForUpdate({ spec }, { spec: { resources } }) {
    // Kept for clients that do not know the field.
    if (resources !== undefined) spec.resources ??= resources;
  },
  validateCreate: ({ metadata, spec }) => [
    ...validatePodAnnotations(metadata.annotations, spec, 'metadata.annotations'),
    ...validatePodSpec(spec, 'spec', { isPod: true, old: undefined }),
    ...validatePodOnly(spec),
    ...validateOnCreate(spec),
  ],
  validateUpdate: (pod, old) => [
    ...validateMetadataAndSpec(pod, old.spec),
    ...validateAnnotationChange(pod, old),
    ...validatePodChange(pod.spec, old.spec),
  ],
  statusResets: [
    ['metadata', 'deletionTimestamp'],
    ['metadata', 'ownerReferences'],
  ],
  prepareStatus(pod, old) {
    takeMember(pod.metadata, old.metadata, 'ownerReferences');
    if ((pod.status.qosClass ?? '') === '') takeMember(pod.status, old.status, 'qosClass');
    for (const member of claimStatuses) {
      if (pod.status[member] === undefined) takeMember(pod.status, old.status, member);
    }
    keepObservedGenerations(pod.status, old.status);
  },
  validateStatus: validatePodStatus,
  statusWarnings,
  warningsOnCreate: ({ metadata, spec }) => [
    ...hostnameWarnings(metadata.name ?? ''),
    ...podWarnings({ metadata, spec }, ''),
  ],
  gracePeriodSeconds({ spec, status }, requested) {
    if ((spec.nodeName ?? '') === '' || status.phase === 'Failed' || status.phase === 'Succeeded') return 0;
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? 0;
    return seconds < 0 ? 1 : seconds;
  },
  fields: (pod) => podFields(pod),
  subresources: new Map([
    ['ephemeralcontainers', ephemeralContainers],
    ['resize', resize],
  ]),
});

/** Adds the requirements of label keys to selectors (`mutatePodAffinity`, `mutateTopologySpreadConstraints`). */
function applyPodKeys({ metadata: { labels }, spec }: Pod): void {
  for (const pods of [spec.affinity?.podAffinity, spec.affinity?.podAntiAffinity]) {
    for (const { podAffinityTerm } of pods?.preferredDuringSchedulingIgnoredDuringExecution ?? []) {
      applyMatchKeys(podAffinityTerm, labels);
    }
    for (const term of pods?.requiredDuringSchedulingIgnoredDuringExecution ?? [])
      applyMatchKeys(term, labels);
  }
  for (const constraint of spec.topologySpreadConstraints ?? []) applyMatchKeys(constraint, labels);
}

/** Copies a member from the stored object, or removes it where that has none. */
function takeMember<T extends object>(object: T, old: T, member: keyof T): void {
  if (old[member] === undefined) Reflect.deleteProperty(object, member);
  else object[member] = old[member];
}

/** The rules of new Pods only. */
function validateOnCreate(spec: Pod['spec']): FieldError[] {
  const errors: FieldError[] = [];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    errors.push(forbiddenField('spec.nodeName', 'cannot be set until all schedulingGates have been cleared'));
  }
  return errors;
}

function podFields({
  spec = {},
  status = {},
}: Partial<Pick<Pod, 'spec' | 'status'>>): Record<string, string> {
  const podIPs = (status.podIPs ?? []).map(({ ip }) => ip);
  return {
    'spec.nodeName': spec.nodeName ?? '',
    'spec.restartPolicy': spec.restartPolicy ?? '',
    'spec.schedulerName': spec.schedulerName ?? '',
    'spec.serviceAccountName': spec.serviceAccountName ?? '',
    'spec.hostNetwork': String(spec.hostNetwork ?? false),
    'status.phase': status.phase ?? '',
    'status.podIP': podIPs[0] ?? '',
    'status.podIPs': podIPs.join(','),
    'status.nominatedNodeName': status.nominatedNodeName ?? '',
  };
}
