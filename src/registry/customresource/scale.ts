import { isRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { internalError } from '../../objects/status-errors.ts';
import type { CustomResourceVersion } from '../customresourcedefinition/definition.ts';
import { type ScaleForm, scaleMetadata } from '../scale.ts';
import { fieldAt, simplePath } from './simple-path.ts';

type ScalePaths = NonNullable<NonNullable<CustomResourceVersion['subresources']>['scale']>;

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

function numberAt(object: KubeObject, path: readonly string[]): number | undefined {
  const value = fieldAt(object, path);
  return typeof value === 'number' ? value : undefined;
}

/** Sets the value at a path, in place; makes the objects on the way. */
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
