import type { AccessQuestion, AskAccess } from '../../../cel/library/authorization.ts';

/** What expressions see of a write. */
export interface AdmissionInput {
  /** Null for a deletion. */
  readonly object: unknown;
  /** Null for a creation. */
  readonly oldObject: unknown;
  /** The AdmissionRequest without its objects. */
  readonly request: unknown;
  /** Asks what the requester may do. */
  readonly access: AskAccess;
  /** The resource of the request, for `authorizer.requestResource`. */
  readonly requested: AccessQuestion;
}

/** What a policy sees beyond the write. */
export interface PolicyInput extends AdmissionInput {
  /** The object that `paramRef` names; null without one. */
  readonly params: unknown;
  /** The Namespace of the request; null for what is in none. */
  readonly namespaceObject: unknown;
}
