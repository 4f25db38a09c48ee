/** Reviews: resources that are asked by POST and never stored (authentication.k8s.io, authorization.k8s.io). */
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { type FieldError, invalid, invalidObject, required } from '../../registry/field-errors.ts';
import { genericStrategy } from '../../registry/generic.ts';
import { nameIsPathSegment } from '../../registry/names.ts';
import type { ResourceDefinition } from '../../registry/strategy.ts';
import type { TokenAuthenticator } from '../authentication/authenticator.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import type { PolicyRule } from '../authorization/rbac.ts';
import type { UserInfo } from '../http/exchange.ts';
import { attributesOf, subjectOf, userInfo } from './attributes.ts';

/** What answers reviews. */
export interface ReviewSources {
  readonly authorizer: Authorizer;
  readonly tokens: readonly TokenAuthenticator[];
  /** The rules of a user in a namespace; undefined where everything is allowed. */
  rulesOf(user: UserInfo, namespace: string): readonly PolicyRule[] | undefined;
}

/** Answers one review: its `status`. @throws {StatusError} 422 */
export type Review = (
  spec: JsonRecord,
  caller: UserInfo,
  namespace: string,
  sources: ReviewSources,
) => JsonRecord;

interface ReviewKind {
  readonly definition: ResourceDefinition;
  readonly review: Review;
}

const authentication = 'authentication.k8s.io';
const authorization = 'authorization.k8s.io';

/** All reviews, by `<group>/<plural>`. */
export const reviewKinds: ReadonlyMap<string, ReviewKind> = new Map(
  [
    kind(authentication, 'SelfSubjectReview', false, (_spec, caller) => ({ userInfo: userInfo(caller) })),
    kind(authentication, 'TokenReview', false, reviewToken),
    kind(authorization, 'SelfSubjectAccessReview', false, (spec, caller, _namespace, sources) =>
      decide(sources, caller, spec, 'SelfSubjectAccessReview'),
    ),
    kind(authorization, 'SubjectAccessReview', false, (spec, _caller, _namespace, sources) =>
      decideForSubject(sources, spec, 'SubjectAccessReview'),
    ),
    kind(authorization, 'LocalSubjectAccessReview', true, (spec, _caller, _namespace, sources) =>
      decideForSubject(sources, spec, 'LocalSubjectAccessReview'),
    ),
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
    schema: `io.k8s.api.${group === authentication ? 'authentication' : 'authorization'}.v1.${name}`,
    strategy: genericStrategy({ namespaced, nameRule: nameIsPathSegment }),
  };
  return { definition, review };
}

function reviewToken(
  spec: JsonRecord,
  _caller: UserInfo,
  _namespace: string,
  { tokens }: ReviewSources,
): JsonRecord {
  const token = typeof spec['token'] === 'string' ? spec['token'] : '';
  if (token === '') throw refused(authentication, 'TokenReview', [required('spec.token')]);
  for (const authenticator of tokens) {
    const user = authenticator.authenticateToken(token);
    if (user !== undefined) return { authenticated: true, user: userInfo(user) };
  }
  return { user: {}, error: 'invalid bearer token' };
}

function decideForSubject(sources: ReviewSources, spec: JsonRecord, name: string): JsonRecord {
  const user = subjectOf(spec);
  if (user.name === '' && user.groups.length === 0) {
    throw refused(authorization, name, [
      invalid('spec.user', '', 'at least one of user or group must be specified'),
    ]);
  }
  return decide(sources, user, spec, name);
}

function decide({ authorizer }: ReviewSources, user: UserInfo, spec: JsonRecord, name: string): JsonRecord {
  const both = isRecord(spec['resourceAttributes']) && isRecord(spec['nonResourceAttributes']);
  const attributes = attributesOf(spec);
  const path = 'spec.resourceAttributes';
  if (both) {
    throw refused(authorization, name, [
      invalid(
        'spec.nonResourceAttributes',
        spec['nonResourceAttributes'],
        'cannot be specified in combination with resourceAttributes',
      ),
    ]);
  }
  if (attributes === undefined) {
    throw refused(authorization, name, [
      invalid(
        path,
        undefined,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    ]);
  }
  const { allowed, reason } = authorizer.authorize(user, attributes);
  return { allowed, ...(reason === '' ? {} : { reason }) };
}

function reviewRules(
  spec: JsonRecord,
  caller: UserInfo,
  _namespace: string,
  sources: ReviewSources,
): JsonRecord {
  const namespace = typeof spec['namespace'] === 'string' ? spec['namespace'] : '';
  const rules = sources.rulesOf(caller, namespace) ?? [everything];
  return {
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
}

const everything: PolicyRule = {
  verbs: ['*'],
  apiGroups: ['*'],
  resources: ['*'],
  resourceNames: [],
  nonResourceURLs: ['*'],
};

function refused(group: string, name: string, errors: readonly FieldError[]): Error {
  return invalidObject({ group, kind: name, name: '' }, errors);
}

/** The spec of a decoded review. */
export function specOf(object: KubeObject): JsonRecord {
  const value: object = object;
  return isRecord(value) && isRecord(value['spec']) ? value['spec'] : {};
}
