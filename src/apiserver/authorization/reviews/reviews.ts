/** Reviews: resources that are created and never stored (authentication.k8s.io, authorization.k8s.io). */
import type { JsonRecord } from '../../../objects/json.ts';
import type { KubeObject } from '../../../objects/meta.ts';
import { textAt } from '../../../objects/read.ts';
import { badRequest } from '../../../objects/status-errors.ts';
import { genericStrategy } from '../../../registry/generic/generic.ts';
import { nameIsPathSegment } from '../../../objects/names.ts';
import type { ResourceDefinition, UserInfo } from '../../../registry/generic/strategy.ts';
import type { TokenAuthenticator } from '../../authentication/authenticator.ts';
import type { Authorizer } from '../authorizer.ts';
import type { WholeRule } from '../rbac.ts';
import { checkAccessReview } from './access-review.ts';
import { attributesOf, reviewedUserOf, userInfo } from './attributes.ts';
import { selectorErrors } from './selectors.ts';

/** What reviews are answered from. */
export interface ReviewSources {
  readonly authorizer: Authorizer;
  readonly tokens: readonly TokenAuthenticator[];
  /** The rules of a user in a namespace; undefined where everything is allowed. */
  rulesOf(user: UserInfo, namespace: string): readonly WholeRule[] | undefined;
}

/** A posted review. */
export interface ReviewRequest {
  /** The decoded body, with the namespace of the path. */
  readonly object: KubeObject;
  readonly spec: JsonRecord;
  readonly caller: UserInfo;
  /** RFC 3339, UTC, whole seconds. */
  readonly now: string;
}

/** Answers a review with the members of the object that change. @throws {StatusError} 400 or 422 */
export type Review = (request: ReviewRequest, sources: ReviewSources) => JsonRecord;

interface ReviewKind {
  readonly definition: ResourceDefinition;
  readonly review: Review;
}

const authentication = 'authentication.k8s.io';
const authorization = 'authorization.k8s.io';

/** All reviews, by `<group>/<plural>`. */
export const reviewKinds: ReadonlyMap<string, ReviewKind> = new Map(
  [
    kind(authentication, 'SelfSubjectReview', false, ({ caller, now }) => ({
      metadata: { creationTimestamp: now },
      status: { userInfo: userInfo(caller) },
    })),
    kind(authentication, 'TokenReview', false, reviewToken),
    kind(authorization, 'SelfSubjectAccessReview', false, ({ object, spec, caller }, sources) => {
      checkAccessReview(object, spec, 'self');
      return decide(sources, caller, spec);
    }),
    kind(authorization, 'SubjectAccessReview', false, ({ object, spec }, sources) => {
      checkAccessReview(object, spec, 'subject');
      return decide(sources, reviewedUserOf(spec), spec);
    }),
    kind(authorization, 'LocalSubjectAccessReview', true, ({ object, spec }, sources) => {
      checkAccessReview(object, spec, 'local');
      return decide(sources, reviewedUserOf(spec), spec);
    }),
    kind(authorization, 'SelfSubjectRulesReview', false, reviewRules),
  ].map((entry) => [`${entry.definition.group}/${entry.definition.plural}`, entry]),
);

function kind(group: string, name: string, namespaced: boolean, review: Review): ReviewKind {
  const singular = name.toLowerCase();
  const definition: ResourceDefinition = {
    group,
    version: 'v1',
    plural: `${singular}s`,
    singular,
    kind: name,
    namespaced,
    shortNames: [],
    categories: [],
    verbs: ['create'],
    schema: `io.k8s.api.${group.replace(/\..*/, '')}.v1.${name}`,
    strategy: genericStrategy({ namespaced, nameRule: nameIsPathSegment }),
  };
  return { definition, review };
}

function reviewToken({ spec }: ReviewRequest, { tokens }: ReviewSources): JsonRecord {
  const token = textAt(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  for (const authenticator of tokens) {
    const user = authenticator.authenticateToken(token);
    if (user !== undefined) return { status: { authenticated: true, user: userInfo(user) } };
  }
  return { status: { user: {}, error: 'invalid bearer token' } };
}

function decide({ authorizer }: ReviewSources, user: UserInfo, spec: JsonRecord): JsonRecord {
  const attributes = attributesOf(spec);
  if (attributes === undefined) return { status: { allowed: false } };
  const { allowed, reason } = authorizer.authorize(user, attributes);
  const evaluationError = selectorErrors(spec);
  return {
    status: {
      allowed,
      ...(reason === '' ? {} : { reason }),
      ...(evaluationError === '' ? {} : { evaluationError }),
    },
  };
}

/** The response does not repeat the spec (`selfsubjectrulesreview.REST`). */
function reviewRules({ spec, caller }: ReviewRequest, sources: ReviewSources): JsonRecord {
  const namespace = textAt(spec, 'namespace');
  if (namespace === '') throw badRequest('no namespace on request');
  const rules = sources.rulesOf(caller, namespace) ?? [everything];
  const status = {
    resourceRules: rules
      .filter((rule) => rule.resources.length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...(resourceNames.length === 0 ? {} : { resourceNames }),
      })),
    nonResourceRules: rules
      .filter((rule) => rule.nonResourceURLs.length > 0)
      .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
    incomplete: false,
  };
  return { metadata: {}, spec: {}, status };
}

const everything: WholeRule = {
  verbs: ['*'],
  apiGroups: ['*'],
  resources: ['*'],
  resourceNames: [],
  nonResourceURLs: ['*'],
};
