import { isRecord, type JsonRecord, isStringList, textAt, textsAt, recordAt } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { type FieldError, invalid, invalidObject, required } from '../../registry/validation/field-errors.ts';
import { reviewedUserOf, attributesOf, userInfo, type Authorizer } from './authorizer.ts';
import { parseFieldSelector } from '../../objects/selectors/field-selector.ts';
import { compileLabelSelector, parseLabelSelector } from '../../objects/selectors/labels.ts';
import { badRequest, methodNotAllowed } from '../../objects/status.ts';
import { genericStrategy } from '../../registry/generic/generic.ts';
import { nameIsPathSegment } from '../../objects/names.ts';
import type { ResourceDefinition, UserInfo } from '../../registry/generic/strategy.ts';
import type { TokenAuthenticator } from '../authentication/authenticator.ts';
import { withAuthenticatedGroup } from '../authentication/users.ts';
import type { WholeRule } from './rbac.ts';
import { bodyMediaType } from '../http/negotiation.ts';
import type { ResourceHandler } from '../rest/handlers.ts';
import { matchNamespace } from '../rest/system-fields.ts';
import { responderTo } from '../rest/responder.ts';
import { timestamp } from '../rest/server-core.ts';
import { writeOptions } from '../rest/options.ts';
import { decodeBody } from '../schema/decode-body.ts';

/**
 * - Validation of access reviews (`pkg/apis/authorization/validation`).
 * - Selectors of access reviews (`pkg/registry/authorization/util/helpers.go`, KEP-4601). The authorizers ignore
 *   them, as RBAC does: parse errors are reported and have no other effect.
 * - Reviews: resources that are created and never stored (authentication.k8s.io, authorization.k8s.io).
 */

/**
 * Checks a review of the caller (`self`), of any user (`subject`), or of any user in one namespace (`local`).
 *
 * @throws {StatusError} 422 without a kind, which the decoded object of kube-apiserver does not have either.
 */
function checkAccessReview(
  object: KubeObject,
  spec: JsonRecord,
  reviewed: 'self' | 'subject' | 'local',
): void {
  const errors = [
    ...checkAttributes(spec),
    ...(reviewed === 'self' ? [] : checkSubject(spec)),
    ...checkSelectors(spec['resourceAttributes']),
    ...checkMeta(object, reviewed === 'local'),
    ...(reviewed === 'local' ? checkLocal(object, spec) : []),
  ];
  if (errors.length > 0) throw invalidObject({ group: 'authorization.k8s.io', kind: '', name: '' }, errors);
}

function checkAttributes(spec: JsonRecord): FieldError[] {
  const resource = isRecord(spec['resourceAttributes']);
  const path = isRecord(spec['nonResourceAttributes']);
  if (resource !== path) return [];
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalid('spec', resource ? goAttributes(spec) : undefined, detail)];
}

function checkSubject(spec: JsonRecord): FieldError[] {
  const { name, groups } = reviewedUserOf(spec);
  return name === '' && groups.length === 0
    ? [invalid('spec.user', '', 'at least one of user or group must be specified')]
    : [];
}

