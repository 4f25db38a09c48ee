import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContext, Script } from 'node:vm';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

/**
 * Texts of this many repetitions take an expression that goes over them once far less than a millisecond. One that
 * begins anew at each place takes them 10 s and more.
 */
const repetitions = 100_000;
/** Milliseconds for all texts that one expression is tried on. */
const deadline = 6000;
/**
 * A fifth of the repetitions take one that begins anew a 25th of the time: 400 ms and more, half of it on a fast machine.
 * What takes so long is tried with all repetitions.
 */
const quick = { repetitions: repetitions / 5, deadline: 60 };
/** Repeated beside the characters of an expression: one of each class that there is. */
const always = ['0', 'a', 'A', ' ', '\t', '-', '/'];

interface Expression {
  readonly at: string;
  readonly source: string;
  readonly flags: string;
}

/**
 * Every regular expression that is written in src, where it comes first; those that are put together there are of its
 * pieces.
 */
function expressionsOf(folder: string): Expression[] {
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest);
      const found: Expression[] = [];
      const visit = (node: ts.Node): void => {
        if (ts.isRegularExpressionLiteral(node)) {
          const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
          const end = node.text.lastIndexOf('/');
          const at = `${name}:${line}`;
          found.push({ at, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
        }
        ts.forEachChild(node, visit);
      };
      visit(file);
      return found;
    });
  return [...new Map(all.toReversed().map((each) => [`/${each.source}/${each.flags}`, each])).values()];
}

/** What an attacker would repeat: the characters that the expression names, two of them, and the words in it. */
function unitsOf(source: string): string[] {
  const plain = source.replaceAll(/\\[a-zA-Z](?:\{[^}]*\})?|[\\^$()[\]{}*+?|]/g, '\u0000');
  const named = [...new Set(plain.replaceAll('\u0000', ''))].filter((character) => character !== ' ');
  const few = named.slice(0, 6);
  const pairs = few.flatMap((first) => few.map((second) => first + second));
  const words = plain.split('\u0000').filter((word) => word.length > 1);
  return [...new Set([...always, ...named, ...pairs, ...words])];
}

/** Applies an expression to repetitions, behind its own first word and in front of what nothing matches. */
const attack = new Script(`
  const expression = new RegExp(source, flags);
  for (const unit of units) {
    attacked = unit;
    for (const start of starts) (start + unit.repeat(repetitions) + '\\0\\n').replace(expression, '');
  }
  attacked = undefined;
`);

/** The first unit whose repetition takes too long; undefined: none does. */
function slowUnit({ source, flags }: Expression, timeout: number, times = repetitions): unknown {
  const word = /^\^?([\w ]+)/.exec(source)?.[1] ?? '';
  const starts = [...new Set(['', word, `${word}\u0000`])];
  const sandbox = { source, flags, units: unitsOf(source), starts, repetitions: times, attacked: undefined };
  try {
    attack.runInContext(createContext(sandbox), { timeout });
  } catch (error) {
    // Of another realm: it is no instance of our Error.
    if (!String(error).includes('Script execution timed out')) throw error;
  }
  return sandbox.attacked;
}

describe('no regular expression goes over a text again and again', () => {
  test.each([
    [/\/+$/, '/'],
    [/^(a+)+$/, 'a'],
    [/^\d*\.?\d*x$/, '0'],
  ])('%s is one that would be found', ({ source, flags }, unit) => {
    // A process that the machine stopped for as long is slow at whatever unit it is then.
    const found = [500, 2000, deadline].some(
      (timeout) => slowUnit({ at: '', source, flags }, timeout) === unit,
    );
    expect(found).toBe(true);
    expect(slowUnit({ at: '', source, flags }, quick.deadline, quick.repetitions)).toBeDefined();
  });

  test.each(expressionsOf('src'))('$at /$source/$flags', (expression) => {
    if (slowUnit(expression, quick.deadline, quick.repetitions) === undefined) return;
    // A process that the machine stopped for a while was slow once; such an expression is, every time.
    const tries = [deadline, deadline, 2 * deadline];
    expect(tries.every((time) => slowUnit(expression, time) !== undefined)).toBe(false);
  });
});
