import { type Expression, partsOf } from './syntax/ast.ts';
import type { Checked } from './checker.ts';
import type { Issue } from './syntax/source.ts';
import { type CelType, formatType } from './types.ts';

/**
 * Checks that the items of list and map literals have the same type (cel-go `cel/validator.go`
 * ValidateHomogeneousAggregateLiterals). Arguments of `format` may have different types.
 */
export function validateHomogeneousLiterals(expression: Expression, checked: Checked): Issue[] {
  const { lists, maps } = literalsIn(expression);
  return [...lists, ...maps].flatMap((literal) => mismatchesIn(literal, checked));
}

interface Literals {
  readonly lists: readonly Expression[];
  readonly maps: readonly Expression[];
}

function literalsIn(expression: Expression): Literals {
  if (expression.kind === 'call' && expression.name === 'format') return { lists: [], maps: [] };
  const parts = partsOf(expression).map(literalsIn);
  const lists = parts.flatMap((part) => part.lists);
  const maps = parts.flatMap((part) => part.maps);
  if (expression.kind === 'list') return { lists: [expression, ...lists], maps };
  return { lists, maps: expression.kind === 'map' ? [expression, ...maps] : maps };
}

/** The first mismatch of a list; all mismatching keys and values of a map. */
function mismatchesIn(literal: Expression, { types }: Checked): Issue[] {
  const typeOf = (part: Expression, optional: boolean) => {
    const type = types.get(part);
    return optional && type?.kind === 'optional' ? type.of : type;
  };
  if (literal.kind === 'list') {
    const items = literal.elements.map(({ value, optional }) => ({
      at: value.at,
      type: typeOf(value, optional),
    }));
    return mismatches(items).slice(0, 1);
  }
  if (literal.kind !== 'map') return [];
  const keys = literal.entries.map(({ key }) => ({ at: key.at, type: typeOf(key, false) }));
  const values = literal.entries.map(({ value, optional }) => ({
    at: value.at,
    type: typeOf(value, optional),
  }));
  return [...mismatches(keys), ...mismatches(values)].sort((a, b) => a.at - b.at);
}

function mismatches(parts: readonly { readonly at: number; readonly type: CelType | undefined }[]): Issue[] {
  const [first] = parts;
  if (first?.type === undefined) return [];
  const wanted = formatType(first.type);
  return parts.flatMap(({ at, type }) => {
    const found = type === undefined ? wanted : formatType(type);
    return found === wanted ? [] : [{ at, message: `expected type '${wanted}' but found '${found}'` }];
  });
}
