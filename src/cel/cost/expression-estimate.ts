import type { Expression } from '../ast.ts';
import type { CelType } from '../types.ts';
import type { SizeRange } from './range.ts';

/** What is known of a part of an expression. */
export interface Estimate {
  readonly cost: number;
  readonly type: CelType | undefined;
  /** The way to the value; empty for what an expression makes. */
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
