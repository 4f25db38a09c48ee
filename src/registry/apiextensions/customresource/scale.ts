import type { CustomResourceDefinitionVersion } from '../../../objects/types/apiextensions.generated.ts';
import { isRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { internalError } from '../../../objects/status-errors.ts';

import { type FieldError, invalid } from '../../validation/field-errors.ts';
import { type ScaleForm, scaleMetadata } from '../../generic/scale.ts';

type ScalePaths = NonNullable<NonNullable<CustomResourceDefinitionVersion['subresources']>['scale']>;

/** `/scale` of a custom resource, by the paths that its definition names (apiextensions `registry/customresource/etcd.go`). */
export function customScale({
  specReplicasPath,
  statusReplicasPath,
  labelSelectorPath = '',
}: ScalePaths): ScaleForm {
  const specPath = simplePath(specReplicasPath);
  const statusPath = simplePath(statusReplicasPath);
  const selectorPath = simplePath(labelSelectorPath);
  return {
    read(object) {
      const replicas = numberAt(object, specPath) ?? 0;
      const selector = selectorPath.length === 0 ? undefined : fieldAt(object, selectorPath);
      return {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: scaleMetadata(object.metadata),
        spec: replicas === 0 ? {} : { replicas },
        status: {
          replicas: numberAt(object, statusPath) ?? 0,
          ...(typeof selector === 'string' && selector !== '' ? { selector } : {}),
        },
      };
    },
    check(object) {
      if (numberAt(object, specPath) !== undefined) return;
      throw internalError(`the spec replicas field ${JSON.stringify(specReplicasPath)} does not exist`);
    },
    write(object, scale) {
      const next = structuredClone(object);
      const { resourceVersion } = scale.metadata;
      if (resourceVersion !== undefined) next.metadata.resourceVersion = resourceVersion;
      setAt(next, specPath, scale.spec.replicas ?? 0);
      return next;
    },
  };
}

const maxReplicas = 2 ** 31 - 1;

/** The replicas that `/scale` reads must be a number (`registry/customresource/validator.go` ValidateScaleSpec). */
export function validateScaleSpec(object: KubeObject, { specReplicasPath }: ScalePaths): FieldError[] {
  return validateReplicas(object, specReplicasPath);
}

/** The rules of status replicas, and of the selector's text (ValidateScaleStatus). */
export function validateScaleStatus(
  object: KubeObject,
  { statusReplicasPath, labelSelectorPath = '' }: ScalePaths,
): FieldError[] {
  const errors = validateReplicas(object, statusReplicasPath);
  const fault = accessFault(object, labelSelectorPath, 'string', (value) => typeof value === 'string');
  if (fault !== undefined) errors.push(invalid(labelSelectorPath, '', fault));
  return errors;
}

function validateReplicas(object: KubeObject, path: string): FieldError[] {
  const fault = accessFault(object, path, 'int64', Number.isInteger);
  if (fault !== undefined) return [invalid(path, 0, fault)];
  const value = numberAt(object, simplePath(path)) ?? 0;
  if (value < 0) return [invalid(path, value, 'should be a non-negative integer')];
  return value > maxReplicas ? [invalid(path, value, `should be less than or equal to ${maxReplicas}`)] : [];
}

/**
 * Why a value cannot be read at a path; an absent value is no error (apimachinery `unstructured.NestedInt64` and its
 * like).
 */
function accessFault(
  object: KubeObject,
  path: string,
  wanted: string,
  fits: (value: unknown) => boolean,
): string | undefined {
  let value: unknown = object;
  for (const name of simplePath(path)) {
    if (value === undefined || value === null) return undefined;
    if (!isRecord(value)) return accessorError(path, value, 'map[string]interface{}');
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value === undefined || value === object || fits(value)
    ? undefined
    : accessorError(path, value, wanted);
}

function accessorError(path: string, value: unknown, wanted: string): string {
  const number = Number.isInteger(value) ? 'int64' : 'float64';
  const types: Record<string, string> = { string: 'string', boolean: 'bool', number };
  const type = types[typeof value] ?? (Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}');
  const shown = typeof value === 'string' ? value : JSON.stringify(value);
  return `${path} accessor error: ${shown} is of the type ${type}, expected ${wanted}`;
}

function numberAt(object: KubeObject, path: readonly string[]): number | undefined {
  const value = fieldAt(object, path);
  return typeof value === 'number' ? value : undefined;
}

/** Sets the value at a path, in place; creates the objects on the path. */
function setAt(object: object, path: readonly string[], value: unknown): void {
  let parent: object = object;
  for (const [i, name] of path.entries()) {
    const last = i === path.length - 1;
    const present: unknown = Object.hasOwn(parent, name) ? Reflect.get(parent, name) : undefined;
    const next = last ? value : isRecord(present) ? present : {};
    Object.defineProperty(parent, name, {
      value: next,
      enumerable: true,
      configurable: true,
      writable: true,
    });
    if (!isRecord(next)) return;
    parent = next;
  }
}

/** The names of a simple JSONPath such as `.spec.color`, the only form that selectableFields and scale take. */
export function simplePath(path: string): readonly string[] {
  return path.split('.').filter((name) => name !== '');
}

/** The value at a path of names below an object, undefined when a part is missing. */
export function fieldAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const name of path) {
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}
