import type { TopologySpreadConstraint } from '../../../../objects/types/core.generated.ts';
import { pushAll } from '../../../../objects/lists.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '../../../validation/field-errors.ts';
import { validateLabelSelector } from '../../../validation/label-selector.ts';
import { validateMatchKeys } from './label-keys.ts';

const actions = ['DoNotSchedule', 'ScheduleAnyway'];
const nodePolicies = ['Honor', 'Ignore'];

/** The rules of topology spread constraints (`validateTopologySpreadConstraints`). */
export function validateTopologySpread(
  constraints: readonly TopologySpreadConstraint[],
  path: string,
): FieldError[] {
  return constraints.flatMap((constraint, i) => {
    const at = `${path}[${i}]`;
    const { maxSkew, topologyKey, whenUnsatisfiable, labelSelector } = constraint;
    const errors: FieldError[] = [];
    if (maxSkew <= 0) errors.push(invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero'));
    if (topologyKey === '') errors.push(required(`${at}.topologyKey`, 'can not be empty'));
    if (!actions.includes(whenUnsatisfiable)) {
      errors.push(notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, actions));
    }
    if (constraints.slice(i + 1).some((other) => isSame(other, constraint))) {
      errors.push(
        duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`),
      );
    }
    pushAll(errors, validateMinDomains(constraint, `${at}.minDomains`));
    for (const member of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[member];
      if (policy !== undefined && !nodePolicies.includes(policy)) {
        errors.push(notSupported(`${at}.${member}`, policy, nodePolicies));
      }
    }
    const { matchLabelKeys } = constraint;
    const keyed = { ...(labelSelector && { labelSelector }), ...(matchLabelKeys && { matchLabelKeys }) };
    pushAll(errors, validateMatchKeys(keyed, at));
    return [...errors, ...validateLabelSelector(labelSelector, `${at}.labelSelector`)];
  });
}

function isSame(a: TopologySpreadConstraint, b: TopologySpreadConstraint): boolean {
  return a.topologyKey === b.topologyKey && a.whenUnsatisfiable === b.whenUnsatisfiable;
}

function validateMinDomains(
  { minDomains, whenUnsatisfiable }: TopologySpreadConstraint,
  path: string,
): FieldError[] {
  if (minDomains === undefined) return [];
  const errors = minDomains > 0 ? [] : [invalid(path, minDomains, 'must be greater than zero')];
  if (whenUnsatisfiable !== 'DoNotSchedule') {
    const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`;
    errors.push(invalid(path, minDomains, detail));
  }
  return errors;
}
