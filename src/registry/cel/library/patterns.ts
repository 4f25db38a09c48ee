import { RE2JS } from 're2js';
import type { Meter } from '../meter.ts';
import { int, type Library, member, overload2, overload3, text } from '../overload.ts';
import { boolType, listType, stringType } from '../types.ts';
import { EvaluationError, PlainList } from '../values.ts';

const compiled = new Map<string, RE2JS>();
const maxCompiled = 200;

/** A pattern in Go's syntax, matched in time linear to the text. @throws {EvaluationError} for what is none. */
export function compilePattern(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let made: RE2JS;
  try {
    made = RE2JS.compile(pattern);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new EvaluationError(reason);
  }
  if (compiled.size >= maxCompiled) compiled.clear();
  compiled.set(pattern, made);
  return made;
}

function findAll(value: string, pattern: string, limit: bigint, meter: Meter): PlainList {
  meter.match(value, pattern);
  const matcher = compilePattern(pattern).matcher(value);
  const found: string[] = [];
  while ((limit < 0n || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '');
  return new PlainList(found);
}

const matches = overload2(text, text, boolType, (value, pattern, meter) => {
  meter.match(value, pattern);
  return compilePattern(pattern).matcher(value).find();
});

/** `matches`, and Kubernetes' `find` and `findAll` (`apiserver/pkg/cel/library/regex.go`). */
export const patternFunctions: Library = [
  ['matches', [matches, member(matches)]],
  [
    'find',
    [
      member(
        overload2(text, text, stringType, (value, pattern, meter) => {
          meter.match(value, pattern);
          const matcher = compilePattern(pattern).matcher(value);
          return matcher.find() ? (matcher.group() ?? '') : '';
        }),
      ),
    ],
  ],
  [
    'findAll',
    [
      member(
        overload2(text, text, listType(stringType), (value, pattern, meter) =>
          findAll(value, pattern, -1n, meter),
        ),
      ),
      member(overload3(text, text, int, listType(stringType), findAll)),
    ],
  ],
];
