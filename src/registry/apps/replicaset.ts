import type { ReplicaSet, ReplicaSetSpec } from '../../objects/types/apps.generated.ts';
import type { FieldError } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from '../core/pod/defaults.ts';
import { workloadUpdateWarnings, workloadWarnings } from '../core/pod/warnings.ts';
import {
  validateAvailable,
  validateCounts,
  validateNonNegative,
  validateSelectedTemplate,
} from '../core/podtemplate.ts';

const words = { emptySelector: 'invalid for deployment', owner: 'ReplicaSet' };
const limited = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];

/** The rules of ReplicaSets (`apis/apps/validation` ValidateReplicaSet). */
export const replicaSetStrategy = genericStrategy<ReplicaSet>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  repeatsCreate: 'before',
  disabled: disabledPodFeatures('spec.template'),
  setDefaults(replicaSet) {
    addEmptyParts(replicaSet);
    replicaSet.spec.replicas ??= 1;
    setTemplateDefaults((replicaSet.spec.template ??= {}));
  },
  validateCreate: ({ spec }, _, old) => validateSpec(spec, old?.spec),
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec),
  immutable: ['spec.selector'],
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }) => [
    ...validateCounts(status, ['replicas', ...limited, 'observedGeneration'], limited),
    ...validateAvailable(status),
  ],
  fields: ({ status = {} }: Partial<Pick<ReplicaSet, 'status'>>) => ({
    'status.replicas': String(status.replicas ?? 0),
  }),
});

function validateSpec(spec: ReplicaSetSpec, old?: ReplicaSetSpec): FieldError[] {
  return [
    ...validateNonNegative(spec.replicas, 'spec.replicas'),
    ...validateNonNegative(spec.minReadySeconds, 'spec.minReadySeconds'),
    ...validateSelectedTemplate(spec.selector, spec.template, words, old?.template),
  ];
}
