import type { Pod, PodSpec } from '../../../objects/types/core.generated.ts';
import { type FieldError, forbiddenField, invalid } from '../../validation/field-errors.ts';

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
