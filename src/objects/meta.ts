/** The parts that all Kubernetes objects share (apimachinery `meta/v1/types.go`), as plain JSON. */
import { isRecord } from './json.ts';

/** One owner in `metadata.ownerReferences`. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** One manager's set of fields in `metadata.managedFields`. */
export interface ManagedFieldsEntry {
  manager?: string;
  operation?: 'Apply' | 'Update';
  apiVersion?: string;
  /** RFC 3339, UTC, whole seconds. */
  time?: string;
  fieldsType?: 'FieldsV1';
  fieldsV1?: FieldsV1;
  subresource?: string;
}

/** The trie of owned fields: keys are `f:name`, `k:{…}`, `v:…` and `.`. */
export interface FieldsV1 {
  [pathElement: string]: FieldsV1;
}

/** `metadata` of an object. Times are RFC 3339 in UTC with whole seconds. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  selfLink?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
}

/**
 * Any Kubernetes object. Objects inside lists carry neither `apiVersion` nor `kind`: `client/` adds them when it reads
 * a list.
 */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** True for parsed JSON that has metadata. */
export function hasMetadata(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}

/** `metadata` of a list. */
export interface ListMeta {
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
}

/** A list of objects. */
export interface KubeList<T extends KubeObject = KubeObject> {
  apiVersion?: string;
  kind?: string;
  metadata: ListMeta;
  items: T[];
}

/** `status.conditions[]` (meta/v1 Condition). */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  observedGeneration?: number;
  lastTransitionTime: string;
  reason: string;
  message: string;
}

/** meta/v1 LabelSelector. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}
