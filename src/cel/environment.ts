import { type Library, overload1, stringParam, type Overload } from './overload.ts';
import * as types from './types.ts';
import type { CelType, ObjectType } from './types.ts';
import { walk } from './equality.ts';
import { addressFunctions, formatFunctions, urlFunctions } from './library/formats.ts';
import { authorizationFunctions } from './library/authorization.ts';
import { conversions } from './library/conversions.ts';
import { listExtensions, listFunctions, setFunctions } from './library/lists.ts';
import { operators, optionalFunctions } from './library/operators.ts';
import { patternFunctions, stringFunctions } from './library/strings.ts';
import { quantityFunctions, versionFunctions } from './library/quantities.ts';
import { timeFunctions } from './library/times.ts';
import type { Scope } from './checker.ts';

/**
 * Types and functions for the expressions of MutatingAdmissionPolicies (`apiserver/pkg/cel/mutation`,
 * `cel/library/jsonpatch.go`).
 */

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
const patchFunctions: Library = [
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

/** The use of an expression: a rule, a patch, which can construct objects, or a selector of devices, which has `cel.bind`. */
export type Purpose = 'rule' | 'patch' | 'device';

type Environment = Pick<Scope, 'functions' | 'structs'>;

const environments = new Map<Purpose, Environment>();

/** The environment of kube-apiserver's expressions (`apiserver/pkg/cel/environment/base.go`), created on first use. */
export function environment(purpose: Purpose): Environment {
  const known = environments.get(purpose);
  if (known !== undefined) return known;
  const made =
    purpose === 'patch'
      ? patching()
      : purpose === 'device'
        ? environment('rule')
        : { functions: collect([]) };
  environments.set(purpose, made);
  return made;
}

function patching(): Environment {
  return { functions: collect([patchFunctions]), structs: patchStructs };
}

function collect(more: readonly Library[]): ReadonlyMap<string, readonly Overload[]> {
  const all = new Map<string, Overload[]>();
  const libraries = [
    ...more,
    operators,
    conversions,
    stringFunctions,
    patternFunctions,
    timeFunctions,
    listFunctions,
    listExtensions,
    setFunctions,
    optionalFunctions,
    urlFunctions,
    addressFunctions,
    quantityFunctions,
    versionFunctions,
    formatFunctions,
    authorizationFunctions,
  ];
  for (const [name, overloads] of libraries.flat()) all.set(name, [...(all.get(name) ?? []), ...overloads]);
  return all;
}
