import type {
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  FlowSchemaCondition,
  PriorityLevelConfigurationCondition,
  ExemptPriorityLevelConfiguration,
  LimitResponse,
  LimitedPriorityLevelConfiguration,
  QueuingConfiguration,
} from '../../objects/types/flowcontrol.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { genericStrategy, isSpecChanged, restoreSpec, addEmptyParts } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type { Strategy, SubresourceStrategy } from '../generic/strategy.ts';

/**
 * - The priority levels that a server has from the start (apiserver `apis/flowcontrol/bootstrap`).
 * - The rules of PriorityLevelConfigurations (`pkg/apis/flowcontrol/validation`).
 */

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

/** A condition of a PriorityLevelConfiguration or a FlowSchema. */
export type FlowCondition = FlowSchemaCondition | PriorityLevelConfigurationCondition;

const exemptName = 'exempt';
const types = ['Exempt', 'Limited'];
const responses = ['Queue', 'Reject'];
/** The annotation by which v1beta3 has zero shares: no other version has it. */
const preserveZero = 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares';
const maxQueues = 10_000_000;
/** The bits of a hash for the choice of queues (`shufflesharding.MaxHashBits`). */
const maxHashBits = 60;
const percent = 'must be between 0 and 100, inclusive';
const notNegative = 'must be a non-negative integer';
const positive = 'must be positive';

function validatePriorityLevel({ metadata, spec, status }: PriorityLevelConfiguration): FieldError[] {
  const { name = '', annotations = {} } = metadata;
  const errors: FieldError[] = [];
  if (Object.hasOwn(annotations, preserveZero)) {
    errors.push(forbiddenField('metadata.annotations', `annotation '${preserveZero}' is forbidden`));
  }
  return [
    ...errors,
    ...validateSpec(spec, name),
    ...validateMandatory(spec, name),
    ...validateFlowConditions(status.conditions),
  ];
}

/** Conditions of both kinds: unique, non-empty types. */
export function validateFlowConditions(conditions: readonly FlowCondition[] = []): FieldError[] {
  const seen = new Set<string>();
  return conditions.flatMap(({ type = '' }, i) => {
    const path = `status.conditions[${i}].type`;
    const errors = seen.has(type) ? [duplicate(path, type)] : [];
    seen.add(type);
    if (type === '') errors.push(required(path, 'must not be empty'));
    return errors;
  });
}

function validateSpec({ type, limited, exempt }: PriorityLevelConfigurationSpec, name: string): FieldError[] {
  const errors: FieldError[] = [];
  if ((name === exemptName) !== (type === 'Exempt')) {
    errors.push(invalid('spec.type', type, "must be 'Exempt' if and only if `name` is 'exempt'"));
  }
  if (type === 'Exempt') {
    if (limited !== undefined) {
      errors.push(declarative(forbiddenField('spec.limited', '')));
    }
    return exempt === undefined ? errors : [...errors, ...validateExempt(exempt)];
  }
  if (type === '') return [...errors, declarative(required('spec.type'))];
  if (type !== 'Limited') return [...errors, notSupported('spec.type', type, types)];
  if (exempt !== undefined) {
    errors.push(declarative(forbiddenField('spec.exempt', '')));
  }
  return limited === undefined
    ? [...errors, declarative(required('spec.limited'))]
    : [...errors, ...validateLimited(limited)];
}

function validateExempt({
  nominalConcurrencyShares: shares = 0,
  lendablePercent = 0,
}: ExemptPriorityLevelConfiguration) {
  const errors = shares < 0 ? [invalid('spec.exempt.nominalConcurrencyShares', shares, notNegative)] : [];
  if (lendablePercent < 0 || lendablePercent > 100) {
    errors.push(invalid('spec.exempt.lendablePercent', lendablePercent, percent));
  }
  return errors;
}

function validateLimited(limited: LimitedPriorityLevelConfiguration): FieldError[] {
  const { limitResponse, lendablePercent = 0, borrowingLimitPercent: borrowing = 0 } = limited;
  const shares = limited.nominalConcurrencyShares ?? 0;
  const errors = shares < 0 ? [invalid('spec.limited.nominalConcurrencyShares', shares, notNegative)] : [];
  pushAll(errors, validateResponse(limitResponse));
  if (lendablePercent < 0 || lendablePercent > 100) {
    errors.push(invalid('spec.limited.lendablePercent', lendablePercent, percent));
  }
  if (borrowing < 0) {
    errors.push(invalid('spec.limited.borrowingLimitPercent', borrowing, `if specified, ${notNegative}`));
  }
  return errors;
}

