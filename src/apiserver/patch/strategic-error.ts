/** What a strategic merge patch may get wrong, in the words of apimachinery `util/mergepatch/errors.go`. */
import { goQuote } from '../../objects/go-text.ts';
import { isRecord } from '../../objects/json.ts';
import { RawNumber } from '../schema/json/go-json.ts';
import { goPrint } from './go-print.ts';

/** A patch that cannot be merged. */
export class StrategicPatchError extends Error {
  override readonly name = 'StrategicPatchError';
  /** How the API server answers: `badRequest` 400, `unprocessable` 422, `plain` 500. */
  readonly answer: 'badRequest' | 'unprocessable' | 'plain';

  constructor(message: string, answer: StrategicPatchError['answer'] = 'plain') {
    super(message);
    this.answer = answer;
  }
}

export function noMergeKey(item: unknown, mergeKey: string): StrategicPatchError {
  return new StrategicPatchError(`map: ${goPrint(item)} does not contain declared merge key: ${mergeKey}`);
}

export function badPatchType(directive: unknown, item: unknown): StrategicPatchError {
  // Go's %s has a special form for values that are not strings.
  const shown =
    typeof directive === 'string'
      ? directive
      : directive === null
        ? noType
        : Array.isArray(directive) || isRecord(directive)
          ? goPrint(directive)
          : `%!s(${goType(directive)}=${goPrint(directive)})`;
  return new StrategicPatchError(`unknown patch type: ${shown} in map: ${goPrint(item)}`);
}

/** A field that a directive names and the type does not have. */
export function noSuchField(struct: string, field: string): StrategicPatchError {
  return new StrategicPatchError(
    `unable to find api field in struct ${struct} for the json field ${goQuote(field)}`,
  );
}

export function badFormat(
  what: 'retainKeys' | 'setElementOrder list' | 'primitive list',
): StrategicPatchError {
  return new StrategicPatchError(`invalid patch format of ${what}`, 'badRequest');
}

export function wrongListArgument(value: unknown): StrategicPatchError {
  return new StrategicPatchError(`expected a []interface {}, but received a ${goType(value)}`);
}

export function wrongMapArgument(value: unknown): StrategicPatchError {
  return new StrategicPatchError(`expected a map[string]interface {}, but received a ${goType(value)}`);
}

/** What %s makes of a nil. */
const noType = '%!s(<nil>)';

/** Go types of the values in a `map[string]interface{}`. */
export function goType(value: unknown): string {
  if (value === null) return noType;
  if (value instanceof RawNumber) return value.isInteger ? 'int64' : 'float64';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'string') return 'string';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}
