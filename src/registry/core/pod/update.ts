import type { Container, PodSpec, Toleration } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { pushAll } from '../../../objects/lists.ts';
import { type FieldError, forbiddenField, invalid, required } from '../../validation/field-errors.ts';
import { validateTolerations } from './scheduling/tolerations.ts';

const changeable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');
const maxInt32 = 2 ** 31 - 1;

/** The fields of a Pod's spec that may change (`ValidatePodUpdate`). */
export function validatePodChange(spec: PodSpec, old: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const list of ['containers', 'initContainers'] as const) {
    const containers = spec[list] ?? [];
    if (containers.length !== (old[list] ?? []).length) {
      errors.push(forbiddenField(`spec.${list}`, 'pod updates may not add or remove containers'));
      return errors;
    }
    pushAll(errors, validateImages(containers, `spec.${list}`));
  }
  if (!pushDeadlineErrors(errors, spec.activeDeadlineSeconds, old.activeDeadlineSeconds)) return errors;
  pushAll(errors, validateAddedTolerations(spec.tolerations ?? [], old.tolerations ?? []));
  pushAll(errors, validateRemovedGates(spec, old));
  if (!jsonEqual(withOldParts(spec, old), old)) {
    // kube-apiserver appends a Go dump of the difference.
    errors.push(forbiddenField('spec', `pod updates may not change fields other than ${changeable}\n`));
  }
  return errors;
}

function validateImages(containers: readonly Container[], path: string): FieldError[] {
  return containers.flatMap(({ image = '' }, i) => {
    const at = `${path}[${i}].image`;
    if (image === '') return [required(at)];
    return image.trim() === image ? [] : [invalid(at, image, 'must not have leading or trailing whitespace')];
  });
}

/** A deadline may be set and shortened. @returns false when the other rules are skipped. */
function pushDeadlineErrors(
  errors: FieldError[],
  deadline: number | undefined,
  old: number | undefined,
): boolean {
  const path = 'spec.activeDeadlineSeconds';
  if (deadline === undefined) {
    if (old !== undefined)
      errors.push(invalid(path, null, 'must not update from a positive integer to nil value'));
    return true;
  }
  if (deadline < 0 || deadline > maxInt32) {
    errors.push(invalid(path, deadline, `must be between 0 and ${maxInt32}, inclusive`));
    return false;
  }
  if (old !== undefined && old < deadline) {
    errors.push(invalid(path, deadline, 'must be less than or equal to previous value'));
    return false;
  }
  return true;
}

function validateAddedTolerations(
  tolerations: readonly Toleration[],
  old: readonly Toleration[],
): FieldError[] {
  const path = 'spec.tolerations';
  const timeless = tolerations.map((toleration) => ({ ...toleration, tolerationSeconds: undefined }));
  const kept = old.every((before) =>
    timeless.some((toleration) => jsonEqual(toleration, { ...before, tolerationSeconds: undefined })),
  );
  if (!kept) {
    return [forbiddenField(path, 'existing toleration can not be modified except its tolerationSeconds')];
  }
  return validateTolerations(tolerations, path);
}

function validateRemovedGates({ schedulingGates = [] }: PodSpec, old: PodSpec): FieldError[] {
  const before = new Set((old.schedulingGates ?? []).map(({ name }) => name));
  return schedulingGates.flatMap(({ name = '' }, i) => {
    if (before.has(name)) return [];
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbiddenField(`spec.schedulingGates[${i}].name`, detail)];
  });
}

/** The new spec with mutable fields reset: other differences are not allowed. */
function withOldParts(spec: PodSpec, old: PodSpec): PodSpec {
  const { activeDeadlineSeconds, schedulingGates, tolerations, terminationGracePeriodSeconds } = old;
  const oldImages = (list: 'containers' | 'initContainers') =>
    spec[list]?.map((container, i) => ({ ...container, image: old[list]?.[i]?.image }));
  const restored = {
    ...spec,
    containers: oldImages('containers'),
    initContainers: oldImages('initContainers'),
    activeDeadlineSeconds,
    schedulingGates,
    tolerations,
  };
  const wasNegative = (terminationGracePeriodSeconds ?? 0) < 0;
  const grace =
    wasNegative && spec.terminationGracePeriodSeconds === 1
      ? terminationGracePeriodSeconds
      : spec.terminationGracePeriodSeconds;
  return withoutUndefined({ ...restored, terminationGracePeriodSeconds: grace });
}

function withoutUndefined(spec: { [Member in keyof PodSpec]?: unknown }): PodSpec {
  const result: PodSpec = {};
  return Object.assign(result, spec);
}
