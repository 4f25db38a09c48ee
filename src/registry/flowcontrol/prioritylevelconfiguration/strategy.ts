import type { PriorityLevelConfiguration } from '../../../objects/types/flowcontrol.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { genericStrategy, specChanges, takeSpec, fillParts } from '../../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../../objects/names.ts';
import type { Strategy, SubresourceStrategy } from '../../generic/strategy.ts';
import { validateFlowConditions, validatePriorityLevel, type FlowCondition } from './validation.ts';

/** The rules of PriorityLevelConfigurations; they have no effect on requests. */
export const priorityLevelStrategy: Strategy<PriorityLevelConfiguration> = {
  ...genericStrategy<PriorityLevelConfiguration>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    hasStatus: true,
    generationChanges: specChanges,
    setDefaults,
    validateCreate: validatePriorityLevel,
    repeatsCreate: 'instead',
  }),
  status: flowStatus(),
};

/** `pkg/apis/flowcontrol/v1/defaults.go`. */
function setDefaults(level: PriorityLevelConfiguration): void {
  fillParts(level);
  const { limited, exempt } = level.spec;
  if (exempt !== undefined) {
    exempt.nominalConcurrencyShares ??= 0;
    exempt.lendablePercent ??= 0;
  }
  if (limited === undefined) return;
  limited.nominalConcurrencyShares ??= 30;
  limited.lendablePercent ??= 0;
  const { queuing } = limited.limitResponse ?? {};
  if (queuing === undefined) return;
  queuing.handSize ||= 8;
  queuing.queues ||= 64;
  queuing.queueLengthLimit ||= 50;
}

/** `/status` of both kinds: only the status is taken from the client, without further checks. */
export function flowStatus<
  T extends KubeObject & { status?: { conditions?: FlowCondition[] } },
>(): SubresourceStrategy<T> {
  return {
    resetFields: [['metadata'], ['spec']],
    prepareForUpdate(object, old) {
      takeSpec(object, old);
      const { managedFields, resourceVersion } = object.metadata;
      object.metadata = { ...old.metadata };
      if (managedFields !== undefined) object.metadata.managedFields = managedFields;
      if (resourceVersion !== undefined) object.metadata.resourceVersion = resourceVersion;
    },
    validateUpdate: ({ status }) => validateFlowConditions(status?.conditions),
  };
}
