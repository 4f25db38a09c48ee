import { compareText } from './formats/go-text.ts';
import { isRecord } from './json.ts';
import { formatTime } from './formats/time.ts';

/** The parts that all Kubernetes objects share (apimachinery `meta/v1/types.go`), as plain JSON. */

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

/** True for an object with a name and metadata of the right outer shape: what caches and queues rely on. */
export function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']) && typeof value['metadata']['name'] === 'string';
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

/** meta/v1 GroupResource. */
export interface GroupResource {
  group: string;
  resource: string;
}

/** meta/v1 LabelSelector. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** An object by its name. */
export interface ObjectName {
  /** `Service`. */
  readonly kind: string;
  /** "" for kinds of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
}

/** How caches and queues name an object: `namespace/name`, or `name` alone for cluster-scoped kinds. */
export type ObjectKey = string;

/** The key of an object. */
export function keyOf(object: KubeObject): ObjectKey {
  return joinKey(object.metadata.namespace ?? '', object.metadata.name ?? '');
}

/** `default`, `kubernetes` → `default/kubernetes`; namespace "" for cluster-scoped kinds. */
export function joinKey(namespace: string, name: string): ObjectKey {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** The inverse of {@link joinKey}. */
export function splitKey(key: ObjectKey): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return slash === -1
    ? { namespace: '', name: key }
    : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * Orders two resourceVersions of one resource: negative, 0, positive. They are decimal numbers without leading zeros
 * (guaranteed by KEP-5504), compared as such without a limit of size. Texts that are no number sort first.
 */
export function compareResourceVersions(a: string, b: string): number {
  const left = isNumber(a) ? a : '';
  const right = isNumber(b) ? b : '';
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

function isNumber(text: string): boolean {
  return /^(?:0|[1-9][0-9]*)$/.test(text);
}

/** Of two that want the same the older one counts, then that of the first `namespace/name`. */
export function compareAge({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return (
    compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '') ||
    compareText(a.namespace ?? '', b.namespace ?? '') ||
    compareText(a.name ?? '', b.name ?? '')
  );
}

/** Conditions in the status of objects (meta/v1 Condition and the older forms of it). */

interface TypedCondition {
  readonly type: string;
}

/** The members of all forms of conditions. */
interface TimedCondition extends TypedCondition {
  readonly status: string;
  readonly lastTransitionTime?: string | null;
}

/** The condition of a type. */
export function conditionOf<T extends TypedCondition>(
  conditions: readonly T[] | undefined,
  type: string,
): T | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * The `lastTransitionTime` of a condition (RFC 3339): that of the present condition of the type while the status is the
 * same, else `now`.
 *
 * @param now milliseconds since 1970.
 */
export function transitionTime(
  present: readonly TimedCondition[] | undefined,
  { type, status }: TimedCondition,
  now: number,
): string {
  const before = conditionOf(present, type);
  return (before?.status === status ? before.lastTransitionTime : undefined) ?? formatTime(now);
}

/** Replaces the condition of the same type at its index, or appends the condition. */
export function replacedCondition<T extends TypedCondition>(conditions: readonly T[], condition: T): T[] {
  const at = conditions.findIndex(({ type }) => type === condition.type);
  return at < 0 ? [...conditions, condition] : conditions.with(at, condition);
}

/**
 * The field manager that an API server derives from our User-Agent (apiserver `endpoints/handlers/create.go`,
 * `managerOrUserAgent`).
 */
export const fieldManager = 'servicenet';

/**
 * Whether the last write of an object was ours. Times are whole seconds: of two writes within one second, that of
 * another manager counts as the last.
 */
export function isLastWriter({ managedFields = [] }: ObjectMeta): boolean {
  let ours = '';
  let others = '';
  for (const { manager, time = '' } of managedFields) {
    if (manager === fieldManager) ours = time > ours ? time : ours;
    else others = time > others ? time : others;
  }
  return ours > others;
}
