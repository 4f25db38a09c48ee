import type { Deployment, RollingUpdateDeployment } from '../../objects/types/apps.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';
import { workloadUpdateWarnings, workloadWarnings } from '../core/pod/warnings.ts';
import {
  isZeroCount,
  validateAtMost100Percent,
  validateAvailable,
  validateCollisions,
  validateCountOrPercent,
  validateCounts,
  validateNonNegative,
  validateSelectedTemplate,
} from '../core/podtemplate.ts';

const words = { emptySelector: 'invalid for deployment', owner: 'ReplicaSet' };
const counts = ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'];

/** The rules of Deployments (`apis/apps/v1/defaults.go`, `apis/apps/validation`). */
export const deploymentStrategy = genericStrategy<Deployment>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: (deployment, old) =>
    isSpecChanged(deployment, old) ||
    // The annotations go down to the ReplicaSets.
    !jsonEqual(deployment.metadata.annotations ?? {}, old.metadata.annotations ?? {}),
  disabled: disabledPodFeatures('spec.template'),
  setDefaults(deployment) {
    addEmptyParts(deployment);
    const { spec } = deployment;
    spec.replicas ??= 1;
    const strategy = (spec.strategy ??= {});
    if ((strategy.type ?? '') === '') strategy.type = 'RollingUpdate';
    if (strategy.type === 'RollingUpdate') {
      const rolling = (strategy.rollingUpdate ??= {});
      rolling.maxUnavailable ??= '25%';
      rolling.maxSurge ??= '25%';
    }
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    setTemplateDefaults(spec.template);
  },
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec),
  immutable: ['spec.selector'],
  statusResets: [['metadata', 'labels']],
  prepareStatus({ metadata }, old) {
    if (old.metadata.labels === undefined) delete metadata.labels;
    else metadata.labels = old.metadata.labels;
  },
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }, old) => [
    ...validateCounts(
      status,
      ['observedGeneration', ...counts],
      ['updatedReplicas', 'readyReplicas', 'availableReplicas'],
    ),
    ...validateAvailable(status),
    ...validateCollisions(status.collisionCount, old.status.collisionCount),
  ],
});

function validateSpec(spec: Deployment['spec'], old?: Deployment['spec']): FieldError[] {
  const { minReadySeconds = 0, progressDeadlineSeconds } = spec;
  const errors = [
    ...validateNonNegative(spec.replicas, 'spec.replicas'),
    ...validateSelectedTemplate(spec.selector, spec.template, words, old?.template),
    ...validateStrategy(spec.strategy ?? {}, 'spec.strategy'),
    ...validateNonNegative(minReadySeconds, 'spec.minReadySeconds'),
    ...validateNonNegative(spec.revisionHistoryLimit, 'spec.revisionHistoryLimit'),
    ...validateNonNegative(progressDeadlineSeconds, 'spec.progressDeadlineSeconds'),
  ];
  if (progressDeadlineSeconds !== undefined && progressDeadlineSeconds <= minReadySeconds) {
    const detail = 'must be greater than minReadySeconds';
    errors.push(invalid('spec.progressDeadlineSeconds', progressDeadlineSeconds, detail));
  }
  return errors;
}

function validateStrategy(strategy: NonNullable<Deployment['spec']['strategy']>, path: string): FieldError[] {
  const { type = '', rollingUpdate } = strategy;
  const rollingPath = `${path}.rollingUpdate`;
  switch (type) {
    case 'Recreate': {
      const detail = "may not be specified when strategy `type` is 'Recreate'";
      return rollingUpdate === undefined ? [] : [forbiddenField(rollingPath, detail)];
    }
    case 'RollingUpdate':
      return rollingUpdate === undefined
        ? [required(rollingPath, 'this should be defaulted and never be nil')]
        : validateRollingUpdate(rollingUpdate, rollingPath);
    default: {
      const shown = {
        Type: type,
        RollingUpdate: rollingUpdate === undefined ? null : goRollingUpdate(rollingUpdate),
      };
      return [notSupported(path, shown, ['Recreate', 'RollingUpdate'])];
    }
  }
}

/** As Go prints the internal type. */
function goRollingUpdate({
  maxUnavailable = 0,
  maxSurge = 0,
}: RollingUpdateDeployment): Record<string, unknown> {
  return { MaxUnavailable: maxUnavailable, MaxSurge: maxSurge };
}

function validateRollingUpdate(
  { maxUnavailable, maxSurge }: RollingUpdateDeployment,
  path: string,
): FieldError[] {
  const unavailablePath = `${path}.maxUnavailable`;
  const errors = [
    ...validateCountOrPercent(maxUnavailable, unavailablePath),
    ...validateCountOrPercent(maxSurge, `${path}.maxSurge`),
  ];
  if (isZeroCount(maxUnavailable) && isZeroCount(maxSurge)) {
    errors.push(invalid(unavailablePath, maxUnavailable, 'may not be 0 when `maxSurge` is 0'));
  }
  return [...errors, ...validateAtMost100Percent(maxUnavailable, unavailablePath)];
}
