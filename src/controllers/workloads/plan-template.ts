import { isRecord, type JsonRecord, jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Pod, PodTemplateSpec } from '../../objects/types/core.generated.ts';
import type { Draft } from '../../client/resource-client.ts';
import { controllerReference } from '../../objects/pods.ts';
import type { IntOrPercent } from '../../objects/types/workloads.ts';

/** The label of a Deployment's ReplicaSets and their Pods. */
export const podTemplateHash = 'pod-template-hash';
/** The label of Pods and revisions of StatefulSets and DaemonSets. */
export const controllerRevisionHash = 'controller-revision-hash';

/** The Pod of a template; the server generates its name (`GetPodFromTemplate`). */
export function podFromTemplate(owner: KubeObject, template: PodTemplateSpec): Draft<Pod> {
  const { labels, annotations, finalizers } = template.metadata ?? {};
  // The server cuts a name prefix that is too long.
  return {
    metadata: {
      namespace: owner.metadata.namespace ?? '',
      generateName: `${owner.metadata.name ?? ''}-`,
      ...(labels === undefined ? {} : { labels: { ...labels } }),
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
      ownerReferences: [controllerReference(owner)],
    },
    spec: { ...template.spec },
  };
}

/** True for templates that are equal except for the hash in their labels (`EqualIgnoreHash`). */
export function sameTemplate(a: PodTemplateSpec | undefined, b: PodTemplateSpec | undefined): boolean {
  return jsonEqual(withoutHash(a), withoutHash(b));
}

/** The template without the label of its hash. */
function withoutHash(template: PodTemplateSpec | undefined): PodTemplateSpec {
  if (template?.metadata?.labels === undefined) return template ?? {};
  const { [podTemplateHash]: _hash, ...labels } = template.metadata.labels;
  return { ...template, metadata: { ...template.metadata, labels } };
}

/** Without vowels and digits that look like them, so that no words result. */
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * Up to ten letters that name a template: FNV-1a of its canonical JSON and the number of collisions so far, encoded as
 * kube-controller-manager encodes its hash. The hash itself differs: kube-controller-manager hashes Go's in-memory
 * representation.
 */
export function hashTemplate(template: PodTemplateSpec, collisions: number | undefined): string {
  let hash = fnv1a(JSON.stringify(inKeyOrder({ ...template })), 0x811c9dc5);
  if (collisions !== undefined) hash = fnv1a(String(collisions), hash);
  return safeEncode(hash);
}

/** A 32-bit hash as Kubernetes writes it into names (`rand.SafeEncodeString`). */
export function safeEncode(hash: number): string {
  let encoded = '';
  for (const letter of String(hash)) encoded += alphabet[letter.charCodeAt(0) % alphabet.length] ?? '';
  return encoded;
}

function fnv1a(text: string, start: number): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * A copy with sorted members at every depth, as Go writes maps. Templates come from a server that bounds their depth.
 */
export function inKeyOrder(record: JsonRecord): JsonRecord {
  const members = Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([key, value]) => [key, sortedValue(value)]));
}

function sortedValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedValue);
  return isRecord(value) ? inKeyOrder(value) : value;
}

/**
 * A count, or a percentage of a total rounded up or down (`GetScaledValueFromIntOrPercent`). Other values, which
 * validation refuses, count as 0.
 */
export function scaledValue(
  value: IntOrPercent | undefined,
  total: number,
  round: 'up' | 'down',
  absent = 0,
): number {
  if (value === undefined) return absent;
  if (typeof value === 'number') return value;
  const percent = /^(\d{1,9})%$/.exec(value)?.[1];
  if (percent === undefined) return 0;
  const share = (Number(percent) * total) / 100;
  return round === 'up' ? Math.ceil(share) : Math.floor(share);
}
