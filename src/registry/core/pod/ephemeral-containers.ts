import type { Pod, PodSpec } from '../../../objects/types/core.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  notFoundField,
} from '../../validation/field-errors.ts';
import { validateContainer } from './containers.ts';

/** The fields that such a container may not have, in Go's order. */
const refusedMembers = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const;
const refusal = 'cannot be set for an Ephemeral Container';

/** Ephemeral containers for debugging (`validateEphemeralContainers`). */
export function validateEphemeralContainers(spec: PodSpec, path: string): FieldError[] {
  const others = new Set(
    [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map(({ name }) => name),
  );
  const names = new Set(others);
  return (spec.ephemeralContainers ?? []).flatMap((container, i) => {
    const at = `${path}[${i}]`;
    const { name, image = '', targetContainerName: target = '' } = container;
    const errors = validateContainer(container, spec, at);
    if (image.trim() !== image) {
      errors.push(invalid(`${at}.image`, image, 'must not have leading or trailing whitespace'));
    }
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    if (target !== '' && !others.has(target)) errors.push(notFoundField(`${at}.targetContainerName`, target));
    for (const member of refusedMembers) {
      const value = container[member];
      if (value === undefined || jsonEqual(value, {}) || jsonEqual(value, [])) continue;
      errors.push(forbiddenField(`${at}.${member}`, refusal));
    }
    (container.volumeMounts ?? []).forEach((mount, j) => {
      for (const member of ['subPath', 'subPathExpr'] as const) {
        if ((mount[member] ?? '') !== '') {
          errors.push(forbiddenField(`${at}.volumeMounts[${j}].${member}`, refusal));
        }
      }
    });
    return errors;
  });
}

/** Existing ephemeral containers are immutable (`ValidatePodEphemeralContainersUpdate`). */
export function validateEphemeralChange({ spec }: Pod, old: Pod): FieldError[] {
  const path = 'spec.ephemeralContainers';
  return (old.spec.ephemeralContainers ?? []).flatMap((before) => {
    const now = (spec.ephemeralContainers ?? []).find(({ name }) => name === before.name);
    if (now !== undefined && jsonEqual(now, before)) return [];
    // kube-apiserver appends a Go dump of the change.
    const change = now === undefined ? 'removed' : 'changed';
    const detail = `existing ephemeral containers ${JSON.stringify(before.name)} may not be ${change}\n`;
    return [forbiddenField(path, detail)];
  });
}
