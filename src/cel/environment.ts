import { addressFunctions } from './library/addresses.ts';
import { authorizationFunctions } from './library/authorization.ts';
import { conversions } from './library/conversions.ts';
import { formatFunctions } from './library/formats.ts';
import { listExtensions } from './library/list-extensions.ts';
import { listFunctions, setFunctions } from './library/lists.ts';
import { operators } from './library/operators.ts';
import { optionalFunctions } from './library/optionals.ts';
import { patternFunctions } from './library/patterns.ts';
import { quantityFunctions } from './library/quantities.ts';
import { stringFunctions } from './library/strings.ts';
import { timeFunctions } from './library/times.ts';
import { urlFunctions } from './library/urls.ts';
import { versionFunctions } from './library/versions.ts';
import type { Scope } from './checker.ts';
import type { Library, Overload } from './overload.ts';
import { patchFunctions, patchStructs } from './patch-types.ts';

/** The use of an expression: a rule, or a patch, which can construct objects. */
export type Purpose = 'rule' | 'patch';

type Environment = Pick<Scope, 'functions' | 'structs'>;

const environments = new Map<Purpose, Environment>();

/** The environment of kube-apiserver's expressions (`apiserver/pkg/cel/environment/base.go`), created on first use. */
export function environment(purpose: Purpose): Environment {
  const known = environments.get(purpose);
  if (known !== undefined) return known;
  const made = purpose === 'rule' ? { functions: collect([]) } : patching();
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