function validateResponse({ type, queuing }: LimitResponse): FieldError[] {
  const path = 'spec.limited.limitResponse';
  if (type === 'Reject') {
    if (queuing === undefined) return [];
    return [declarative(forbiddenField(`${path}.queuing`, ''))];
  }
  if (type === '') return [declarative(required(`${path}.type`))];
  if (type !== 'Queue') return [notSupported(`${path}.type`, type, responses)];
  return queuing === undefined
    ? [declarative(required(`${path}.queuing`))]
    : validateQueuing(queuing, `${path}.queuing`);
}

function validateQueuing(
  { queues = 0, handSize = 0, queueLengthLimit = 0 }: QueuingConfiguration,
  path: string,
): FieldError[] {
  const errors =
    queueLengthLimit <= 0 ? [invalid(`${path}.queueLengthLimit`, queueLengthLimit, positive)] : [];
  if (queues <= 0) errors.push(invalid(`${path}.queues`, queues, positive));
  else if (queues > maxQueues) {
    errors.push(invalid(`${path}.queues`, queues, `must not be greater than ${maxQueues}`));
  }
  const why = handFault(handSize, queues);
  return why === undefined ? errors : [...errors, invalid(`${path}.handSize`, handSize, why)];
}

function handFault(handSize: number, queues: number): string | undefined {
  if (handSize <= 0) return positive;
  if (handSize > queues) return `should not be greater than queues (${queues})`;
  if (Math.ceil(Math.log2(queues) * handSize) <= maxHashBits) return undefined;
  return `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${maxHashBits}`;
}

function validateMandatory(spec: PriorityLevelConfigurationSpec, name: string): FieldError[] {
  const fixed = mandatoryPriorityLevels.find((each) => each.metadata.name === name)?.spec;
  if (fixed === undefined) return [];
  const isFree = name === exemptName && fixed.exempt !== undefined;
  if (jsonEqual(isFree ? { ...spec, exempt: fixed.exempt } : spec, fixed)) return [];
  const except = isFree ? " except the 'spec.exempt' field" : '';
  return [invalid('spec', printed(spec), `spec of '${name}'${except} must equal the fixed value`)];
}

/** The spec as kube-apiserver prints it, with Go's field names. */
function printed({ type, limited, exempt }: PriorityLevelConfigurationSpec): object {
  const { type: response = '', queuing } = limited?.limitResponse ?? {};
  return {
    Type: type,
    Limited:
      limited === undefined
        ? null
        : {
            NominalConcurrencyShares: limited.nominalConcurrencyShares ?? 0,
            LimitResponse: { Type: response, Queuing: printedQueuing(queuing) },
            LendablePercent: limited.lendablePercent ?? null,
            BorrowingLimitPercent: limited.borrowingLimitPercent ?? null,
          },
    Exempt:
      exempt === undefined
        ? null
        : {
            NominalConcurrencyShares: exempt.nominalConcurrencyShares ?? null,
            LendablePercent: exempt.lendablePercent ?? null,
          },
  };
}

function printedQueuing(queuing: QueuingConfiguration | undefined): object | null {
  if (queuing === undefined) return null;
  const { queues = 0, handSize = 0, queueLengthLimit = 0 } = queuing;
  return { Queues: queues, HandSize: handSize, QueueLengthLimit: queueLengthLimit };
}

/** The rules of PriorityLevelConfigurations; they have no effect on requests. */
export const priorityLevelStrategy: Strategy<PriorityLevelConfiguration> = {
  ...genericStrategy<PriorityLevelConfiguration>({
    namespaced: false,
    nameRule: nameIsDNSSubdomain,
    hasStatus: true,
    generationChanges: isSpecChanged,
    setDefaults,
    validateCreate: validatePriorityLevel,
    repeatsCreate: 'instead',
  }),
  status: flowStatus(),
};

/** `pkg/apis/flowcontrol/v1/defaults.go`. */
function setDefaults(level: PriorityLevelConfiguration): void {
  addEmptyParts(level);
  const { limited, exempt } = level.spec;
  if (exempt !== undefined) {
    exempt.nominalConcurrencyShares ??= 0;
    exempt.lendablePercent ??= 0;
  }
  if (limited === undefined) return;
  limited.nominalConcurrencyShares ??= 30;
  limited.lendablePercent ??= 0;
  const { queuing } = limited.limitResponse;
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
      restoreSpec(object, old);
      const { managedFields, resourceVersion } = object.metadata;
      object.metadata = { ...old.metadata };
      if (managedFields !== undefined) object.metadata.managedFields = managedFields;
      if (resourceVersion !== undefined) object.metadata.resourceVersion = resourceVersion;
    },
    validateUpdate: ({ status }) => validateFlowConditions(status?.conditions),
  };
}
