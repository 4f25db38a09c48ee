import type { StatefulSet } from '../../objects/types/apps.generated.ts';
import type { PersistentVolumeClaim, PodTemplateSpec } from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import {
  isEmptySelector,
  labelSelectorMatches,
  validateLabelSelector,
} from '../validation/label-selector.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';
import { validatePodTemplate } from '../core/pod/validation.ts';
import { workloadUpdateWarnings, workloadWarnings } from '../core/pod/warnings.ts';
import {
  isZeroCount,
  unselected,
  validateAtMost100Percent,
  validateAvailable,
  validateCollisions,
  validateCountOrPercent,
  validateCounts,
  validateNonNegative,
} from '../core/podtemplate.ts';

const retentions = ['Retain', 'Delete'];
const limited = ['readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'];

/** The rules of StatefulSets (`apis/apps/v1/defaults.go`, `apis/apps/validation` ValidateStatefulSet). */
export const statefulSetStrategy = genericStrategy<StatefulSet>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  disabled: disabledPodFeatures('spec.template'),
  setDefaults(statefulSet) {
    addEmptyParts(statefulSet);
    const { spec } = statefulSet;
    if ((spec.podManagementPolicy ?? '') === '') spec.podManagementPolicy = 'OrderedReady';
    const strategy = (spec.updateStrategy ??= {});
    if ((strategy.type ?? '') === '') {
      strategy.type = 'RollingUpdate';
      strategy.rollingUpdate ??= {};
    }
    if (strategy.type === 'RollingUpdate' && strategy.rollingUpdate !== undefined) {
      strategy.rollingUpdate.partition ??= 0;
      strategy.rollingUpdate.maxUnavailable ??= 1;
    }
    const retention = (spec.persistentVolumeClaimRetentionPolicy ??= {});
    retention.whenDeleted ??= 'Retain';
    retention.whenScaled ??= 'Retain';
    spec.replicas ??= 1;
    spec.revisionHistoryLimit ??= 10;
    setTemplateDefaults(spec.template);
    for (const claim of spec.volumeClaimTemplates ?? []) {
      claim.apiVersion = 'v1';
      claim.kind = 'PersistentVolumeClaim';
      claim.spec.volumeMode ??= 'Filesystem';
      claim.status.phase ??= 'Pending';
    }
  },
  validateCreate: ({ spec }) => validateSpec(spec),
  validateUpdate: ({ spec }, old) => [
    ...validateSpec(spec, old.spec),
    ...validateImmutableField(spec.selector, old.spec.selector, 'spec.selector'),
    ...validateImmutableField(
      goClaims(spec.volumeClaimTemplates),
      goClaims(old.spec.volumeClaimTemplates),
      'spec.volumeClaimTemplates',
    ),
    ...validateImmutableField(spec.serviceName ?? '', old.spec.serviceName ?? '', 'spec.serviceName'),
    ...validateImmutableField(
      spec.podManagementPolicy,
      old.spec.podManagementPolicy,
      'spec.podManagementPolicy',
    ),
  ],
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }, old) => [
    ...validateCounts(status, ['replicas', ...limited, 'observedGeneration', 'collisionCount'], limited),
    ...validateAvailable(status, 'status.readyReplicas'),
    ...validateCollisions(status.collisionCount, old.status.collisionCount),
  ],
});

/** As Go prints the internal type. */
function goClaims(claims: readonly PersistentVolumeClaim[] = []): object[] | undefined {
  if (claims.length === 0) return undefined;
  return claims.map(({ metadata, spec, status }) => ({
    ...metadata,
    Spec: {
      AccessModes: spec.accessModes ?? null,
      Selector: spec.selector ?? null,
      Resources: { Limits: spec.resources?.limits ?? null, Requests: spec.resources?.requests ?? null },
      VolumeName: spec.volumeName ?? '',
      StorageClassName: spec.storageClassName ?? null,
      VolumeMode: spec.volumeMode ?? null,
      DataSource: goReference(spec.dataSource),
      DataSourceRef: spec.dataSourceRef
        ? { ...goReference(spec.dataSourceRef), Namespace: spec.dataSourceRef.namespace ?? null }
        : null,
      VolumeAttributesClassName: spec.volumeAttributesClassName ?? null,
    },
    Status: {
      Phase: status.phase ?? '',
      AccessModes: status.accessModes ?? null,
      Capacity: status.capacity ?? null,
      Conditions: status.conditions ?? null,
      AllocatedResources: status.allocatedResources ?? null,
      AllocatedResourceStatuses: status.allocatedResourceStatuses ?? null,
      CurrentVolumeAttributesClassName: status.currentVolumeAttributesClassName ?? null,
      ModifyVolumeStatus: status.modifyVolumeStatus ?? null,
      HealthStatus: null,
    },
  }));
}

