import type { Meter } from '../meter.ts';
import { intParam, type Library, member, overload2, overload3, stringParam } from '../overload.ts';
import { compilePattern, isCompiled, type PatternProgram } from '../patterns/program.ts';
import { findMatches, hasMatch } from '../patterns/search.ts';
import { compileSteps } from '../patterns/size.ts';
import { boolType, listType, stringType } from '../types.ts';
import { EvaluationError, PlainList } from '../values.ts';

function compiled(pattern: string, meter: Meter): PatternProgram {
  meter.compile(pattern, compileSteps(pattern), isCompiled(pattern));
  return compilePattern(pattern);
}

/** @throws {EvaluationError} with the text of Kubernetes' functions. */
function found(value: string, pattern: string, limit: number, meter: Meter): string[] {
  let program: PatternProgram;
  try {
    program = compiled(pattern, meter);
  } catch (error) {
    if (error instanceof EvaluationError) throw new EvaluationError(`Illegal regex: ${error.message}`);
    throw error;
  }
  return findMatches(program, value, limit, meter);
}

function findAll(value: string, pattern: string, limit: bigint, meter: Meter): PlainList {
  return new PlainList(found(value, pattern, Number(limit), meter));
}

const matches = overload2(stringParam, stringParam, boolType, (value, pattern, meter) =>
  hasMatch(compiled(pattern, meter), value, meter),
);

const find = overload2(
  stringParam,
  stringParam,
  stringType,
  (value, pattern, meter) => found(value, pattern, 1, meter)[0] ?? '',
);

/** `matches`, and Kubernetes' `find` and `findAll` (`apiserver/pkg/cel/library/regex.go`). */
export const patternFunctions: Library = [
  ['matches', [matches, member(matches)]],
  ['find', [member(find)]],
  [
    'findAll',
    [
      member(
        overload2(stringParam, stringParam, listType(stringType), (value, pattern, meter) =>
          findAll(value, pattern, -1n, meter),
        ),
      ),
      member(overload3(stringParam, stringParam, intParam, listType(stringType), findAll)),
    ],
  ],
];
