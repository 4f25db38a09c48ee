/** The history of StatefulSets and DaemonSets as ControllerRevisions (pkg/controller/history). */
import type { Draft } from '../../client/resource-client.ts';
import { isRecord, type JsonRecord, jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { recordAt } from '../../objects/json.ts';
import type { ControllerRevision } from '../../objects/types/apps.generated.ts';
import type { PodTemplateSpec } from '../../objects/types/core.generated.ts';
import { byCreation, controllerReference } from '../../objects/pods.ts';
import { hashTemplate, inKeyOrder, safeEncode } from './plan-template.ts';

/** The writes that make the template the newest revision. */
export interface HistoryPlan {
  /** The revision of the template; undefined while it must be created. */
  readonly update: ControllerRevision | undefined;
  readonly create: Draft<ControllerRevision> | undefined;
  /** `update` is an old revision that becomes the newest again, with its new number. */
  readonly renumber: number | undefined;
}

/** How a kind names its revisions. */
export interface RevisionHash {
  /** The label of a revision that holds its hash. */
  readonly label: string;
  /**
   * Up to ten letters.
   *
   * @param data the content of the template's revision, members in order.
   */
  readonly of: (template: PodTemplateSpec, data: JsonRecord, collisions: number | undefined) => string;
}

/**
 * For StatefulSets: the hash that kube-controller-manager computes for the same template (`HashControllerRevision`).
 */
export const hashOfData: RevisionHash = {
  label: 'controller.kubernetes.io/hash',
  of: (_template, data, collisions) => safeEncode(fnv1(goText(data) + String(collisions ?? ''))),
};

/** For DaemonSets. */
export function hashOfTemplate(label: string): RevisionHash {
  return { label, of: (template, _data, collisions) => hashTemplate(template, collisions) };
}

/** JSON as Go's encoder writes it, with HTML characters escaped. */
function goText(data: JsonRecord): string {
  return JSON.stringify(data).replace(
    /[<>&\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** FNV-1 of 32 bits over UTF-8 (Go's `fnv.New32`). */
function fnv1(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash, 0x01000193) ^ byte;
  return hash >>> 0;
}

/** Oldest first. */
function sortRevisions(revisions: readonly ControllerRevision[]): ControllerRevision[] {
  return [...revisions].sort((a, b) => (a.revision ?? 0) - (b.revision ?? 0) || byCreation(a, b));
}

/** Finds the revision of a template, or plans its creation. */
export function planHistory(
  owner: KubeObject,
  template: PodTemplateSpec,
  revisions: readonly ControllerRevision[],
  hash: RevisionHash,
  collisions: number | undefined,
): HistoryPlan {
  const sorted = sortRevisions(revisions);
  const latest = sorted.at(-1);
  // Tools compare these bytes with those that Go writes for the template.
  const data = inKeyOrder({ spec: { template: { ...template, $patch: 'replace' } } });
  const equal = sorted.findLast((revision) => jsonEqual(revision.data, data));
  const next = (latest?.revision ?? 0) + 1;
  if (equal !== undefined) {
    return { update: equal, create: undefined, renumber: equal === latest ? undefined : next };
  }
  const letters = hash.of(template, data, collisions);
  const { namespace = '', name = '', annotations } = owner.metadata;
  const create = {
    metadata: {
      name: `${name}-${letters}`,
      namespace,
      labels: { ...template.metadata?.labels, [hash.label]: letters },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ownerReferences: [controllerReference(owner)],
    },
    data,
    revision: next,
  };
  return { update: undefined, create, renumber: undefined };
}

/** The template that a revision holds. */
export function templateOf(revision: ControllerRevision): PodTemplateSpec {
  const { $patch: _directive, ...template } = recordAt(revision.data, 'spec', 'template');
  return isPodTemplate(template) ? template : {};
}

function isPodTemplate(
  value: Readonly<Record<string, unknown>>,
): value is Record<string, unknown> & PodTemplateSpec {
  return isRecord(value['spec']) && (value['metadata'] === undefined || isRecord(value['metadata']));
}

/** Revisions beyond the limit that no Pod has, oldest first. */
export function outdatedRevisions(
  revisions: readonly ControllerRevision[],
  isLive: (revision: ControllerRevision) => boolean,
  limit: number,
): ControllerRevision[] {
  const unused = sortRevisions(revisions).filter((revision) => !isLive(revision));
  return unused.slice(0, Math.max(0, unused.length - limit));
}
