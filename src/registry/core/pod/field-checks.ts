import {
  type FieldError,
  invalid,
  notSupported,
  required,
  tooMany,
  forbiddenField,
} from '../../validation/field-errors.ts';
import { isDNS1123Label, isDNS1123Subdomain } from '../../../objects/names.ts';
import type { Container, PodSpec, Pod } from '../../../objects/types/core.generated.ts';

/** `ValidateDNS1123Label` at a path. */
export function pushLabelErrors(errors: FieldError[], path: string, value: string): void {
  for (const message of isDNS1123Label(value)) errors.push(invalid(path, value, message));
}

/** `ValidateDNS1123Subdomain` at a path. */
export function pushSubdomainErrors(errors: FieldError[], path: string, value: string): void {
  for (const message of isDNS1123Subdomain(value)) errors.push(invalid(path, value, message));
}

/** One of a list of values: empty is Required, unknown is NotSupported. */
export function pushChoiceErrors(
  errors: FieldError[],
  path: string,
  value: string | undefined,
  choices: readonly string[],
): void {
  if (value === undefined || value === '') errors.push(required(path));
  else if (!choices.includes(value)) errors.push(notSupported(path, value, choices));
}

const policies = ['Always', 'Never', 'OnFailure'];
const operators = ['In', 'NotIn'];
const maxRules = 20;
const maxExitCodes = 255;

/** The restart policy of a container of its own, and its rules by exit code (`validateContainerRestartPolicy`). */
export function validateRestartRules(
  { restartPolicy, restartPolicyRules: rules = [] }: Partial<Container>,
  path: string,
): FieldError[] {
  const at = `${path}.restartPolicyRules`;
  const errors: FieldError[] = [];
  if (restartPolicy === undefined) {
    if (rules.length === 0) return errors;
    errors.push(required(`${path}.restartPolicy`, 'must specify restartPolicy when restart rules are used'));
  } else if (!policies.includes(restartPolicy)) {
    errors.push(notSupported(`${path}.restartPolicy`, restartPolicy, policies));
  }
  if (rules.length > maxRules) errors.push(tooMany(at, rules.length, maxRules));
  rules.forEach(({ action = '', exitCodes }, i) => {
    const rule = `${at}[${i}]`;
    if (action !== 'Restart') errors.push(notSupported(`${rule}.action`, action, ['Restart']));
    if (exitCodes === undefined) {
      errors.push(required(`${rule}.exitCodes`, 'must be specified'));
      return;
    }
    const { operator = '', values = [] } = exitCodes;
    if (!operators.includes(operator)) {
      errors.push(notSupported(`${rule}.exitCodes.operator`, operator, operators));
    }
    if (values.length > maxExitCodes) {
      errors.push(tooMany(`${rule}.exitCodes.values`, values.length, maxExitCodes));
    }
  });
  return errors;
}

/** Whether a container that ended with this code starts again (`pkg/api/v1/pod` ContainerShouldRestart). */
export function restarts(
  { restartPolicy, restartPolicyRules: rules = [] }: Container,
  spec: PodSpec,
  exitCode: number,
): boolean {
  if (restartPolicy !== undefined) {
    const matches = rules.some(({ exitCodes }) => {
      const listed = exitCodes?.values?.includes(exitCode) ?? false;
      return exitCodes?.operator === 'In' ? listed : exitCodes?.operator === 'NotIn' && !listed;
    });
    if (matches) return true;
  }
  const policy = restartPolicy ?? spec.restartPolicy;
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

const mirror = 'kubernetes.io/config.mirror';
const appArmor = 'container.apparmor.security.beta.kubernetes.io/';
const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';

/** Annotations of a Pod with a format (`ValidatePodSpecificAnnotations`, without old security profiles). */
export function validatePodAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  { nodeName = '' }: PodSpec,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (annotations === undefined) return errors;
  if (Object.hasOwn(annotations, mirror) && nodeName === '') {
    const detail = 'must set spec.nodeName if mirror pod annotation is set';
    errors.push(invalid(`${path}[${mirror}]`, annotations[mirror], detail));
  }
  const cost = Object.hasOwn(annotations, deletionCost) ? annotations[deletionCost] : undefined;
  if (cost !== undefined && !isCost(cost)) {
    errors.push(invalid(`${path}[${deletionCost}]`, cost, 'must be a 32bit integer'));
  }
  return errors;
}

/** Annotations of mirror Pods and of profiles are immutable (`ValidatePodSpecificAnnotationUpdates`). */
export function validateAnnotationChange({ metadata, spec }: Pod, old: Pod): FieldError[] {
  const path = 'metadata.annotations';
  const now = metadata.annotations ?? {};
  const before = old.metadata.annotations ?? {};
  const errors: FieldError[] = [];
  const refuse = (key: string, change: string) => {
    const what = key === mirror ? 'mirror pod annotation' : 'AppArmor annotations';
    if (key === mirror || key.startsWith(appArmor)) {
      errors.push(forbiddenField(`${path}[${key}]`, `may not ${change} ${what}`));
    }
  };
  for (const [key, value] of Object.entries(before)) if (now[key] !== value) refuse(key, 'remove or update');
  for (const key of Object.keys(now)) if (!Object.hasOwn(before, key)) refuse(key, 'add');
  return [...errors, ...validatePodAnnotations(metadata.annotations, spec, path)];
}

/** A whole number of 32 bits, as `strconv.ParseInt` reads it, without a plus and without leading zeros. */
function isCost(text: string): boolean {
  return /^(?:0|-?[1-9][0-9]{0,9})$/.test(text) && Math.abs(Number(text) + 0.5) < 2 ** 31;
}

/** A path below a directory, without "..", (`validateLocalDescendingPath`). */
export function validateDescendingPath(place: string, path: string): FieldError[] {
  const errors = place.startsWith('/') ? [invalid(path, place, 'must be a relative path')] : [];
  return [...errors, ...validateNoBacksteps(place, path)];
}

/** A path that does not start with ".." either (`ValidateLocalNonReservedPath`). */
export function validateFilePath(place: string, path: string): FieldError[] {
  const errors = validateDescendingPath(place, path);
  if (place.startsWith('..') && !place.startsWith('../')) {
    errors.push(invalid(path, place, "must not start with '..'"));
  }
  return errors;
}

/** No part of a path is "..". */
export function validateNoBacksteps(place: string, path: string): FieldError[] {
  return place.split('/').includes('..') ? [invalid(path, place, "must not contain '..'")] : [];
}
