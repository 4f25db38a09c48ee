import type { CheckAttributes, CheckAccess } from '../../../cel/library/authorization.ts';

/** The write as expressions see it. */
export interface AdmissionInput {
  /** Null for a deletion. */
  readonly object: unknown;
  /** Null for a creation. */
  readonly oldObject: unknown;
  /** The AdmissionRequest without its objects. */
  readonly request: unknown;
  /** Checks the permissions of the requester. */
  readonly access: CheckAccess;
  /** The resource of the request, for `authorizer.requestResource`. */
  readonly requested: CheckAttributes;
}

/** The additional values for a policy. */
export interface PolicyInput extends AdmissionInput {
  /** The object that `paramRef` names; null without one. */
  readonly params: unknown;
  /** The Namespace of the request; null for cluster-scoped resources. */
  readonly namespaceObject: unknown;
}
