import type { ReplicationController } from '../../objects/types/core.generated.ts';
import { containsLabels } from '../../objects/selectors/labels.ts';
import { declarative, type FieldError, required } from '../validation/field-errors.ts';
import { genericStrategy, isSpecChanged, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from './pod/defaults.ts';

import { workloadUpdateWarnings, workloadWarnings } from './pod/warnings.ts';
import {
  unselected,
  validateAvailable,
  validateCounts,
  validateNonNegative,
  validateTemplate,
} from './podtemplate.ts';

const words = { emptySelector: 'invalid', owner: 'ReplicationController' };
const limited = ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'];

/** The rules of ReplicationControllers (`SetDefaults_ReplicationController`, `ValidateReplicationController`). */
export const replicationControllerStrategy = genericStrategy<ReplicationController>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  hasStatus: true,
  generationChanges: isSpecChanged,
  // for clients older than the garbage collector
  defaultGarbageCollectionPolicy: 'OrphanDependents',
  repeatsCreate: 'before',
  disabled: disabledPodFeatures('spec.template'),
  setDefaults(controller) {
    addEmptyParts(controller);
    const { spec, metadata } = controller;
    const labels = spec.template?.metadata?.labels;
    if (labels !== undefined) {
      if (Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
      if (Object.keys(metadata.labels ?? {}).length === 0) metadata.labels = { ...labels };
    }
    spec.replicas ??= 1;
    if (spec.template !== undefined) setTemplateDefaults(spec.template);
  },
  validateCreate: (controller, _, old) => validateSpec(controller, old),
  validateUpdate: validateSpec,
  warningsOnCreate: workloadWarnings,
  warningsOnUpdate: workloadUpdateWarnings,
  validateStatus: ({ status }) => [
    ...validateCounts(status, ['replicas', ...limited, 'observedGeneration'], limited),
    ...validateAvailable(status),
  ],
  fields: ({ status = {} }: Partial<Pick<ReplicationController, 'status'>>) => ({
    'status.replicas': String(status.replicas ?? 0),
  }),
});

function validateSpec({ spec }: ReplicationController, old?: ReplicationController): FieldError[] {
  const { selector = {}, template } = spec;
  const labels = template?.metadata?.labels;
  return [
    ...validateNonNegative(spec.minReadySeconds, 'spec.minReadySeconds').map(declarative),
    ...(Object.keys(selector).length === 0 ? [required('spec.selector')] : []),
    ...validateNonNegative(spec.replicas, 'spec.replicas').map(declarative),
    ...(template === undefined
      ? [required('spec.template')]
      : [
          ...(containsLabels(labels, selector) ? [] : [unselected(labels)]),
          ...validateTemplate(template, words, old?.spec.template),
        ]),
  ];
}
