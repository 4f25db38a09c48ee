/** What a strategic merge patch may get wrong, in the words of apimachinery `util/mergepatch/errors.go`. */
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
  return new StrategicPatchError(`unknown patch type: ${goPrint(directive)} in map: ${goPrint(item)}`);
}

export function badFormat(
  what: 'retainKeys' | 'setElementOrder list' | 'primitive list',
): StrategicPatchError {
  return new StrategicPatchError(`invalid patch format of ${what}`, 'badRequest');
}

/** Go types of the values in a `map[string]interface{}`. */
export function wrongListArgument(value: unknown): StrategicPatchError {
  const actual =
    value === null
      ? '<nil>'
      : typeof value === 'string'
        ? 'string'
        : typeof value === 'boolean'
          ? 'bool'
          : typeof value === 'number'
            ? 'int64'
            : 'map[string]interface {}';
  return new StrategicPatchError(`expected a []interface {}, but received a ${actual}`);
}

export function wrongMapArgument(value: unknown): StrategicPatchError {
  const actual = typeof value === 'number' ? 'int64' : typeof value === 'boolean' ? 'bool' : typeof value;
  return new StrategicPatchError(`expected a map[string]interface {}, but received a ${actual}`);
}
