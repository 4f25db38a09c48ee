import type { Param } from '../overload.ts';
import type { CelType } from '../types.ts';
import type { OpaqueValue, Value } from '../values.ts';

/** The type of a library's values. */
export function opaque(name: string): CelType & { kind: 'opaque' } {
  return { kind: 'opaque', name };
}

/** A parameter whose values are of a library's class. */
export function instance<T extends OpaqueValue>(
  type: CelType & { kind: 'opaque' },
  made: abstract new (...args: never[]) => T,
): Param<T> {
  return { type, is: (value: Value): value is T => value instanceof made };
}
