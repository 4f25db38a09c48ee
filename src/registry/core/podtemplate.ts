import type { PodTemplate, PodTemplateSpec } from '../../objects/types/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { genericStrategy } from '../generic/generic.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import { setTemplateDefaults, disabledPodFeatures } from './pod/defaults.ts';
import { validatePodTemplate } from './pod/validation.ts';
import type { LabelSelector } from '../../objects/meta.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import {
  isEmptySelector,
  labelSelectorMatches,
  validateLabelSelector,
} from '../validation/label-selector.ts';

/** The rules of PodTemplates (`pkg/registry/core/podtemplate/strategy.go`). */
export const podTemplateStrategy = genericStrategy<PodTemplate>({
  namespaced: true,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  generationChanges: (object, old) => !jsonEqual(object.template ?? {}, old.template ?? {}),
  disabled: disabledPodFeatures('template'),
  setDefaults: (object) => setTemplateDefaults((object.template ??= {})),
  validateCreate: ({ template = {} }) => validatePodTemplate(template, 'template'),
  validateUpdate: ({ template = {} }, old) => validatePodTemplate(template, 'template', old.template),
});

/** `ValidateNonnegativeField`; an absent number passes. */
export function validateNonNegative(value: number | undefined, path: string): FieldError[] {
  return value !== undefined && value < 0 ? [invalid(path, value, 'must be greater than or equal to 0')] : [];
}

/** The parts of a kind's error texts about its selector and template. */
export interface TemplateWords {
  /** The text after "empty selector is ". */
  readonly emptySelector: string;
  /** `ReplicaSet` in "activeDeadlineSeconds in ReplicaSet is not Supported". */
  readonly owner: string;
}

/**
 * A selector is set, not empty and selects the labels of the template, and the template is valid
 * (`ValidateDeploymentSpec` and its like).
 */
export function validateSelectedTemplate(
  selector: LabelSelector | null | undefined,
  template: PodTemplateSpec | undefined,
  words: TemplateWords,
  old: PodTemplateSpec | undefined,
): FieldError[] {
  if (!selector) return [required('spec.selector'), ...validateTemplate(template, words, old)];
  const errors = validateLabelSelector(selector, 'spec.selector');
  if (isEmptySelector(selector)) {
    errors.push(invalid('spec.selector', selector, `empty selector is ${words.emptySelector}`));
  }
  const labels = template?.metadata?.labels;
  const selected = labelSelectorMatches(selector, labels);
  if (selected === undefined) {
    errors.push(invalid('spec.selector', selector, 'invalid label selector'));
    return errors;
  }
  if (!selected) errors.push(unselected(labels));
  return [...errors, ...validateTemplate(template, words, old)];
}

/** The labels of a template that its selector misses. */
export function unselected(labels: Record<string, string> | undefined): FieldError {
  return invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`');
}

/** A template whose Pods are always restarted. @param old the stored one, for an update. */
export function validateTemplate(
  template: PodTemplateSpec | undefined,
  words: TemplateWords,
  old: PodTemplateSpec | undefined,
): FieldError[] {
  const path = 'spec.template';
  const { restartPolicy, activeDeadlineSeconds } = template?.spec ?? {};
  const errors = validatePodTemplate(template ?? {}, path, old);
  if (restartPolicy !== 'Always') {
    errors.push(notSupported(`${path}.spec.restartPolicy`, restartPolicy ?? '', ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    const detail = `activeDeadlineSeconds in ${words.owner} is not Supported`;
    errors.push(forbiddenField(`${path}.spec.activeDeadlineSeconds`, detail));
  }
  return errors;
}

/**
 * Counts in a status: none is negative, and those of `limited` do not exceed `replicas`.
 *
 * @param counts the status, whose members are read by name.
 */
export function validateCounts(
  counts: object,
  members: readonly string[],
  limited: readonly string[] = [],
): FieldError[] {
  const count = (member: string) => {
    const value: unknown = Reflect.get(counts, member);
    return typeof value === 'number' ? value : 0;
  };
  const replicas = count('replicas');
  return [
    ...members.flatMap((member) => validateNonNegative(count(member), `status.${member}`)),
    ...limited
      .filter((member) => count(member) > replicas)
      .map((member) => invalid(`status.${member}`, count(member), 'cannot be greater than status.replicas')),
  ];
}

/**
 * `availableReplicas` does not exceed the ready ones.
 *
 * @param ready the kind's name for ready Pods in its message.
 */
export function validateAvailable(
  { readyReplicas = 0, availableReplicas = 0 }: { readyReplicas?: number; availableReplicas?: number },
  ready = 'readyReplicas',
): FieldError[] {
  if (availableReplicas <= readyReplicas) return [];
  return [invalid('status.availableReplicas', availableReplicas, `cannot be greater than ${ready}`)];
}

/** A collision count never decreases. */
export function validateCollisions(count: number | undefined, old: number | undefined): FieldError[] {
  if (old === undefined || (count !== undefined && count >= old)) return [];
  return [invalid('status.collisionCount', count ?? 0, 'cannot be decremented')];
}

/** A whole number that is not negative, or a percentage (`ValidatePositiveIntOrPercent`). */
export function validateCountOrPercent(value: number | string | undefined, path: string): FieldError[] {
  if (typeof value === 'number') return validateNonNegative(value, path);
  if (value === undefined || /^[0-9]+%$/.test(value)) return [];
  const detail =
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
  return [invalid(path, value, detail)];
}

/** `IsNotMoreThan100Percent`. */
export function validateAtMost100Percent(value: number | string | undefined, path: string): FieldError[] {
  if (typeof value !== 'string' || !/^[0-9]+%$/.test(value) || Number(value.slice(0, -1)) <= 100) return [];
  return [invalid(path, value, 'must not be greater than 100%')];
}

/** True for 0 and 0%. */
export function isZeroCount(value: number | string | undefined): boolean {
  return value === undefined || value === 0 || (typeof value === 'string' && /^0+%$/.test(value));
}
