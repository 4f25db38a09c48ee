import type { DaemonSet } from '../../objects/types/apps.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';
import { templateWarnings, workloadUpdateWarnings } from '../core/pod/warnings.ts';
import {
  isZeroCount,
  validateAtMost100Percent,
  validateCollisions,
  validateCountOrPercent,
  validateCounts,
  validateNonNegative,
  validateSelectedTemplate,
} from '../core/podtemplate.ts';

const words = { emptySelector: 'invalid for daemonset', owner: 'DaemonSet' };
const counts = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
];

/** The rules of DaemonSets (`apis/apps/v1/defaults.go`, `apis/apps/validation` ValidateDaemonSet). */
export const daemonSetStrategy = genericStrategy<DaemonSet>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  repeatsCreate: 'before',
  disabled: disabledPodFeatures('spec.template'),
  setDefaults(daemonSet) {
    addEmptyParts(daemonSet);
    countTemplates(daemonSet, countedTemplates(daemonSet));
    const { spec } = daemonSet;
    const strategy = (spec.updateStrategy ??= {});
    if ((strategy.type ?? '') === '') strategy.type = 'RollingUpdate';
    if (strategy.type === 'RollingUpdate') {
      const rolling = (strategy.rollingUpdate ??= {});
      rolling.maxUnavailable ??= 1;
      rolling.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
    setTemplateDefaults(spec.template);
  },
  prepareForCreate(daemonSet) {
    countTemplates(daemonSet, Math.max(1, countedTemplates(daemonSet)));
  },
  prepareForUpdate(daemonSet, old) {
    const changed = !jsonEqual(daemonSet.spec.template, old.spec.template);
    countTemplates(daemonSet, countedTemplates(old) + Number(changed));
  },
  prepareStatus(daemonSet, old) {
    countTemplates(daemonSet, countedTemplates(old));
  },
  validateCreate: ({ spec }, _, old) => validateSpec(spec, old?.spec),
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec),
  immutable: ['spec.selector'],
  warningsOnCreate: ({ spec }) => templateWarnings(spec.template),
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }, old) => [
    ...validateCounts(status, counts),
    ...validateCollisions(status.collisionCount, old.status.collisionCount),
  ],
});

/** `spec.templateGeneration` of the internal type, which apps/v1 shows as an annotation (`apis/apps/v1/conversion.go`). */
const templateGeneration = 'deprecated.daemonset.template.generation';

function countedTemplates({ metadata }: DaemonSet): number {
  const text = metadata.annotations?.[templateGeneration] ?? '';
  return /^[-+]?\d{1,15}$/.test(text) ? Number(text) : 0;
}

function countTemplates({ metadata }: DaemonSet, count: number): void {
  metadata.annotations = { ...metadata.annotations, [templateGeneration]: String(count) };
}

function validateSpec(spec: DaemonSet['spec'], old?: DaemonSet['spec']): FieldError[] {
  return [
    ...validateSelectedTemplate(spec.selector, spec.template, words, old?.template),
    ...validateNonNegative(spec.minReadySeconds, 'spec.minReadySeconds'),
    ...validateStrategy(spec.updateStrategy ?? {}),
    ...validateNonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit'),
  ];
}

function validateStrategy({
  type = '',
  rollingUpdate,
}: NonNullable<DaemonSet['spec']['updateStrategy']>): FieldError[] {
  const path = 'spec.updateStrategy';
  if (type === 'OnDelete') return [];
  if (type !== 'RollingUpdate') return [notSupported(`${path}.type`, type, ['RollingUpdate', 'OnDelete'])];
  if (rollingUpdate === undefined) return [required(`${path}.rollingUpdate`)];
  const { maxUnavailable, maxSurge } = rollingUpdate;
  const unavailablePath = `${path}.rollingUpdate.maxUnavailable`;
  const surgePath = `${path}.rollingUpdate.maxSurge`;
  const errors = [
    ...validateCountOrPercent(maxUnavailable, unavailablePath),
    ...validateCountOrPercent(maxSurge, surgePath),
    ...validateAtMost100Percent(maxUnavailable, unavailablePath),
    ...validateAtMost100Percent(maxSurge, surgePath),
  ];
  if (isZeroCount(maxUnavailable) === isZeroCount(maxSurge)) {
    errors.push(
      isZeroCount(maxSurge)
        ? required(unavailablePath, 'cannot be 0 when maxSurge is 0')
        : invalid(surgePath, maxSurge, 'may not be set when maxUnavailable is non-zero'),
    );
  }
  return errors;
}
