import type { Call, Expression } from './syntax/ast.ts';
import type { Overload } from './overload.ts';
import * as types from './types.ts';
import { type CelType, formatType } from './types.ts';

const typeNames: ReadonlyMap<string, CelType> = new Map([
  ...[types.boolType, types.intType, types.uintType, types.doubleType, types.stringType, types.bytesType].map(
    (type): [string, CelType] => [formatType(type), type],
  ),
  ['null_type', types.nullType],
  ['list', types.listType(types.dynType)],
  ['map', types.mapType(types.dynType, types.dynType)],
  ...['net.IP', 'net.CIDR'].map((name): [string, CelType] => [name, { kind: 'opaque', name }]),
  ['optional_type', types.optionalType(types.dynType)],
  ['type', types.typeType(types.dynType)],
  ['google.protobuf.Timestamp', types.timestampType],
  ['google.protobuf.Duration', types.durationType],
]);

/** The type of a type name such as `string`; undefined for other names. */
export function namedType(name: string): CelType | undefined {
  return typeNames.get(name);
}

/** The text of a path of names, `a.b.c`. */
export function qualifiedName(expression: Expression): string | undefined {
  if (expression.kind === 'ident') return expression.name;
  if (expression.kind !== 'select' || expression.test) return undefined;
  const operand = qualifiedName(expression.operand);
  return operand === undefined ? undefined : `${operand}.${expression.field}`;
}

/** The name of the function that a checked call refers to, with its namespace, such as `sets.contains`. */
export function functionName({ name, target }: Call, overloads: readonly Overload[]): string {
  if (target === undefined || overloads[0]?.member !== false) return name;
  return `${qualifiedName(target) ?? ''}.${name}`;
}
