import {
  type Library,
  member,
  overload1,
  overload2,
  overload3,
  stringParam,
  instance,
  opaque,
} from '../overload.ts';
import { boolType, type CelType, stringType } from '../types.ts';
import { EvaluationError, type OpaqueValue } from '../values.ts';

/** The attributes of an authorization check. */
export interface CheckAttributes {
  readonly verb: string;
  /** The ServiceAccount to check; undefined for the user of the request. */
  readonly serviceAccount: { readonly namespace: string; readonly name: string } | undefined;
  /** A path that is not a resource; undefined for a resource. */
  readonly path: string | undefined;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Decides a check. @returns the decision and its reason. */
export type CheckAccess = (attributes: CheckAttributes) => {
  readonly allowed: boolean;
  readonly reason: string;
};

type OpaqueType = CelType & { kind: 'opaque' };

export const authorizerType: OpaqueType = opaque('kubernetes.authorization.Authorizer');
const pathCheckType = opaque('kubernetes.authorization.PathCheck');
const groupCheckType = opaque('kubernetes.authorization.GroupCheck');
export const resourceCheckType: OpaqueType = opaque('kubernetes.authorization.ResourceCheck');
const decisionType = opaque('kubernetes.authorization.Decision');

abstract class Check implements OpaqueValue {
  readonly kind = 'opaque';
  abstract readonly type: OpaqueType;
  readonly checkAccess: CheckAccess;
  readonly attributes: CheckAttributes;

  constructor(checkAccess: CheckAccess, attributes: CheckAttributes) {
    this.checkAccess = checkAccess;
    this.attributes = attributes;
  }
  equals(other: OpaqueValue): boolean {
    return other === this;
  }
}

const noAttributes: CheckAttributes = {
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
  constructor(checkAccess: CheckAccess, attributes = noAttributes) {
    super(checkAccess, attributes);
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

function narrowing(member: 'subresource' | 'namespace' | 'name'): Library[number] {
  return [member, [withString((attributes, value) => ({ ...attributes, [member]: value }))]];
}

function withString(change: (attributes: CheckAttributes, value: string) => CheckAttributes) {
  return member(
    overload2(
      resourceCheck,
      stringParam,
      resourceCheckType,
      ({ checkAccess, attributes }, value) => new ResourceCheckValue(checkAccess, change(attributes, value)),
    ),
  );
}

/**
 * The authorizer library (`apiserver/pkg/cel/library/authz.go`). Selectors have no effect, since RBAC ignores them.
 */
export const authorizationFunctions: Library = [
  [
    'path',
    [
      member(
        overload2(authorizer, stringParam, pathCheckType, ({ checkAccess, attributes }, path) => {
          if (path === '') throw new EvaluationError('path must not be empty');
          return new PathCheckValue(checkAccess, { ...attributes, path });
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
          ({ checkAccess, attributes }, group) => new GroupCheckValue(checkAccess, { ...attributes, group }),
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
          ({ checkAccess, attributes }, namespace, name) => {
            return new AuthorizerValue(checkAccess, { ...attributes, serviceAccount: { namespace, name } });
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
          ({ checkAccess, attributes }, resource) =>
            new ResourceCheckValue(checkAccess, { ...attributes, resource }),
        ),
      ),
    ],
  ],
  narrowing('subresource'),
  narrowing('namespace'),
  narrowing('name'),
  ['fieldSelector', [withString((attributes) => attributes)]],
  ['labelSelector', [withString((attributes) => attributes)]],
  [
    'check',
    [pathCheck, resourceCheck].map((param) =>
      member(
        overload2<Check, string>(
          param,
          stringParam,
          decisionType,
          ({ checkAccess, attributes }, verb) => new DecisionValue(checkAccess({ ...attributes, verb })),
        ),
      ),
    ),
  ],
  ['allowed', [member(overload1(decision, boolType, ({ allowed }) => allowed))]],
  ['reason', [member(overload1(decision, stringType, ({ reason }) => reason))]],
  ['errored', [member(overload1(decision, boolType, () => false))]],
  ['error', [member(overload1(decision, stringType, () => ''))]],
];
