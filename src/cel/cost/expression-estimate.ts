import type { Expression } from '../ast.ts';
import type { CelType } from '../types.ts';
import type { SizeRange } from './range.ts';

/** What is known about a subexpression. */
export interface Estimate {
  readonly cost: number;
  readonly type: CelType | undefined;
  /** The path of the value; empty for computed values. */
  readonly path: readonly string[];
  readonly size: SizeRange | undefined;
  readonly entry: EntrySize | undefined;
  readonly expression: Expression;
}

/** Sizes of the items of a list, or of the keys and values of a map. */
export interface EntrySize {
  readonly container: 'list' | 'map';
  readonly key: SizeRange;
  readonly value: SizeRange;
}
