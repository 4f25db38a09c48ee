import type { CustomResourceDefinition } from '../../../objects/types/apiextensions.generated.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { type FieldError, invalid, required } from '../../validation/field-errors.ts';
import { withCondition } from './definition.ts';

const annotation = 'api-approved.kubernetes.io';
const see = 'see https://github.com/kubernetes/enhancements/pull/1111';

type State = 'missing' | 'invalid' | 'approved' | 'bypassed';

interface Approval {
  readonly state: State;
  readonly message: string;
}

const reasons: Readonly<Record<State, string>> = {
  missing: 'MissingAnnotation',
  invalid: 'InvalidAnnotation',
  approved: 'ApprovedAnnotation',
  bypassed: 'UnapprovedAnnotation',
};

/** Groups that belong to the Kubernetes community (`IsProtectedCommunityGroup`). */
function isProtected(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group);
}

/** The value of the annotation (`GetAPIApprovalState`): the URL of a review, or that there was none. */
function approvalOf({ metadata: { annotations = {} } }: KubeObject): Approval {
  const text = Object.hasOwn(annotations, annotation) ? (annotations[annotation] ?? '') : '';
  const must = `protected groups must have approval annotation "${annotation}"`;
  if (text === '') return { state: 'missing', message: `${must}, ${see}` };
  if (text.startsWith('unapproved')) {
    return { state: 'bypassed', message: `not approved: ${JSON.stringify(text)}` };
  }
  if (/^[a-z][a-z\d+.-]*:\/\/[^/?#]/i.test(text) && URL.canParse(text)) {
    return { state: 'approved', message: `approved in ${text}` };
  }
  const either = 'with either a URL or a reason starting with "unapproved"';
  return { state: 'invalid', message: `${must} ${either}, ${see}` };
}

/**
 * A definition in a protected group must name its approval (KEP-1111). An update that does not change the state of
 * approval is never refused.
 */
export function validateApproval(definition: KubeObject, group: string, old?: KubeObject): FieldError[] {
  if (!isProtected(group)) return [];
  const { state, message } = approvalOf(definition);
  if (old !== undefined && approvalOf(old).state === state) return [];
  const path = `metadata.annotations[${annotation}]`;
  if (state === 'missing') return [required(path, message)];
  if (state !== 'invalid') return [];
  return [invalid(path, definition.metadata.annotations?.[annotation], message)];
}

/** The definition with its condition of conformance when its group is protected (`calculateCondition`). */
export function withApproval(definition: CustomResourceDefinition, now: string): CustomResourceDefinition {
  if (!isProtected(definition.spec.group)) return definition;
  const { state, message } = approvalOf(definition);
  const conditions = withCondition(definition.status.conditions, {
    type: 'KubernetesAPIApprovalPolicyConformant',
    status: state === 'approved' ? 'True' : 'False',
    lastTransitionTime: now,
    reason: reasons[state],
    message,
  });
  return { ...definition, status: { ...definition.status, conditions } };
}
