import { RE2JS } from 're2js';
import { EvaluationError } from '../values.ts';
import { compileSteps } from './size.ts';

/** What an instruction does, by the numbers of Go's `regexp/syntax` InstOp as the library has them. */
export const operation = {
  alternative: 1,
  alternativeMatch: 2,
  capture: 3,
  emptyWidth: 4,
  fail: 5,
  match: 6,
  nothing: 7,
  character: 8,
  oneCharacter: 9,
  anyCharacter: 10,
  anyButNewline: 11,
} as const;

/** An instruction of a compiled pattern (Go's `regexp/syntax` Inst). */
export interface Instruction {
  readonly op: number;
  /** Where it goes on. */
  readonly out: number;
  /** The second choice of an alternative; what must hold of a place, in bits. */
  readonly arg: number;
  readonly runes: ArrayLike<number>;
  /** True for a code point that the instruction goes on with. */
  matchRune(codePoint: number): boolean;
}

/** A compiled pattern, and what leads to each of its instructions. */
export interface PatternProgram {
  readonly instructions: readonly Instruction[];
  readonly start: number;
  readonly matches: readonly number[];
  /** By instruction: those that read a character and go on there. */
  readonly readersTo: readonly (readonly number[])[];
  /** By instruction: those that read none and go on there. */
  readonly emptyTo: readonly (readonly number[])[];
}

/** What Go says of patterns that are too large for it; here they are too large sooner, so that none takes long. */
const tooLarge = 'error parsing regexp: expression too large';
/** About a tenth of a second: 20,000 instructions. */
const mostSteps = 10_000_000;
const mostCompiled = 200;
const compiled = new Map<string, PatternProgram>();

/** True for a pattern that need not be compiled any more. */
export function isCompiled(pattern: string): boolean {
  return compiled.has(pattern);
}

/**
 * A pattern in Go's syntax.
 *
 * @throws {EvaluationError} for what is none.
 */
export function compilePattern(pattern: string): PatternProgram {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  if (compileSteps(pattern) > mostSteps) throw new EvaluationError(tooLarge);
  const made = compile(pattern);
  if (compiled.size >= mostCompiled) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

function compile(pattern: string): PatternProgram {
  let program: unknown;
  try {
    program = RE2JS.compile(pattern).re2Input.prog;
  } catch (error) {
    throw new EvaluationError(error instanceof Error ? error.message : String(error));
  }
  if (!isProgram(program)) throw new TypeError('re2js compiles patterns to another form than it did');
  return read(program);
}

/** The library's own form. */
interface Compiled {
  readonly inst: readonly Instruction[];
  readonly start: number;
}

function isProgram(value: unknown): value is Compiled {
  return typeof value === 'object' && value !== null && 'inst' in value && 'start' in value;
}

function read(program: Compiled): PatternProgram {
  const instructions = program.inst;
  const readersTo = instructions.map((): number[] => []);
  const emptyTo = instructions.map((): number[] => []);
  const matches: number[] = [];
  for (const [at, { op, out, arg }] of instructions.entries()) {
    if (op === operation.match) matches.push(at);
    else if (op >= operation.character) readersTo[out]?.push(at);
    else if (op !== operation.fail) emptyTo[out]?.push(at);
    if (op === operation.alternative || op === operation.alternativeMatch) emptyTo[arg]?.push(at);
  }
  return { instructions, start: program.start, matches, readersTo, emptyTo };
}

/** True for an instruction that goes on with the code point. */
export function goesOnWith(instruction: Instruction, codePoint: number): boolean {
  switch (instruction.op) {
    case operation.oneCharacter:
      return instruction.runes[0] === codePoint;
    case operation.anyCharacter:
      return true;
    case operation.anyButNewline:
      return codePoint !== 0x0a;
    default:
      return instruction.matchRune(codePoint);
  }
}