function goReference(reference: PersistentVolumeClaim['spec']['dataSource']): object | null {
  if (reference === undefined) return null;
  const { apiGroup = null, kind, name } = reference;
  return { APIGroup: apiGroup, Kind: kind, Name: name };
}

function validateSpec(spec: StatefulSet['spec'], old?: StatefulSet['spec']): FieldError[] {
  const { podManagementPolicy = '', persistentVolumeClaimRetentionPolicy: retention = {} } = spec;
  const errors: FieldError[] = [];
  if (podManagementPolicy === '') errors.push(required('spec.podManagementPolicy'));
  else if (podManagementPolicy !== 'OrderedReady' && podManagementPolicy !== 'Parallel') {
    errors.push(
      invalid('spec.podManagementPolicy', podManagementPolicy, "must be 'OrderedReady' or 'Parallel'"),
    );
  }
  pushAll(errors, validateStrategy(spec.updateStrategy ?? {}));
  for (const member of ['whenDeleted', 'whenScaled'] as const) {
    const value = retention[member] ?? '';
    if (retentions.includes(value)) continue;
    errors.push(notSupported(`spec.persistentVolumeClaimRetentionPolicy.${member}`, value, retentions));
  }
  pushAll(errors, validateNonNegative(spec.replicas, 'spec.replicas'));
  pushAll(errors, validateNonNegative(spec.minReadySeconds, 'spec.minReadySeconds'));
  pushAll(errors, validateNonNegative(spec.ordinals?.start, 'spec.ordinals.start'));
  return [...errors, ...validateTemplate(spec, old?.template)];
}

function validateStrategy({
  type = '',
  rollingUpdate,
}: NonNullable<StatefulSet['spec']['updateStrategy']>): FieldError[] {
  const path = 'spec.updateStrategy';
  const rollingPath = `${path}.rollingUpdate`;
  switch (type) {
    case '':
      return [required(path)];
    case 'OnDelete': {
      const detail = "only allowed for updateStrategy 'RollingUpdate'";
      return rollingUpdate === undefined ? [] : [invalid(rollingPath, rollingUpdate, detail)];
    }
    case 'RollingUpdate':
      return [
        ...validateNonNegative(rollingUpdate?.partition, `${rollingPath}.partition`),
        ...validateMaxUnavailable(rollingUpdate?.maxUnavailable, `${rollingPath}.maxUnavailable`),
      ];
    default:
      return [
        invalid(
          path,
          { Type: type, RollingUpdate: rollingUpdate ?? null },
          "must be 'RollingUpdate' or 'OnDelete'",
        ),
      ];
  }
}

function validateMaxUnavailable(value: number | string | undefined, path: string): FieldError[] {
  if (value === undefined) return [];
  return [
    ...validateCountOrPercent(value, path),
    ...(isZeroCount(value) ? [invalid(path, value, 'cannot be 0')] : []),
    ...validateAtMost100Percent(value, path),
  ];
}

/** The volumes of claims are not in the template: mounts of them are accepted. */
function validateTemplate(
  { selector, template, volumeClaimTemplates = [] }: StatefulSet['spec'],
  old: PodTemplateSpec | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  const labels = template.metadata?.labels;
  if (!selector) errors.push(required('spec.selector'));
  else {
    pushAll(errors, validateLabelSelector(selector, 'spec.selector'));
    if (isEmptySelector(selector)) {
      errors.push(invalid('spec.selector', selector, 'empty selector is invalid for statefulset'));
    }
    const selected = labelSelectorMatches(selector, labels);
    if (selected === undefined) errors.push(invalid('spec.selector', selector, ''));
    else if (!selected) errors.push(unselected(labels));
  }
  const claims = volumeClaimTemplates.map(({ metadata }) => ({ name: metadata.name ?? '', emptyDir: {} }));
  const volumes = [...(template.spec?.volumes ?? []), ...claims];
  const whole = { ...template, spec: { ...template.spec, volumes } };
  pushAll(errors, validatePodTemplate(whole, 'spec.template', old));
  const { restartPolicy = '', activeDeadlineSeconds } = template.spec ?? {};
  if (restartPolicy !== 'Always') {
    errors.push(notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    const detail = 'activeDeadlineSeconds in StatefulSet is not Supported';
    errors.push(forbiddenField('spec.template.spec.activeDeadlineSeconds', detail));
  }
  return errors;
}
