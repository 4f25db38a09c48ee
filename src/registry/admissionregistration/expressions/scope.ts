/**
 * The variables of admission expressions: the objects of a write and the request
 * (`apiserver/pkg/admission/plugin/cel`).
 */
import type { Purpose } from '../../../cel/environment.ts';
import { fromJson } from '../../../cel/json-values.ts';
import {
  AuthorizerValue,
  authorizerType,
  resourceCheckType,
  ResourceCheckValue,
} from '../../../cel/library/authorization.ts';
import { CompileError, Program } from '../../../cel/program.ts';
import * as types from '../../../cel/types.ts';
import { type CelType, formatType } from '../../../cel/types.ts';
import type { Value } from '../../../cel/values.ts';
import type { AdmissionInput } from './input.ts';

function object(name: string, fields: Readonly<Record<string, CelType>>): CelType {
  return { kind: 'object', name: `kubernetes.${name}`, fields: new Map(Object.entries(fields)) };
}

const text = types.stringType;
const texts = types.listType(text);
const kind = object('GroupVersionKind', { group: text, version: text, kind: text });
const resource = object('GroupVersionResource', { group: text, version: text, resource: text });
const userInfo = object('UserInfo', {
  username: text,
  uid: text,
  groups: texts,
  extra: types.mapType(text, texts),
});

/** The types of `object`, `oldObject` and `request`. */
export const admissionVariables: ReadonlyMap<string, CelType> = new Map([
  ['object', types.dynType],
  ['oldObject', types.dynType],
  [
    'request',
    object('AdmissionRequest', {
      kind,
      resource,
      subResource: text,
      requestKind: kind,
      requestResource: resource,
      requestSubResource: text,
      name: text,
      namespace: text,
      operation: text,
      userInfo,
      dryRun: types.boolType,
      options: types.dynType,
    }),
  ],
]);

/** The types of `authorizer` and `authorizer.requestResource`. */
export const authorizerVariables: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ['authorizer', authorizerType],
  ['authorizer.requestResource', resourceCheckType],
]);

const times = types.timestampType;
const labels = types.mapType(text, text);

/**
 * The type of `namespaceObject`: the fields of a Namespace that policies see (`admission/plugin/cel`
 * BuildNamespaceType).
 */
export const namespaceType: CelType = object('Namespace', {
  metadata: object('NamespaceMetadata', {
    name: text,
    generateName: text,
    namespace: text,
    labels,
    annotations: labels,
    UID: text,
    creationTimestamp: times,
    deletionGracePeriodSeconds: types.intType,
    deletionTimestamp: times,
    generation: types.intType,
    resourceVersion: text,
    finalizers: texts,
  }),
  spec: object('NamespaceSpec', { finalizers: texts }),
  status: object('NamespaceStatus', {
    conditions: types.listType(
      object('NamespaceCondition', {
        status: text,
        type: text,
        lastTransitionTime: times,
        message: text,
        reason: text,
      }),
    ),
    phase: text,
  }),
});

/** The values of all these variables but `namespaceObject`. */
export function admissionBindings(input: AdmissionInput): Map<string, Value> {
  return new Map<string, Value>([
    ['object', fromJson(input.object)],
    ['oldObject', fromJson(input.oldObject)],
    ['request', fromJson(input.request)],
    ['authorizer', new AuthorizerValue(input.access)],
    ['authorizer.requestResource', new ResourceCheckValue(input.access, input.requested)],
  ]);
}

/** An expression, or the error of its compilation, a wrong result type included. */
export function compileExpression(
  source: string,
  variables: ReadonlyMap<string, CelType>,
  wanted: readonly CelType[] = [],
  purpose: Purpose = 'rule',
): Program | string {
  try {
    const program = new Program(source.trim(), variables, purpose);
    const names = wanted.map(formatType);
    if (names.length === 0 || names.includes(program.resultType)) return program;
    if (names.length > 1) return `must evaluate to one of [${names.join(' ')}]`;
    return `must evaluate to ${names[0] ?? ''} but got ${program.resultType}`;
  } catch (error) {
    if (error instanceof CompileError) return error.fault;
    throw error;
  }
}
