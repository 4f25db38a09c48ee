import { RE2JS } from 're2js';
import { EvaluationError } from '../values.ts';
import { compileSteps, maxCompileSteps } from './size.ts';

/** Opcodes, with the numbers of Go's `regexp/syntax` InstOp that re2js uses. */
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
  /** The next instruction. */
  readonly out: number;
  /** The second branch of an alternative; for `emptyWidth` the required conditions as bits. */
  readonly arg: number;
  readonly runes: ArrayLike<number>;
  /** True when the instruction consumes this code point. */
  matchRune(codePoint: number): boolean;
}

/** A compiled pattern, with the predecessors of each instruction. */
export interface PatternProgram {
  readonly instructions: readonly Instruction[];
  readonly start: number;
  readonly matches: readonly number[];
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
  const made = compile(pattern);
  if (compiled.size >= maxCompiled) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

function compile(pattern: string): PatternProgram {
  let program: unknown;
  try {
    program = RE2JS.compile(pattern).re2().prog;
  } catch (error) {
    throw new EvaluationError(error instanceof Error ? error.message : String(error));
  }
  if (!isProgram(program)) throw new TypeError('re2js compiles patterns to another form than it did');
  return read(program);
}

/** The program as re2js has it. */
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

/** True when the instruction consumes the code point. */
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
