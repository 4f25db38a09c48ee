import { RE2JS } from 're2js';
import { EvaluationError } from '../values.ts';
import {
  type CharacterSet,
  compileSteps,
  maxCompileSteps,
  type Part,
  parsePattern,
  assertions,
} from './syntax.ts';
import { errorMessage } from '../../objects/status.ts';
import type { Meter } from '../meter.ts';

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

/**
 * Finds all matches of a pattern in time linear to the text. re2js, like Go, searches for each match from the end of
 * the last one: where every search reads to the end of the text (`.*x|a`), all of them together take quadratic time.
 *
 * Here a text is read twice (Frisch and Cardelli, "Greedy regular expression matching"): from its end, to find the
 * instructions that lead to a match from each offset; then from its start, taking the first of them at each branch.
 * That is the match that Go finds, which has the same preference.
 */

const wordBits = 32;
/** Steps of the meter per visited instruction; a step is about 10 ns. */
const perVisit = 2;
/** The same for characters beyond ASCII, which re2js may have to test. */
const perNonAsciiVisit = 40;

type Reader = Extract<Instruction, { kind: 'character' }>;

/** True when some part of the text matches. @throws {CostLimitError} */
export function hasMatch(program: PatternProgram, text: string, meter: Meter): boolean {
  const scan = new BackwardScan(program, text, meter);
  let found = false;
  do found ||= scan.has(program.start);
  while (!found && scan.back());
  return found;
}

/**
 * The leftmost matches that do not overlap, as Go's `FindAllString` returns them: an empty match next to the previous
 * match does not count.
 *
 * @param limit of the number of matches; negative for none.
 * @throws {CostLimitError}
 */
export function findMatches(program: PatternProgram, text: string, limit: number, meter: Meter): string[] {
  const most = limit < 0 ? text.length + 1 : limit;
  if (most === 0) return [];
  const reach = new Reachability(program, text, meter);
  const found: string[] = [];
  let before = -1;
  let at = 0;
  while (found.length < most && at <= text.length) {
    if (!reach.has(at, program.start)) {
      at += widthAt(text, at);
      continue;
    }
    const end = matchEnd(reach, at);
    if (end > at || at !== before) found.push(text.slice(at, end));
    before = end;
    at = end > at ? end : at + widthAt(text, at);
  }
  return found;
}

/** The instructions that lead to a match, for every offset of a text. */
class Reachability {
  readonly program: PatternProgram;
  readonly text: string;
  readonly meter: Meter;
  /** By instruction: the number of the last walk that visited it. */
  readonly seen: Int32Array;
  #walk = 0;
  readonly #words: number;
  readonly #bits: Uint32Array;

  constructor(program: PatternProgram, text: string, meter: Meter) {
    this.program = program;
    this.text = text;
    this.meter = meter;
    this.seen = new Int32Array(program.instructions.length).fill(-1);
    this.#words = Math.ceil(program.instructions.length / wordBits);
    meter.work((text.length + 1) * this.#words);
    this.#bits = new Uint32Array((text.length + 1) * this.#words);
    const scan = new BackwardScan(program, text, meter);
    do this.#keep(scan);
    while (scan.back());
  }

  has(at: number, instruction: number): boolean {
    const word = this.#bits[at * this.#words + (instruction >>> 5)] ?? 0;
    return (word & (1 << (instruction & 31))) !== 0;
  }

  /** The number of the present walk over instructions that consume no character. */
  nextWalk(): number {
    this.#walk += 1;
    return this.#walk;
  }

  #keep(scan: BackwardScan): void {
    const row = scan.at * this.#words;
    for (const instruction of scan.alive()) {
      const index = row + (instruction >>> 5);
      this.#bits[index] = (this.#bits[index] ?? 0) | (1 << (instruction & 31));
    }
  }
}

/** Walks from the end of a text to its start with the instructions that lead to a match. */
class BackwardScan {
  /** The offset in UTF-16 units, never inside a surrogate pair. */
  at: number;
  readonly #program: PatternProgram;
  readonly #text: string;
  readonly #meter: Meter;
  /** By instruction: the last offset at which it led to a match. */
  readonly #foundAt: Int32Array;
  #alive: Int32Array;
  #next: Int32Array;
  #count = 0;

