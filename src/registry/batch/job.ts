import type { Job, JobSpec } from '../../objects/types/batch.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { labelSelectorMatches, validateLabelSelector } from '../validation/label-selector.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults } from '../core/pod/defaults.ts';

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
  repeatsCreate: 'before',
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
  validateCreate: ({ spec }) => [...validateJobSpec(spec, 'spec'), ...validateSelector(spec)],
  validateUpdate: ({ spec }) => [...validateJobSpec(spec, 'spec'), ...validateSelector(spec)],
  immutable: ['spec.completions', 'spec.selector', 'spec.template', 'spec.completionMode'],
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }) => validateCounts(status, ['active', 'succeeded', 'failed']),
  fields: ({ status = {} }: Partial<Pick<Job, 'status'>>) => {
    const { succeeded } = status;
    return { 'status.successful': String(typeof succeeded === 'number' ? succeeded : 0) };
  },
});

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

/** The rules of a Job's spec but its selector, which a CronJob's template does not have. */
export function validateJobSpec(spec: JobSpec, path: string): FieldError[] {
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
  pushAll(errors, validatePodTemplate(template, `${path}.template`));
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