function checkSelectors(attributes: unknown): FieldError[] {
  if (!isRecord(attributes)) return [];
  return ['fieldSelector', 'labelSelector'].flatMap((name) => {
    const selector = attributes[name];
    if (!isRecord(selector)) return [];
    const path = `spec.resourceAttributes.${name}`;
    const { rawSelector = '', requirements } = selector;
    const listed = Array.isArray(requirements) && requirements.length > 0;
    if (rawSelector !== '' && listed) {
      return [
        invalid(`${path}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'),
      ];
    }
    if (rawSelector !== '' || listed) return [];
    return [
      required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    ];
  });
}

/** Fields that the server clears before it validates (`WipeObjectMetaSystemFields`). */
const clearedFields: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'managedFields',
  'selfLink',
  'uid',
]);

function checkMeta({ metadata }: KubeObject, namespaced: boolean): FieldError[] {
  const { name, generateName, namespace, ...rest } = metadata;
  // In Go's order of fields.
  const shown = Object.entries({ name, generateName, namespace, ...rest }).filter(
    ([key, value]) => value !== undefined && !clearedFields.has(key),
  );
  const set = shown.filter(([key, value]) => !isEmpty(value) && !(namespaced && key === 'namespace'));
  if (set.length === 0) return [];
  const detail = namespaced ? 'must be empty except for namespace' : 'must be empty';
  return [invalid('metadata', Object.fromEntries(shown), detail)];
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}

function checkLocal({ metadata }: KubeObject, spec: JsonRecord): FieldError[] {
  const errors: FieldError[] = [];
  const resource = spec['resourceAttributes'];
  if (isRecord(resource)) {
    const { namespace = '' } = resource;
    if (namespace !== (metadata.namespace ?? '')) {
      errors.push(invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'));
    }
  }
  if (isRecord(spec['nonResourceAttributes'])) {
    errors.push(
      invalid('spec.nonResourceAttributes', goAttributes(spec), 'disallowed on this kind of request'),
    );
  }
  return errors;
}

/** The attributes as Go prints them: the internal type has no JSON names. */
function goAttributes(spec: JsonRecord): JsonRecord {
  const attributes = spec['nonResourceAttributes'];
  const { path = '', verb = '' } = isRecord(attributes) ? attributes : {};
  return { Path: path, Verb: verb };
}

/** The `status.evaluationError` of a review; "" when all selectors can be parsed. */
function selectorErrors(spec: JsonRecord): string {
  const attributes = spec['resourceAttributes'];
  if (!isRecord(attributes)) return '';
  const { fieldSelector, labelSelector } = attributes;
  return [
    ...parseError('fieldSelector', fieldSelector, parseFieldSelector, isFieldRequirement),
    ...parseError('labelSelector', labelSelector, parseLabelSelector, isLabelRequirement),
  ].join('; ');
}

function parseError(
  name: string,
  selector: unknown,
  parse: (raw: string) => unknown,
  isRequirement: (value: JsonRecord) => boolean,
): string[] {
  if (!isRecord(selector)) return [];
  const { rawSelector, requirements } = selector;
  const listed = Array.isArray(requirements) ? requirements.filter(isRecord) : [];
  const readable = listed.filter(isRequirement);
  const ignored =
    listed.length > 0
      ? readable.length < listed.length
      : typeof rawSelector === 'string' && !succeeds(() => parse(rawSelector));
  const partially = readable.length > 0 ? 'partially ' : '';
  return ignored ? [`spec.resourceAttributes.${name} ${partially}ignored due to parse error`] : [];
}

/** Field selectors know `=` and `!=` only: In and NotIn with one value. */
function isFieldRequirement({ operator, values }: JsonRecord): boolean {
  return (operator === 'In' || operator === 'NotIn') && isStringList(values) && values.length === 1;
}

function isLabelRequirement({ key, operator, values }: JsonRecord): boolean {
  const expression = {
    key: typeof key === 'string' ? key : '',
    operator: typeof operator === 'string' ? operator : '',
    values: isStringList(values) ? values : [],
  };
  return succeeds(() => compileLabelSelector({ matchExpressions: [expression] }));
}

function succeeds(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

/** What reviews are answered from. */
export interface ReviewSources {
  readonly authorizer: Authorizer;
  readonly tokens: readonly TokenAuthenticator[];
  /** What tokens are for that are for this server. */
  readonly audience: string;
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

/** By the audiences that are asked for (`pkg/registry/authentication/tokenreview/storage.go`); none: the server's. */
function reviewToken({ spec }: ReviewRequest, { tokens, audience: own }: ReviewSources): JsonRecord {
  const token = textAt(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const asked = textsAt(spec, 'audiences');
  for (const authenticator of tokens) {
    const found = (asked.length === 0 ? [own] : asked).flatMap((audience) => {
      const user = authenticator.authenticateToken(token, audience === own ? undefined : [audience]);
      return user === undefined ? [] : [{ user, audience }];
    });
    const [first] = found;
    if (first !== undefined) {
      const audiences = found.map(({ audience }) => audience);
      const user = userInfo(withAuthenticatedGroup(first.user));
      return { status: { authenticated: true, user, audiences } };
    }
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

/** Serves `POST` of one kind of review: the response is the object with its `status` set. */
export function reviewHandler(review: Review, sources: ReviewSources): ResourceHandler {
  return async (core, resource, request, reply) => {
    if (request.method !== 'POST') throw methodNotAllowed(['POST']);
    const respond = responderTo(core, resource, request, reply, 'review');
    const mediaType = bodyMediaType(request.headers['content-type']);
    const bytes = await request.body();
    const { fieldValidation } = writeOptions(request, 'CreateOptions');
    const { group, version, kind, namespaced } = resource.definition;
    const { object, warnings } = decodeBody({
      bytes,
      contentType: mediaType,
      expected: { group, version, kind, schema: resource.schema },
      fieldValidation,
    });
    for (const warning of warnings) reply.warn(warning);
    matchNamespace(object, namespaced ? request.info.namespace : '');
    const now = timestamp(core.now());
    const answer = review({ object, spec: recordAt(object, 'spec'), caller: request.user, now }, sources);
    await respond.object(201, { ...object, ...answer });
  };
}
