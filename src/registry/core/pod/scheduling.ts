import type { LabelSelector } from '../../../objects/meta.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  required,
  duplicate,
  notSupported,
} from '../../validation/field-errors.ts';
import {
  isQualifiedName,
  isDNS1123Label,
  isDNS1123Subdomain,
  isValidLabelValue,
} from '../../../objects/names.ts';
import { pushAll } from '../../../objects/lists.ts';
import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinityTerm,
  TopologySpreadConstraint,
  PodSpec,
  Toleration,
} from '../../../objects/types/core.generated.ts';
import { validateLabelSelector } from '../../validation/label-selector.ts';
import { taintEffects } from '../node.ts';

/** A selector of Pods with values from the labels of the Pod itself. */
export interface KeyedSelector {
  labelSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
}

/** The rules of such keys (`ValidateMatchLabelKeysAndMismatchLabelKeys`). */
function validateMatchKeys(
  { labelSelector, matchLabelKeys: keys = [], mismatchLabelKeys: others = [] }: KeyedSelector,
  path: string,
): FieldError[] {
  const errors = [
    ...validateKeys(keys, labelSelector, `${path}.matchLabelKeys`),
    ...validateKeys(others, labelSelector, `${path}.mismatchLabelKeys`),
  ];
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    if (keys.includes(key) && seen.has(key)) {
      const detail = 'exists in both matchLabelKeys and labelSelector';
      errors.push(invalid(`${path}[${keys.lastIndexOf(key)}]`, key, detail));
    }
    seen.add(key);
  }
  keys.forEach((key, i) => {
    if (!others.includes(key)) return;
    const detail = 'exists in both matchLabelKeys and mismatchLabelKeys';
    errors.push(invalid(`${path}.matchLabelKeys[${i}]`, key, detail));
  });
  return errors;
}

function validateKeys(
  keys: readonly string[],
  selector: LabelSelector | undefined,
  path: string,
): FieldError[] {
  if (keys.length === 0) return [];
  if (selector === undefined) {
    return [forbiddenField(path, 'must not be specified when labelSelector is not set')];
  }
  return keys.flatMap((key, i) =>
    isQualifiedName(key).map((message) => invalid(`${path}[${i}]`, key, message)),
  );
}

/**
 * Adds the requirements for the keys to the selector of a new Pod (`pkg/registry/core/pod/strategy.go`
 * applyLabelKeysToLabelSelector). Keys without a label of the Pod are left out.
 */
export function applyMatchKeys(
  { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: KeyedSelector,
  labels: Readonly<Record<string, string>> = {},
): void {
  if (labelSelector === undefined) return;
  for (const [operator, keys] of [
    ['In', matchLabelKeys],
    ['NotIn', mismatchLabelKeys],
  ] as const) {
    for (const key of keys) {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      if (value === undefined) continue;
      (labelSelector.matchExpressions ??= []).push({ key, operator, values: [value] });
    }
  }
}

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

/** Terms that a node must fulfil one of (`ValidateNodeSelector`). */
export function validateNodeSelector(
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

const defaultSeconds = 300;
const toleratedByDefault = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** Admission DefaultTolerationSeconds: Pods stay five minutes on a failed node, unless they have other tolerations. */
export function addDefaultTolerations(spec: PodSpec): void {
  const tolerations = (spec.tolerations ??= []);
  const given = [...tolerations];
  for (const key of toleratedByDefault) {
    if (given.some((toleration) => toleratesNoExecute(toleration, key))) continue;
    tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: defaultSeconds });
  }
}

function toleratesNoExecute({ key = '', effect = '' }: Toleration, taint: string): boolean {
  return (key === taint || key === '') && (effect === 'NoExecute' || effect === '');
}

/** The rules of tolerations (`ValidateTolerations`). */
export function validateTolerations(tolerations: readonly Toleration[], path: string): FieldError[] {
  return tolerations.flatMap(({ key = '', operator = '', value = '', effect = '', tolerationSeconds }, i) => {
    const at = `${path}[${i}]`;
    const errors: FieldError[] = [];
    if (key !== '')
      for (const message of isQualifiedName(key)) errors.push(invalid(`${at}.key`, key, message));
    if (key === '' && operator !== 'Exists') {
      const detail =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.push(invalid(`${at}.operator`, operator, detail));
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      errors.push(invalid(`${at}.effect`, effect, detail));
    }
    pushAll(errors, validateTolerationOperator(operator, value, `${at}.operator`));
    if (effect !== '' && !taintEffects.includes(effect)) {
      errors.push(notSupported(`${at}.effect`, effect, taintEffects));
    }
    return errors;
  });
}

function validateTolerationOperator(operator: string, value: string, path: string): FieldError[] {
  switch (operator) {
    case '':
    case 'Equal': {
      const faults = isValidLabelValue(value);
      return faults.length === 0 ? [] : [invalid(path, value, faults.join(';'))];
    }
    case 'Exists':
      return value === '' ? [] : [invalid(path, value, "value must be empty when `operator` is 'Exists'")];
    default:
      return [notSupported(path, operator, ['Equal', 'Exists'])];
  }
}
