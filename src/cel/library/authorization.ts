import { type Library, member, overload1, overload2, overload3, stringParam } from '../overload.ts';
import { boolType, type CelType, stringType } from '../types.ts';
import { EvaluationError, type OpaqueValue } from '../values.ts';
import { instance, opaque } from './opaque.ts';

/** The attributes of an authorization check. */
export interface AccessQuestion {
  readonly verb: string;
  /** The service account to check; undefined: the user of the request. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string } | undefined;
  /** A path that is not a resource; undefined for a resource. */
  readonly path: string | undefined;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** The decision and its reason. */
export type AskAccess = (question: AccessQuestion) => { readonly allowed: boolean; readonly reason: string };

type OpaqueType = CelType & { kind: 'opaque' };

export const authorizerType: OpaqueType = opaque('kubernetes.authorization.Authorizer');
const pathCheckType = opaque('kubernetes.authorization.PathCheck');
const groupCheckType = opaque('kubernetes.authorization.GroupCheck');
export const resourceCheckType: OpaqueType = opaque('kubernetes.authorization.ResourceCheck');
const decisionType = opaque('kubernetes.authorization.Decision');

abstract class Check implements OpaqueValue {
  readonly kind = 'opaque';
  abstract readonly type: OpaqueType;
  readonly ask: AskAccess;
  readonly question: AccessQuestion;

  constructor(ask: AskAccess, question: AccessQuestion) {
    this.ask = ask;
    this.question = question;
  }
  equals(other: OpaqueValue): boolean {
    return other === this;
  }
}

const nothing: AccessQuestion = {
  verb: '',
  serviceAccount: undefined,
  path: undefined,
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
};

/** The variable `authorizer`. */
export class AuthorizerValue extends Check {
  readonly type = authorizerType;
  constructor(ask: AskAccess, question = nothing) {
    super(ask, question);
  }
}

class PathCheckValue extends Check {
  readonly type = pathCheckType;
}

class GroupCheckValue extends Check {
  readonly type = groupCheckType;
}

/** `authorizer.requestResource`, and the result of a chain of calls. */
export class ResourceCheckValue extends Check {
  readonly type = resourceCheckType;
}

class DecisionValue implements OpaqueValue {
  readonly kind = 'opaque';
  readonly type = decisionType;
  readonly allowed: boolean;
  readonly reason: string;

  constructor({ allowed, reason }: { readonly allowed: boolean; readonly reason: string }) {
    this.allowed = allowed;
    this.reason = reason;
  }
  equals(other: OpaqueValue): boolean {
    return other === this;
  }
}

const authorizer = instance(authorizerType, AuthorizerValue);
const pathCheck = instance(pathCheckType, PathCheckValue);
const groupCheck = instance(groupCheckType, GroupCheckValue);
const resourceCheck = instance(resourceCheckType, ResourceCheckValue);
const decision = instance(decisionType, DecisionValue);

function narrowed(member: 'subresource' | 'namespace' | 'name'): Library[number] {
  return [member, [withText((question, value) => ({ ...question, [member]: value }))]];
}

function withText(change: (question: AccessQuestion, value: string) => AccessQuestion) {
  return member(
    overload2(
      resourceCheck,
      stringParam,
      resourceCheckType,
      ({ ask, question }, value) => new ResourceCheckValue(ask, change(question, value)),
    ),
  );
}

/**
 * The authorizer library (`apiserver/pkg/cel/library/authz.go`). Selectors have no effect: RBAC ignores them, and
 * invalid parts are left out.
 */
export const authorizationFunctions: Library = [
  [
    'path',
    [
      member(
        overload2(authorizer, stringParam, pathCheckType, ({ ask, question }, path) => {
          if (path === '') throw new EvaluationError('path must not be empty');
          return new PathCheckValue(ask, { ...question, path });
        }),
      ),
    ],
  ],
  [
    'group',
    [
      member(
        overload2(
          authorizer,
          stringParam,
          groupCheckType,
          ({ ask, question }, group) => new GroupCheckValue(ask, { ...question, group }),
        ),
      ),
    ],
  ],
  [
    'serviceAccount',
    [
      member(
        overload3(
          authorizer,
          stringParam,
          stringParam,
          authorizerType,
          ({ ask, question }, namespace, name) => {
            return new AuthorizerValue(ask, { ...question, serviceAccount: { namespace, name } });
          },
        ),
      ),
    ],
  ],
  [
    'resource',
    [
      member(
        overload2(
          groupCheck,
          stringParam,
          resourceCheckType,
          ({ ask, question }, resource) => new ResourceCheckValue(ask, { ...question, resource }),
        ),
      ),
    ],
  ],
  narrowed('subresource'),
  narrowed('namespace'),
  narrowed('name'),
  ['fieldSelector', [withText((question) => question)]],
  ['labelSelector', [withText((question) => question)]],
  [
    'check',
    [pathCheck, resourceCheck].map((param) =>
      member(
        overload2<Check, string>(
          param,
          stringParam,
          decisionType,
          ({ ask, question }, verb) => new DecisionValue(ask({ ...question, verb })),
        ),
      ),
    ),
  ],
  ['allowed', [member(overload1(decision, boolType, ({ allowed }) => allowed))]],
  ['reason', [member(overload1(decision, stringType, ({ reason }) => reason))]],
  ['errored', [member(overload1(decision, boolType, () => false))]],
  ['error', [member(overload1(decision, stringType, () => ''))]],
];
