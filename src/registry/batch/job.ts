import type { Job, JobSpec } from '../../objects/types/batch.generated.ts';
import type { Affinity, Container, PodSpec } from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { labelSelectorMatches, validateLabelSelector } from '../validation/label-selector.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import { isDNS1123Label, nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';

import { validatePodTemplate } from '../core/pod/validation.ts';
import { workloadUpdateWarnings, workloadWarnings } from '../core/pod/warnings.ts';
import { unselected, validateCounts, validateNonNegative } from '../core/podtemplate.ts';

const maxInt32 = 2 ** 31 - 1;
const uidLabels = ['batch.kubernetes.io/controller-uid', 'controller-uid'] as const;
const nameLabels = ['batch.kubernetes.io/job-name', 'job-name'] as const;

/** The rules of Jobs (`apis/batch/v1/defaults.go`, `apis/batch/validation`, `pkg/registry/batch/job/strategy.go`). */
export const jobStrategy = genericStrategy<Job>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  // for clients older than the garbage collector
  defaultGarbageCollectionPolicy: 'OrphanDependents',
  deletionWarning:
    'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  // WorkloadWithJob
  disabled: [[['spec', 'scheduling']], ...disabledPodFeatures('spec.template')],
  setDefaults(job) {
    addEmptyParts(job);
    const { spec, metadata } = job;
    if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
    spec.parallelism ??= 1;
    spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : maxInt32;
    spec.completionMode ??= 'NonIndexed';
    spec.suspend ??= false;
    spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed';
    spec.manualSelector ??= false;
    setTemplateDefaults(spec.template);
    const labels = spec.template.metadata?.labels ?? {};
    if (Object.keys(metadata.labels ?? {}).length === 0 && Object.keys(labels).length > 0) {
      metadata.labels = { ...labels };
    }
  },
  prepareForCreate({ spec, metadata }) {
    if (spec.manualSelector !== true) generateSelector(spec, metadata.uid ?? '', metadata.name ?? '');
  },
  validateCreate: (job) => [
    ...validateJobSpec(job.spec, 'spec'),
    ...validateSelector(job.spec),
    ...validateHostnames(job),
  ],
  validateUpdate: (job, old) => [
    ...validateJobSpec(job.spec, 'spec', old.spec),
    ...validateSelector(job.spec),
    ...validateCompletions(job.spec, old.spec),
    ...validateImmutableField(job.spec.selector, old.spec.selector, 'spec.selector'),
    ...validateTemplateUpdate(job, old),
    ...fixedFields.flatMap((member) =>
      validateImmutableField(job.spec[member], old.spec[member], `spec.${member}`),
    ),
    ...validateHostnames(job),
  ],
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }) => validateCounts(status, ['active', 'succeeded', 'failed']),
  fields: ({ status = {} }: Partial<Pick<Job, 'status'>>) => {
    const { succeeded } = status;
    return { 'status.successful': String(typeof succeeded === 'number' ? succeeded : 0) };
  },
});

const fixedFields = [
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
] as const;

/** The Pods of an Indexed Job have host names with their index (`validateNameAllowsCompletions`). */
function validateHostnames({ metadata: { name = '' }, spec }: Job): FieldError[] {
  const { completionMode, completions = 0 } = spec;
  if (completionMode !== 'Indexed' || completions <= 0) return [];
  const longest = `${name}-${completions - 1}`;
  if (isDNS1123Label(longest).length === 0) return [];
  return [invalid('metadata.name', name, `will not able to create pod with invalid DNS label: ${longest}`)];
}

/** The completions of an Indexed Job change with its parallelism, to the same number; others' not at all. */
function validateCompletions(
  { completionMode, completions, parallelism }: JobSpec,
  old: JobSpec,
): FieldError[] {
  const path = 'spec.completions';
  if (completionMode !== 'Indexed') return validateImmutableField(completions, old.completions, path);
  if (completions === undefined || completions === old.completions || completions === parallelism) return [];
  return [invalid(path, completions, 'can only be modified in tandem with spec.parallelism')];
}

/**
 * The template changes while the Job is suspended and no Pod of it is there: where its Pods may run, their labels and
 * annotations, and the resources of containers (`validatePodTemplateUpdate`).
 */
