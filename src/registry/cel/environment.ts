import { addressFunctions } from './library/addresses.ts';
import { conversions } from './library/conversions.ts';
import { formatFunctions } from './library/formats.ts';
import { listFunctions, setFunctions } from './library/lists.ts';
import { operators } from './library/operators.ts';
import { optionalFunctions } from './library/optionals.ts';
import { patternFunctions } from './library/patterns.ts';
import { quantityFunctions } from './library/quantities.ts';
import { stringFunctions } from './library/strings.ts';
import { timeFunctions } from './library/times.ts';
import { urlFunctions } from './library/urls.ts';
import { versionFunctions } from './library/versions.ts';
import type { Overload } from './overload.ts';

let functions: ReadonlyMap<string, readonly Overload[]> | undefined;

/** All functions that kube-apiserver's expressions have (`apiserver/pkg/cel/environment/base.go`), made when first asked for. */
export function environment(): ReadonlyMap<string, readonly Overload[]> {
  functions ??= collect();
  return functions;
}

function collect(): ReadonlyMap<string, readonly Overload[]> {
  const all = new Map<string, Overload[]>();
  const libraries = [
    operators,
    conversions,
    stringFunctions,
    patternFunctions,
    timeFunctions,
    listFunctions,
    setFunctions,
    optionalFunctions,
    urlFunctions,
    addressFunctions,
    quantityFunctions,
    versionFunctions,
    formatFunctions,
  ];
  for (const [name, overloads] of libraries.flat()) all.set(name, [...(all.get(name) ?? []), ...overloads]);
  return all;
}
