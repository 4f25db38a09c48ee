/** What expressions of admission may name: the objects of a write and the request (`apiserver/pkg/admission/plugin/cel`). */
import * as types from './cel/types.ts';
import type { CelType } from './cel/types.ts';

/** What expressions see of a write. */
export interface AdmissionInput {
  /** Null for a deletion. */
  readonly object: unknown;
  /** Null for a creation. */
  readonly oldObject: unknown;
  /** The AdmissionRequest without its objects. */
  readonly request: unknown;
}

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
