import { quantityType } from '../../cel/library/quantities.ts';
import { CompileError, Program } from '../../cel/program.ts';
import { anyType, boolType, type CelType, isAny, mapType, stringType } from '../../cel/types.ts';
import { type FieldError, forbiddenField, invalid, required, tooLong } from '../validation/field-errors.ts';
import type { DeviceSelector } from '../../objects/types/resource.generated.ts';
import { validateList } from './checks.ts';

/** The expressions of device selectors (`dynamic-resource-allocation/cel`). */

const attributes = mapType(stringType, mapType(stringType, anyType));
const capacity = mapType(stringType, mapType(stringType, quantityType));
const fields: ReadonlyMap<string, CelType> = new Map([
  ['driver', stringType],
  ['allowMultipleAllocations', boolType],
  ['attributes', attributes],
  ['capacity', capacity],
]);
const device: CelType = { kind: 'object', name: 'kubernetes.DRADevice', fields };
const variables: ReadonlyMap<string, CelType> = new Map([['device', device]]);

/** In bytes. */
const maxExpression = 10 * 1024;
const maxCost = 1_000_000;
const maxSelectors = 32;

const maxDriver = 63;
const maxDomain = 63;
const maxId = 32;
const maxAttributes = 32;
const maxValue = 64;

/** The largest size of what a path leads to, by the limits of ResourceSlices. */
function sizeAt([variable, field, ...path]: readonly string[]): number | undefined {
  if (variable !== 'device') return undefined;
  if (field === 'driver') return maxDriver;
  if (field === 'allowMultipleAllocations') return 1;
  if (field !== 'attributes' && field !== 'capacity') return undefined;
  const [domain, id, ...deeper] = path;
  if (domain === undefined) return maxAttributes;
  if (domain === '@keys') return id === undefined ? maxDomain : undefined;
  if (id === undefined) return maxAttributes;
  if (id === '@keys') return deeper.length === 0 ? maxId : undefined;
  return field === 'attributes' && deeper.length === 0 ? maxValue : undefined;
}

/** What is wrong with an expression; undefined: nothing. */
type Outcome = ((path: string) => FieldError) | undefined;

function compile(expression: string): Outcome {
  if (Buffer.byteLength(expression) > maxExpression) return (path) => tooLong(path, maxExpression);
  let program: Program;
  try {
    program = new Program(expression, variables, 'device');
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    const { fault } = error;
    return (path) => invalid(path, expression, fault);
  }
  if (program.resultType !== 'bool' && !isAny(program.type)) {
    const detail = `must evaluate to bool or the unknown type, not ${program.resultType}`;
    return (path) => invalid(path, expression, detail);
  }
  if (program.estimateCost(sizeAt) <= maxCost) return undefined;
  return (path) => forbiddenField(path, 'too complex, exceeds cost limit');
}

/** Outcomes by expression, made before an object is validated. */
const prepared = new WeakMap<object, ReadonlyMap<string, Outcome>>();

/** Compiles the expressions of an object, a few in each step: there may be a thousand of 10 KiB. */
export function* compileSelectors(
  object: object,
  selectors: Iterable<DeviceSelector>,
): Generator<undefined, void, undefined> {
  const outcomes = new Map<string, Outcome>();
  for (const { cel } of selectors) {
    if (cel === undefined || outcomes.has(cel.expression)) continue;
    outcomes.set(cel.expression, compile(cel.expression));
    yield undefined;
  }
  prepared.set(object, outcomes);
}

/**
 * @param object whose expressions were compiled by {@link compileSelectors}, or are now.
 * @param isStored they were judged when they were stored.
 */
export function validateSelectors(
  selectors: readonly DeviceSelector[] | undefined,
  path: string,
  object: object,
  isStored = false,
): FieldError[] {
  const outcomes = prepared.get(object);
  return validateList(selectors, maxSelectors, path, ({ cel }, at) => {
    if (cel === undefined) return [required(`${at}.cel`)];
    if (isStored) return [];
    const { expression } = cel;
    const fault = outcomes?.has(expression) === true ? outcomes.get(expression) : compile(expression);
    return fault === undefined ? [] : [fault(`${at}.cel.expression`)];
  });
}
