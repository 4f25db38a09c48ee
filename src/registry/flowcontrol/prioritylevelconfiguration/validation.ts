/** The rules of PriorityLevelConfigurations (`pkg/apis/flowcontrol/validation`). */
import type {
  FlowSchemaCondition,
  PriorityLevelConfigurationCondition,
  ExemptPriorityLevelConfiguration,
  LimitResponse,
  LimitedPriorityLevelConfiguration,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  QueuingConfiguration,
} from '../../../objects/types/flowcontrol.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';
import { mandatoryPriorityLevels } from './bootstrap.ts';

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

export function validatePriorityLevel({ metadata, spec, status }: PriorityLevelConfiguration): FieldError[] {
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
    errors.push(invalid('spec.type', type, "type must be 'Exempt' if and only if name is 'exempt'"));
  }
  if (type === 'Exempt') {
    if (limited !== undefined) {
      errors.push(forbiddenField('spec.limited', 'must be nil if the type is not Limited'));
    }
    return exempt === undefined ? errors : [...errors, ...validateExempt(exempt)];
  }
  if (type !== 'Limited') return [...errors, notSupported('spec.type', type, types)];
  if (exempt !== undefined) {
    errors.push(forbiddenField('spec.exempt', 'must be nil if the type is Limited'));
  }
  return limited === undefined
    ? [...errors, required('spec.limited', 'must not be empty when type is Limited')]
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
  const { limitResponse = { type: '' }, lendablePercent = 0, borrowingLimitPercent: borrowing = 0 } = limited;
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
    return [forbiddenField(`${path}.queuing`, 'must be nil if limited.limitResponse.type is not Limited')];
  }
  if (type !== 'Queue') return [notSupported(`${path}.type`, type, responses)];
  return queuing === undefined
    ? [required(`${path}.queuing`, 'must not be empty if limited.limitResponse.type is Limited')]
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
