import { RE2JS } from 're2js';
import { EvaluationError } from '../values.ts';
import type { CharacterSet } from './syntax.ts';
import { compileSteps, maxCompileSteps } from './syntax.ts';
import { type Part, parsePattern } from './syntax.ts';
import { errorMessage } from '../../objects/status.ts';

/**
 * An instruction of a compiled pattern. `next` follows it; a branch prefers `next` to `other`; an assertion passes where
 * all bits of its condition hold.
 */
export type Instruction =
  | { readonly kind: 'match' }
  | { readonly kind: 'character'; readonly next: number; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly next: number; readonly condition: number }
  | Readonly<Branch>;

interface Branch {
  readonly kind: 'branch';
  next: number;
  other: number;
}

/** A compiled pattern, with the predecessors of each instruction. */
export interface PatternProgram {
  readonly instructions: readonly Instruction[];
  readonly start: number;
  /** The number of the instruction that ends a match. */
  readonly match: number;
  /** By instruction: the predecessors that consume a character. */
  readonly readersTo: readonly (readonly number[])[];
  /** By instruction: the predecessors that consume none. */
  readonly emptyTo: readonly (readonly number[])[];
}

/** Go's error for patterns that are too large. The limit here is lower, to bound the time. */
const tooLarge = 'error parsing regexp: expression too large';
const maxCompiled = 200;
const compiled = new Map<string, PatternProgram>();

/** True for a pattern that is in the cache. */
export function isCompiled(pattern: string): boolean {
  return compiled.has(pattern);
}

/**
 * Compiles a pattern in Go's syntax.
 *
 * @throws {EvaluationError} for an invalid pattern.
 */
export function compilePattern(pattern: string): PatternProgram {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  if (compileSteps(pattern) > maxCompileSteps) throw new EvaluationError(tooLarge);
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    throw new EvaluationError(errorMessage(error));
  }
  const made = new Compiler().compile(parsePattern(pattern));
  if (compiled.size >= maxCompiled) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

/** Writes a program from its end, so that the successor of each part is known (Go's `regexp/syntax/compile.go`). */
class Compiler {
  readonly #instructions: Instruction[] = [{ kind: 'match' }];

  compile(pattern: Part): PatternProgram {
    const start = this.#write(pattern, 0);
    const instructions = this.#instructions;
    const readersTo = instructions.map((): number[] => []);
    const emptyTo = instructions.map((): number[] => []);
    for (const [number, instruction] of instructions.entries()) {
      if (instruction.kind === 'match') continue;
      (instruction.kind === 'character' ? readersTo : emptyTo)[instruction.next]?.push(number);
      if (instruction.kind === 'branch') emptyTo[instruction.other]?.push(number);
    }
    return { instructions, start, match: 0, readersTo, emptyTo };
  }

  /** @returns the first instruction of the part, after which `next` follows. */
  #write(part: Part, next: number): number {
    switch (part.kind) {
      case 'character':
        return this.#add({ kind: 'character', next, set: part.set });
      case 'assertion':
        return this.#add({ kind: 'assertion', next, condition: part.condition });
      case 'sequence':
        return part.parts.reduceRight((follows, inner) => this.#write(inner, follows), next);
      case 'choice':
        return part.parts
          .map((inner) => this.#write(inner, next))
          .reduceRight((other, first) => this.#branch(first, other, true));
      case 'repetition':
        return this.#repetition(part, next);
    }
  }

  #repetition({ part, least, most, greedy }: Extract<Part, { kind: 'repetition' }>, next: number): number {
    let start = next;
    if (most === Infinity) {
      const again: Branch = { kind: 'branch', next, other: next };
      const number = this.#add(again);
      start = this.#write(part, number);
      if (greedy) again.next = start;
      else again.other = start;
      // As in Go, `x*` is `(x+)?` where x can match the empty string, which affects the preference.
      if (least === 0) return isNullable(part) ? this.#branch(start, next, greedy) : number;
    } else {
      for (let n = least; n < most; n++) start = this.#branch(this.#write(part, start), next, greedy);
    }
    for (let n = most === Infinity ? 1 : 0; n < least; n++) start = this.#write(part, start);
    return start;
  }

  #branch(first: number, other: number, prefersFirst: boolean): number {
    return this.#add({
      kind: 'branch',
      next: prefersFirst ? first : other,
      other: prefersFirst ? other : first,
    });
  }

  #add(instruction: Instruction): number {
    return this.#instructions.push(instruction) - 1;
  }
}

/** True for a part that may match the empty text. */
function isNullable(part: Part): boolean {
  switch (part.kind) {
    case 'character':
      return false;
    case 'assertion':
      return true;
    case 'sequence':
      return part.parts.every(isNullable);
    case 'choice':
      return part.parts.some(isNullable);
    case 'repetition':
      return part.least === 0 || isNullable(part.part);
  }
}