  constructor(program: PatternProgram, text: string, meter: Meter) {
    const size = program.instructions.length;
    this.#program = program;
    this.#text = text;
    this.#meter = meter;
    this.#foundAt = new Int32Array(size).fill(-1);
    this.#alive = new Int32Array(size);
    this.#next = new Int32Array(size);
    this.at = text.length;
    this.#addEmpty();
  }

  has(instruction: number): boolean {
    return this.#foundAt[instruction] === this.at;
  }

  alive(): Int32Array {
    return this.#alive.subarray(0, this.#count);
  }

  /** Moves to the previous offset. @returns false at the start. @throws {CostLimitError} */
  back(): boolean {
    if (this.at === 0) return false;
    const behind = this.alive();
    const codePoint = codePointBefore(this.#text, this.at);
    this.at -= codePoint > 0xffff ? 2 : 1;
    [this.#alive, this.#next] = [this.#next, this.#alive];
    this.#count = 0;
    let steps = 1;
    for (const instruction of behind) {
      for (const reader of this.#program.readersTo[instruction] ?? []) {
        steps += 1;
        const candidate = this.#program.instructions[reader];
        if (candidate?.kind === 'character' && candidate.set.has(codePoint)) this.#add(reader);
      }
    }
    this.#meter.work(steps * (codePoint < 128 ? perVisit : perNonAsciiVisit));
    this.#addEmpty();
    return true;
  }

  /** Adds the instructions that lead to a match from this offset without consuming a character. */
  #addEmpty(): void {
    const holds = conditions(this.#text, this.at);
    this.#add(this.#program.match);
    let steps = 0;
    for (let index = 0; index < this.#count; index++) {
      for (const origin of this.#program.emptyTo[this.#alive[index] ?? 0] ?? []) {
        steps += 1;
        const candidate = this.#program.instructions[origin];
        if (candidate?.kind === 'assertion' && (candidate.condition & ~holds) !== 0) continue;
        this.#add(origin);
      }
    }
    this.#meter.work(steps * perVisit);
  }

  #add(instruction: number): void {
    if (this.#foundAt[instruction] === this.at) return;
    this.#foundAt[instruction] = this.at;
    this.#alive[this.#count] = instruction;
    this.#count += 1;
  }
}

/** The end of the match that begins at an offset where one exists. @throws {CostLimitError} */
function matchEnd(reach: Reachability, start: number): number {
  const { program, text } = reach;
  let at = start;
  let from = program.start;
  for (;;) {
    const reader = preferred(reach, from, at);
    if (reader === undefined) return at;
    at += widthAt(text, at);
    from = reader.next;
  }
}

/** The instruction that consumes the next character on the preferred path; undefined where the match ends. */
function preferred(reach: Reachability, from: number, at: number): Reader | undefined {
  const { instructions } = reach.program;
  const walk = reach.nextWalk();
  const waiting = [from];
  let found: Reader | undefined;
  let steps = 0;
  for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
    steps += 1;
    const instruction = instructions[index];
    if (instruction === undefined || reach.seen[index] === walk || !reach.has(at, index)) continue;
    reach.seen[index] = walk;
    if (instruction.kind === 'match') break;
    if (instruction.kind === 'character') {
      found = instruction;
      break;
    }
    if (instruction.kind === 'branch') waiting.push(instruction.other);
    waiting.push(instruction.next);
  }
  reach.meter.work(steps * perVisit);
  return found;
}

function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function codePointBefore(text: string, at: number): number {
  const pair = at > 1 ? (text.codePointAt(at - 2) ?? 0) : 0;
  return pair > 0xffff ? pair : text.charCodeAt(at - 1);
}

function isWord(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x5f
  );
}

/** The conditions that hold at an offset. */
function conditions(text: string, at: number): number {
  const before = at === 0 ? -1 : text.charCodeAt(at - 1);
  const after = at === text.length ? -1 : text.charCodeAt(at);
  let holds = isWord(before) === isWord(after) ? assertions.noWordBoundary : assertions.wordBoundary;
  if (before === -1) holds |= assertions.textStart | assertions.lineStart;
  if (before === 0x0a) holds |= assertions.lineStart;
  if (after === -1) holds |= assertions.textEnd | assertions.lineEnd;
  if (after === 0x0a) holds |= assertions.lineEnd;
  return holds;
}
