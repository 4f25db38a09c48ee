/** The conditions of a request: which endpoints may set them, and their rules (`apis/certificates/validation`). */
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from '../../../objects/types/certificates.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../../validation/field-errors.ts';

const path = 'status.conditions';
const decisions = ['Approved', 'Denied'];
const onlyTrue = [...decisions, 'Failed'];
const statuses = ['False', 'True', 'Unknown'];
const exclusive = 'Approved and Denied conditions are mutually exclusive';

function conditionsOf({ status }: CertificateSigningRequest): CertificateSigningRequestCondition[] {
  return status.conditions ?? [];
}

function ofType(
  conditions: readonly CertificateSigningRequestCondition[],
  type: string,
): CertificateSigningRequestCondition[] {
  return conditions.filter((condition) => condition.type === type);
}

function hasDuplicates(conditions: readonly CertificateSigningRequestCondition[]): boolean {
  return new Set(conditions.map(({ type }) => type)).size < conditions.length;
}

/** Errors of the stored object are not reported again. */
export function validateConditions(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest | undefined,
): FieldError[] {
  const before = old === undefined ? [] : conditionsOf(old);
  const wasUndecided = !decisions.every((type) => ofType(before, type).length > 0);
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  conditionsOf(request).forEach(({ type, status }, i) => {
    const at = `${path}[${i}]`;
    if (type === '' && ofType(before, '').length === 0) errors.push(required(`${at}.type`));
    const allowed = onlyTrue.includes(type) ? ['True'] : statuses;
    if (status === '') errors.push(required(`${at}.status`));
    else if (!allowed.includes(status)) errors.push(notSupported(`${at}.status`, status, allowed));
    const opposite = decisions.includes(type) ? decisions.find((other) => other !== type) : undefined;
    if (wasUndecided && opposite !== undefined && seen.has(opposite)) {
      errors.push(invalid(`${at}.type`, type, exclusive));
    }
    if (seen.has(type) && !hasDuplicates(before)) errors.push(duplicate(`${at}.type`, type));
    seen.add(type);
  });
  return errors;
}

/** @param mayDecide the write is one of `/approval`. */
export function validateConditionChanges(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  mayDecide: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const pair = (type: string) =>
    [ofType(conditionsOf(request), type), ofType(conditionsOf(old), type)] as const;
  for (const type of onlyTrue) {
    const [now, before] = pair(type);
    if (now.length < before.length) {
      errors.push(forbiddenField(path, `updates may not remove a condition of type ${JSON.stringify(type)}`));
    }
  }
  if (mayDecide) return errors;
  for (const type of decisions) {
    const [now, before] = pair(type);
    const quoted = JSON.stringify(type);
    if (now.length > before.length) {
      errors.push(forbiddenField(path, `updates may not add a condition of type ${quoted}`));
    } else if (now.length === before.length && !jsonEqual(now, before)) {
      errors.push(forbiddenField(path, `updates may not modify a condition of type ${quoted}`));
    }
  }
  return errors;
}

/** Adds missing times to conditions; a condition that existed keeps its transition time. */
export function fillConditionTimes(
  request: CertificateSigningRequest,
  old: CertificateSigningRequest,
  now: string,
): void {
  for (const condition of conditionsOf(request)) {
    condition.lastUpdateTime ??= now;
    const same = ofType(conditionsOf(old), condition.type).find(
      ({ status, lastTransitionTime }) => status === condition.status && lastTransitionTime !== undefined,
    );
    condition.lastTransitionTime ??= same?.lastTransitionTime ?? now;
  }
}

/** `/status` does not change decisions; where their number changes, the rules report it. */
export function keepDecisions(request: CertificateSigningRequest, old: CertificateSigningRequest): void {
  const conditions = conditionsOf(request);
  for (const type of decisions) {
    const before = ofType(conditionsOf(old), type);
    const places = conditions.flatMap((condition, i) => (condition.type === type ? [i] : []));
    if (places.length !== before.length) continue;
    places.forEach((place, i) => {
      const kept = before[i];
      if (kept !== undefined) conditions[place] = kept;
    });
  }
}
