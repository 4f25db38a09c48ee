import type { CronJob } from '../../objects/types/batch.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { declarative, type FieldError, invalid, required } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { validateGeneratedSelector, validateJobSpec } from './job.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';
import { pushChoiceErrors } from '../core/pod/field-checks.ts';
import { validateNonNegative } from '../core/podtemplate.ts';
import { scheduleFault } from '../../objects/formats/cron-schedule.ts';

/** Names of Jobs are the CronJob's name, a dash and ten digits. */
const maxName = 52;
const concurrencyPolicies = ['Allow', 'Forbid', 'Replace'];

/** The rules of CronJobs (`apis/batch/v1/defaults.go`, `apis/batch/validation` ValidateCronJob). */
export const cronJobStrategy = genericStrategy<CronJob>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  // WorkloadWithJob
  disabled: [
    [['spec', 'jobTemplate', 'spec', 'scheduling']],
    ...disabledPodFeatures('spec.jobTemplate.spec.template'),
  ],
  setDefaults(cronJob) {
    addEmptyParts(cronJob);
    const { spec } = cronJob;
    if ((spec.concurrencyPolicy ?? '') === '') spec.concurrencyPolicy = 'Allow';
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= 3;
    spec.failedJobsHistoryLimit ??= 1;
    const { jobTemplate } = spec;
    jobTemplate.spec ??= { template: {} };
    setTemplateDefaults(jobTemplate.spec.template);
  },
  validateCreate({ metadata, spec }) {
    const errors = validateSpec(spec);
    const { name = '' } = metadata;
    if (name.length > maxName) {
      errors.push(invalid('metadata.name', name, `must be no more than ${maxName} characters`));
    }
    return errors;
  },
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec),
});

function validateSpec(spec: CronJob['spec'], old?: CronJob['spec']): FieldError[] {
  const { schedule, jobTemplate } = spec;
  const errors: FieldError[] = [];
  const fault = schedule === '' ? '' : scheduleFault(schedule);
  if (schedule === '') errors.push(declarative(required('spec.schedule')));
  else if (fault !== '') errors.push(invalid('spec.schedule', schedule, fault));
  const zoneFault = schedule.includes('TZ') ? faultOfZone(spec, old) : '';
  if (zoneFault !== '') errors.push(invalid('spec.schedule', schedule, zoneFault));
  pushAll(errors, validateNonNegative(spec.startingDeadlineSeconds, 'spec.startingDeadlineSeconds'));
  if (old === undefined || old.timeZone !== spec.timeZone)
    pushAll(errors, validateTimeZone(spec.timeZone, 'spec.timeZone'));
  pushChoiceErrors(errors, 'spec.concurrencyPolicy', spec.concurrencyPolicy, concurrencyPolicies);
  const path = 'spec.jobTemplate.spec';
  pushAll(errors, validateJobSpec(jobTemplate.spec ?? { template: {} }, path, old?.jobTemplate.spec));
  pushAll(errors, validateGeneratedSelector(jobTemplate.spec ?? { template: {} }, path));
  pushAll(errors, validateNonNegative(spec.successfulJobsHistoryLimit, 'spec.successfulJobsHistoryLimit'));
  pushAll(errors, validateNonNegative(spec.failedJobsHistoryLimit, 'spec.failedJobsHistoryLimit'));
  return errors;
}

/**
 * A time zone in the schedule is allowed only where it was before, and without `timeZone` (`validateScheduleFormat`).
 */
function faultOfZone({ timeZone }: CronJob['spec'], old?: CronJob['spec']): string {
  if (old?.schedule.includes('TZ') !== true)
    return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead';
  return timeZone === undefined ? '' : 'cannot use both timeZone field and TZ or CRON_TZ in schedule';
}

/** The form of a part of a name (`validTimeZoneCharacters`). */
const part = /^[A-Za-z.\-_0-9+]{1,14}$/;

/** A time zone of IANA's by its name, or none (`validateTimeZone`). */
export function validateTimeZone(timeZone: string | undefined, path: string): FieldError[] {
  if (timeZone === undefined) return [];
  if (timeZone === '') return [invalid(path, timeZone, 'timeZone must be nil or non-empty string')];
  const unknown = invalid(path, timeZone, `unknown time zone ${timeZone}`);
  const isName = timeZone
    .split('/')
    .every((text) => text !== '.' && text !== '..' && !text.startsWith('-') && part.test(text));
  if (!isName) return [unknown];
  if (timeZone.toLowerCase() === 'local') {
    const explicit = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones';
    // Go accepts `Local` in this spelling only
    return [invalid(path, timeZone, explicit), ...(timeZone === 'Local' ? [] : [unknown])];
  }
  return isKnown(timeZone) ? [] : [unknown];
}

function isKnown(timeZone: string): boolean {
  // offsets are names to JavaScript only
  if (/^[+-]/.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions();
    return true;
  } catch {
    return false;
  }
}
