import { pushAll } from '../../../../objects/lists.ts';
import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
} from '../../../../objects/types/core.generated.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../../validation/field-errors.ts';
import { validateLabelSelector } from '../../../validation/label-selector.ts';
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  isValidLabelValue,
} from '../../../../objects/names.ts';
import { validateMatchKeys } from './label-keys.ts';

const requiredTerms = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferredTerms = 'preferredDuringSchedulingIgnoredDuringExecution';

/** Node affinity, Pod affinity and anti-affinity (`validateAffinity`). */
export function validateAffinity(affinity: Affinity | undefined, path: string): FieldError[] {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {};
  const errors: FieldError[] = [];
  const nodeTerms = nodeAffinity?.[requiredTerms];
  if (nodeTerms !== undefined) {
    pushAll(errors, validateNodeSelector(nodeTerms, `${path}.nodeAffinity.${requiredTerms}`));
  }
  (nodeAffinity?.[preferredTerms] ?? []).forEach(({ weight, preference }, i) => {
    const at = `${path}.nodeAffinity.${preferredTerms}[${i}]`;
    // Values of preferred terms are not checked.
    pushAll(errors, validateWeight(weight, at), validateNodeTerm(preference, `${at}.preference`, false));
  });
  for (const [member, pods] of Object.entries({ podAffinity, podAntiAffinity })) {
    (pods?.[requiredTerms] ?? []).forEach((term, i) =>
      pushAll(errors, validatePodTerm(term, `${path}.${member}.${requiredTerms}[${i}]`)),
    );
    (pods?.[preferredTerms] ?? []).forEach(({ weight, podAffinityTerm }, i) => {
      const at = `${path}.${member}.${preferredTerms}[${i}]`;
      pushAll(errors, validateWeight(weight, at), validatePodTerm(podAffinityTerm, `${at}.podAffinityTerm`));
    });
  }
  return errors;
}

function validateWeight(weight: number, path: string): FieldError[] {
  return weight >= 1 && weight <= 100
    ? []
    : [invalid(`${path}.weight`, weight, 'must be in the range 1-100')];
}

function validateNodeSelector(
  { nodeSelectorTerms }: { nodeSelectorTerms?: NodeSelectorTerm[] | null },
  path: string,
): FieldError[] {
  const at = `${path}.nodeSelectorTerms`;
  const terms = nodeSelectorTerms ?? [];
  if (terms.length === 0) return [required(at, 'must have at least one node selector term')];
  return terms.flatMap((term, i) => validateNodeTerm(term, `${at}[${i}]`, true));
}

function validateNodeTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  path: string,
  checksValues: boolean,
): FieldError[] {
  return [
    ...matchExpressions.flatMap((item, i) =>
      validateExpression(item, `${path}.matchExpressions[${i}]`, checksValues),
    ),
    ...matchFields.flatMap((item, i) => validateField(item, `${path}.matchFields[${i}]`)),
  ];
}

function validateExpression(
  { key = '', operator = '', values = [] }: Partial<NodeSelectorRequirement>,
  path: string,
  checksValues: boolean,
): FieldError[] {
  const errors = validateOperator(operator, values, path);
  for (const message of isQualifiedName(key)) errors.push(invalid(`${path}.key`, key, message));
  if (!checksValues) return errors;
  values.forEach((value, i) => {
    for (const message of isValidLabelValue(value))
      errors.push(invalid(`${path}.values[${i}]`, value, message));
  });
  return errors;
}

function validateOperator(operator: string, values: readonly string[], path: string): FieldError[] {
  const at = `${path}.values`;
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values.length > 0 ? [] : [required(at, "must be specified when `operator` is 'In' or 'NotIn'")];
    case 'Exists':
    case 'DoesNotExist':
      return values.length === 0
        ? []
        : [forbiddenField(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")];
    case 'Gt':
    case 'Lt':
      return values.length === 1
        ? []
        : [required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'")];
    default:
      return [invalid(`${path}.operator`, operator, 'not a valid selector operator')];
  }
}

/** The only field of a node that can be selected is its name. */
function validateField(
  { key = '', operator = '', values = [] }: Partial<NodeSelectorRequirement>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(required(`${path}.values`, detail));
  }
  if (key !== 'metadata.name') {
    errors.push(invalid(`${path}.key`, key, 'not a valid field selector key'));
    return errors;
  }
  values.forEach((value, i) => {
    for (const message of isDNS1123Subdomain(value))
      errors.push(invalid(`${path}.values[${i}]`, value, message));
  });
  return errors;
}

function validatePodTerm(term: PodAffinityTerm, path: string): FieldError[] {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey } = term;
  const errors = [
    ...validateLabelSelector(labelSelector, `${path}.labelSelector`),
    ...validateLabelSelector(namespaceSelector, `${path}.namespaceSelector`),
  ];
  for (const name of namespaces) {
    for (const message of isDNS1123Label(name)) errors.push(invalid(`${path}.namespace`, name, message));
  }
  pushAll(errors, validateMatchKeys(term, path));
  if (topologyKey === '') errors.push(required(`${path}.topologyKey`, 'can not be empty'));
  for (const message of isQualifiedName(topologyKey)) {
    errors.push(invalid(`${path}.topologyKey`, topologyKey, message));
  }
  return errors;
}