function validateTemplateUpdate({ spec: { template } }: Job, old: Job): FieldError[] {
  const { spec, status } = old;
  const isSuspended = (status.conditions ?? []).some(
    ({ type, status: value }) => type === 'Suspended' && value === 'True',
  );
  const isOpen =
    spec.suspend === true && (status.startTime === undefined || isSuspended) && (status.active ?? 0) === 0;
  if (!isOpen) return validateImmutableField(template, spec.template, 'spec.template');
  const pod = template.spec;
  const before = spec.template.spec;
  if (pod === undefined || before === undefined)
    return validateImmutableField(pod, before, 'spec.template.spec');
  const allowed: PodSpec = {
    ...before,
    containers: withResources(before.containers ?? [], pod.containers ?? []),
    ...copied(pod, ['nodeSelector', 'tolerations', 'schedulingGates']),
  };
  if (before.initContainers !== undefined) {
    allowed.initContainers = withResources(before.initContainers, pod.initContainers ?? []);
  }
  const affinity = withNodeAffinity(before.affinity, pod.affinity);
  if (affinity === undefined) delete allowed.affinity;
  else allowed.affinity = affinity;
  return validateImmutableField(pod, allowed, 'spec.template.spec');
}

/** Members of an object, absent ones as undefined. */
function copied<T, K extends keyof T>(object: T, members: readonly K[]): Partial<Pick<T, K>> {
  const copy: Partial<Pick<T, K>> = {};
  for (const member of members) copy[member] = object[member];
  return copy;
}

function withResources(before: readonly Container[], now: readonly Container[]): Container[] {
  return before.map((container, i) => {
    const same = before.length === now.length ? now[i] : undefined;
    if (same?.name !== container.name) return container;
    const { resources: _, ...rest } = container;
    return same.resources === undefined ? rest : { ...rest, resources: same.resources };
  });
}

/** The affinity before, with the one to nodes that is wanted now; it may go where nothing else is in it. */
function withNodeAffinity(before: Affinity | undefined, now: Affinity | undefined): Affinity | undefined {
  const { nodeAffinity: _, ...rest } = before ?? {};
  if (now === undefined) return Object.keys(rest).length === 0 ? undefined : rest;
  return now.nodeAffinity === undefined ? rest : { ...rest, nodeAffinity: now.nodeAffinity };
}

/** The Pods of a Job are selected by its uid, unless the user sets a manual selector (`generateSelector`). */
function generateSelector(spec: JobSpec, uid: string, name: string): void {
  const metadata = (spec.template.metadata ??= {});
  const labels = (metadata.labels ??= {});
  for (const label of uidLabels) labels[label] ??= uid;
  for (const label of nameLabels) labels[label] ??= name;
  spec.selector ??= {};
  spec.selector.matchLabels ??= {};
  spec.selector.matchLabels[uidLabels[0]] ??= uid;
}

/**
 * The rules of a Job's spec but its selector, which a CronJob's template does not have.
 *
 * @param old the stored one, for an update.
 */
export function validateJobSpec(spec: JobSpec, path: string, old?: JobSpec): FieldError[] {
  const numbers = [
    'parallelism',
    'completions',
    'activeDeadlineSeconds',
    'backoffLimit',
    'ttlSecondsAfterFinished',
    'backoffLimitPerIndex',
  ] as const;
  const errors = numbers.flatMap((member) => validateNonNegative(spec[member], `${path}.${member}`));
  if (spec.completionMode !== undefined && !['Indexed', 'NonIndexed'].includes(spec.completionMode)) {
    errors.push(notSupported(`${path}.completionMode`, spec.completionMode, ['Indexed', 'NonIndexed']));
  }
  if (spec.completionMode === 'Indexed' && spec.completions === undefined) {
    errors.push(required(`${path}.completions`, 'when completion mode is Indexed'));
  }
  const template = spec.template;
  pushAll(errors, validatePodTemplate(template, `${path}.template`, old?.template));
  const policy = template.spec?.restartPolicy ?? '';
  const policyPath = `${path}.template.spec.restartPolicy`;
  if (policy === '' || policy === 'Always') {
    const detail = 'valid values: "OnFailure", "Never"';
    errors.push(required(policyPath, detail));
  } else if (policy !== 'OnFailure' && policy !== 'Never') {
    errors.push(notSupported(policyPath, policy, ['OnFailure', 'Never']));
  }
  return errors;
}

function validateSelector({ selector, template }: JobSpec): FieldError[] {
  if (selector === undefined) return [required('spec.selector')];
  const errors = validateLabelSelector(selector, 'spec.selector');
  const labels = template.metadata?.labels;
  if (labelSelectorMatches(selector, labels) === false) errors.push(unselected(labels));
  return errors;
}

/** A CronJob names no selector for its Jobs. */
export function validateGeneratedSelector({ selector, manualSelector }: JobSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (selector !== undefined)
    errors.push(invalid(`${path}.selector`, selector, '`selector` will be auto-generated'));
  if (manualSelector === true) errors.push(notSupported(`${path}.manualSelector`, true, ['nil', 'false']));
  return errors;
}
