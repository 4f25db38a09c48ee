import type {
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
} from '../../../objects/types/flowcontrol.generated.ts';

/** The group of both kinds. */
export const flowcontrolGroup = 'flowcontrol.apiserver.k8s.io';

/** Whether kube-apiserver may restore the spec of an object that it created. */
export const autoUpdateAnnotation = 'apf.kubernetes.io/autoupdate-spec';

/** The mandatory objects (apiserver `apis/flowcontrol/bootstrap`): their specs are fixed. */
export const mandatoryPriorityLevels: readonly PriorityLevelConfiguration[] = [
  level('catch-all', {
    type: 'Limited',
    limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } },
  }),
  level('exempt', { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } }),
];

/** The suggested objects of a new cluster. */
export const suggestedPriorityLevels: readonly PriorityLevelConfiguration[] = [
  queued('system', { shares: 30, lendable: 33, queues: 64, hand: 6 }),
  queued('node-high', { shares: 40, lendable: 25, queues: 64, hand: 6 }),
  queued('leader-election', { shares: 10, lendable: 0, queues: 16, hand: 4 }),
  queued('workload-high', { shares: 40, lendable: 50, queues: 128, hand: 6 }),
  queued('workload-low', { shares: 100, lendable: 90, queues: 128, hand: 6 }),
  queued('global-default', { shares: 20, lendable: 50, queues: 128, hand: 6 }),
];

function level(name: string, spec: PriorityLevelConfigurationSpec): PriorityLevelConfiguration {
  return { metadata: { name, annotations: { [autoUpdateAnnotation]: 'true' } }, spec, status: {} };
}

interface Numbers {
  readonly shares: number;
  readonly lendable: number;
  readonly queues: number;
  readonly hand: number;
}

function queued(name: string, { shares, lendable, queues, hand }: Numbers): PriorityLevelConfiguration {
  return level(name, {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: shares,
      lendablePercent: lendable,
      limitResponse: { type: 'Queue', queuing: { queues, handSize: hand, queueLengthLimit: 50 } },
    },
  });
}
