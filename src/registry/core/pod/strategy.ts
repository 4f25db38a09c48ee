import type { Pod } from '../../../objects/types/core.generated.ts';
import { type FieldError, forbiddenField } from '../../validation/field-errors.ts';
import { genericStrategy, specChanges } from '../../generic/generic.ts';
import { validateAnnotationChange, validatePodAnnotations } from './annotations.ts';
import { setPodDefaults } from './defaults.ts';
import { admitPriority } from './scheduling/priority.ts';
import { admitRuntimeClass } from './scheduling/runtime-class.ts';
import { qosClass } from './quality.ts';
import { applyMatchKeys } from './scheduling/label-keys.ts';
import { keepObservedGenerations, statusWarnings, validatePodStatus } from './status.ts';
import { ephemeralContainers, resize } from './subresources.ts';
import { addDefaultTolerations } from './scheduling/tolerations.ts';
import { copyTopologyLabels } from './binding.ts';

import { validatePodChange } from './update.ts';
import { validateMetadataAndSpec, validatePodOnly } from './whole-pod.ts';
import { validatePodSpec } from './validation.ts';
import { hostnameWarnings, podWarnings } from './warnings.ts';
import { namespacedSubdomain } from '../../generic/metadata.ts';

/**
 * The rules of Pods (`pkg/registry/core/pod/strategy.go`, `ValidatePodCreate`), with the admission plugins
 * Priority, DefaultTolerationSeconds, RuntimeClass and PodTopologyLabels. The ServiceAccount plugin is
 * `apiserver/admission/service-accounts.ts`; it is off where Pods are only simulated, as in the recorded cluster.
 */
export const podStrategy = genericStrategy<Pod>({
  ...namespacedSubdomain,
  hasStatus: true,
  deleteReturnsObject: true,
  generationChanges: specChanges,
  setDefaults: setPodDefaults,
  admitCreate(pod, { cluster }) {
    admitPriority(pod, pod.spec, cluster);
    addDefaultTolerations(pod.spec);
    admitRuntimeClass(pod, pod.spec, cluster);
    const { nodeName = '' } = pod.spec;
    if (nodeName !== '') copyTopologyLabels(pod.metadata, cluster.get('', 'nodes', '', nodeName));
  },
  prepareForCreate(pod, { now }) {
    pod.status = { phase: 'Pending', qosClass: qosClass(pod.spec) };
    applyPodKeys(pod);
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
  validateCreate: ({ metadata, spec }) => [
    ...validatePodAnnotations(metadata.annotations, spec, 'metadata.annotations'),
    ...validatePodSpec(spec, 'spec', true),
    ...validatePodOnly(spec),
    ...validateOnCreate(spec),
  ],
  validateUpdate: (pod, old) => [
    ...validateMetadataAndSpec(pod),
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
