/** The history of StatefulSets and DaemonSets as ControllerRevisions (pkg/controller/history). */
import type { Draft } from '../../client/resource-client.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { recordAt } from '../../objects/read.ts';
import type { ControllerRevision, PodTemplate } from '../../objects/workloads.ts';
import { byAge, controllerReference } from './plan-pods.ts';
import { hashTemplate, inKeyOrder } from './plan-template.ts';

/** What a controller must write so that the template is the newest revision. */
export interface HistoryPlan {
  /** The revision of the template; undefined while it has to be created. */
  readonly update: ControllerRevision | undefined;
  readonly create: Draft<ControllerRevision> | undefined;
  /** `update` is an old one that becomes the newest again: its new number. */
  readonly renumber: number | undefined;
}

/** Oldest first. */
function sortRevisions(revisions: readonly ControllerRevision[]): ControllerRevision[] {
  return [...revisions].sort((a, b) => (a.revision ?? 0) - (b.revision ?? 0) || byAge(a, b));
}

/**
 * Finds the revision of a template, or plans it.
 *
 * @param hashLabel the label of the revision that holds its hash.
 */
export function planHistory(
  owner: KubeObject,
  template: PodTemplate,
  revisions: readonly ControllerRevision[],
  hashLabel: string,
  collisions: number | undefined,
): HistoryPlan {
  const sorted = sortRevisions(revisions);
  const latest = sorted.at(-1);
  const data = { spec: { template: { ...template, $patch: 'replace' } } };
  const equal = sorted.findLast((revision) => jsonEqual(revision.data, data));
  const next = (latest?.revision ?? 0) + 1;
  if (equal !== undefined) {
    return { update: equal, create: undefined, renumber: equal === latest ? undefined : next };
  }
  const hash = hashTemplate(template, collisions);
  const { namespace = '', name = '', annotations } = owner.metadata;
  const create = {
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      labels: { ...template.metadata?.labels, [hashLabel]: hash },
      ...(annotations === undefined ? {} : { annotations: { ...annotations } }),
      ownerReferences: [controllerReference(owner)],
    },
    // tools compare these bytes with what Go writes for the template
    data: inKeyOrder(data),
    revision: next,
  };
  return { update: undefined, create, renumber: undefined };
}

/** The template that a revision holds. */
export function templateOf(revision: ControllerRevision): PodTemplate {
  const { $patch: _directive, ...template } = recordAt(revision.data, 'spec', 'template');
  return isPodTemplate(template) ? template : {};
}

function isPodTemplate(
  value: Readonly<Record<string, unknown>>,
): value is Record<string, unknown> & PodTemplate {
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
