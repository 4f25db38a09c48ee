/**
 * Types and functions for the expressions of MutatingAdmissionPolicies (`apiserver/pkg/cel/mutation`,
 * `cel/library/jsonpatch.go`).
 */
import { type Library, overload1, stringParam } from './overload.ts';
import * as types from './types.ts';
import type { CelType, ObjectType } from './types.ts';
import { walk } from './walk.ts';

const noFields: ReadonlyMap<string, CelType> = new Map();

/** One operation of a patch: `JSONPatch{op: "add", path: "/x", value: 1}`. */
export const jsonPatchType: ObjectType = {
  kind: 'object',
  name: 'JSONPatch',
  fields: new Map([
    ['op', types.stringType],
    ['path', types.stringType],
    ['from', types.stringType],
    ['value', types.dynType],
  ]),
};

/** The types that a patch can construct: `JSONPatch`, and `Object` with its parts, whose fields are not checked. */
export function patchStructs(name: string): ObjectType | undefined {
  if (name === jsonPatchType.name) return jsonPatchType;
  const isObject = name === 'Object' || name.startsWith('Object.');
  return isObject ? { kind: 'object', name, fields: noFields, open: true } : undefined;
}

/** `jsonpatch.escapeKey`: escapes a key for a path. */
export const patchFunctions: Library = [
  [
    'jsonpatch.escapeKey',
    [
      overload1(stringParam, types.stringType, (key, meter) => {
        walk(meter, key);
        return key.replaceAll('~', '~0').replaceAll('/', '~1');
      }),
    ],
  ],
];
