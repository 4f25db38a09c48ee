import type { KubeObject } from '../../objects/meta.ts';
import { type FieldError, invalid, required } from '../field-errors.ts';

const annotation = 'api-approved.kubernetes.io';
const see = 'see https://github.com/kubernetes/enhancements/pull/1111';

type Approval = 'missing' | 'invalid' | 'approved' | 'bypassed';

/** Groups that belong to the Kubernetes community (`IsProtectedCommunityGroup`). */
function isProtected(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** What the annotation says (`GetAPIApprovalState`): the URL of a review, or that there was none. */
function approvalOf({ metadata: { annotations = {} } }: KubeObject): Approval {
  const text = Object.hasOwn(annotations, annotation) ? (annotations[annotation] ?? '') : '';
  if (text === '') return 'missing';
  if (text.startsWith('unapproved')) return 'bypassed';
  return URL.canParse(text) && new URL(text).host !== '' ? 'approved' : 'invalid';
}

/**
 * A definition in a protected group names its approval (KEP-1111). An update that leaves the state of approval as it
 * was is never refused for it.
 */
export function validateApproval(definition: KubeObject, group: string, old?: KubeObject): FieldError[] {
  if (!isProtected(group)) return [];
  const approval = approvalOf(definition);
  if (old !== undefined && approvalOf(old) === approval) return [];
  const path = `metadata.annotations[${annotation}]`;
  const must = `protected groups must have approval annotation "${annotation}"`;
  if (approval === 'missing') return [required(path, `${must}, ${see}`)];
  if (approval !== 'invalid') return [];
  const either = 'with either a URL or a reason starting with "unapproved"';
  return [invalid(path, definition.metadata.annotations?.[annotation], `${must} ${either}, ${see}`)];
}
