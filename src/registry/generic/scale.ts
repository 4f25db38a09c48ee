import type { Scale } from '../../objects/types/autoscaling.generated.ts';
import type { KubeObject, LabelSelector, ObjectMeta } from '../../objects/meta.ts';
import { type FieldError, invalid } from '../validation/field-errors.ts';
import { validateManagedFields } from './metadata.ts';

/** Reads and writes the number of replicas of an object. */
export interface ScaleForm {
  /** Undefined for an object that has none. */
  read(object: KubeObject): Scale | undefined;
  /** @throws {StatusError} 500 when the object has no number of replicas. */
  check?(object: KubeObject): void;
  /** A copy with the replicas of the Scale, and with its resourceVersion if it has one. */
  write(object: KubeObject, scale: Scale): KubeObject;
}

/** Deployments, ReplicaSets, StatefulSets and ReplicationControllers. */
export interface Scalable extends KubeObject {
  spec: { replicas?: number; selector?: LabelSelector | Record<string, string> | null };
  status: { replicas?: number };
}

/**
 * The `/scale` of a workload (`pkg/registry/apps/deployment/storage` scaleFromDeployment and its like).
 *
 * @param plainSelector the selector is a map of labels: ReplicationControllers.
 */
export function toScale(object: Scalable, plainSelector = false): Scale {
  const { replicas = 0, selector } = object.spec;
  const text = plainSelector ? mapText(selector) : selectorText(selector);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: scaleMetadata(object.metadata),
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: object.status.replicas ?? 0, ...(text === '' ? {} : { selector: text }) },
  };
}

/** Copies the number of replicas. @returns a copy; the workload itself does not change. */
export function fromScale<T extends Scalable>(object: T, scale: Scale): T {
  const resourceVersion = scale.metadata.resourceVersion ?? object.metadata.resourceVersion;
  return {
    ...object,
    metadata: { ...object.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: { ...object.spec, replicas: scale.spec.replicas ?? 0 },
  };
}

/** The rules of a Scale, whose other metadata are not read (`apis/autoscaling/validation` ValidateScale). */
export function validateScale(scale: Scale): FieldError[] {
  const replicas = scale.spec.replicas ?? 0;
  const errors = validateManagedFields(scale.metadata);
  if (replicas < 0) errors.push(invalid('spec.replicas', replicas, 'must be greater than or equal to 0'));
  return errors;
}

/** The Scale of an object. */
export function scaleMetadata({
  name,
  namespace,
  uid,
  resourceVersion,
  creationTimestamp,
}: ObjectMeta): ObjectMeta {
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
}

/** A selector as the text of a `labelSelector` parameter, requirements by key (`labels.Selector.String`). */
function selectorText(selector: Scalable['spec']['selector']): string {
  if (!isLabelSelector(selector)) return '';
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const texts = Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` }));
  for (const { key, operator, values = [] } of matchExpressions) {
    const list = `(${[...values].sort().join(',')})`;
    switch (operator) {
      case 'In':
        texts.push({ key, text: `${key} in ${list}` });
        break;
      case 'NotIn':
        texts.push({ key, text: `${key} notin ${list}` });
        break;
      case 'DoesNotExist':
        texts.push({ key, text: `!${key}` });
        break;
      default:
        texts.push({ key, text: key });
    }
  }
  return texts
    .sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ text }) => text)
    .join(',');
}

function mapText(selector: Scalable['spec']['selector']): string {
  return Object.entries(selector ?? {})
    .map(([key, value]) => `${key}=${String(value)}`)
    .sort()
    .join(',');
}

function isLabelSelector(selector: Scalable['spec']['selector']): selector is LabelSelector {
  if (!selector) return false;
  return Object.values(selector).every((member) => typeof member === 'object');
}
