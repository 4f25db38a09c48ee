import { badRequest } from '../../objects/status-errors.ts';
import type { RequestInfo } from './exchange.ts';

const units: ReadonlySet<string> = new Set(['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h']);
/** A text longer than this is not parsed. */
const maxLength = 64;

/**
 * The `timeout` parameter of every request that does not last (apiserver `filters/request_deadline.go`). Only
 * whether it is a duration is looked at: every request gets the longest time that there is.
 *
 * @throws {StatusError} 400 in the words of Go's `time.ParseDuration`.
 */
export function checkRequestTimeout(query: URLSearchParams, info: RequestInfo): void {
  const text = query.get('timeout') ?? '';
  if (text === '' || isLongRunning(info)) return;
  const problem = durationProblem(text);
  if (problem !== undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: ${problem}`);
  }
}

function durationProblem(text: string): string | undefined {
  const quoted = JSON.stringify(text);
  const invalid = `invalid duration ${quoted}`;
  let rest = text.replace(/^[+-]/, '');
  if (rest === '0') return undefined;
  if (rest === '' || text.length > maxLength) return invalid;
  while (rest !== '') {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) return invalid;
    rest = rest.slice(number.length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? '';
    if (unit === '') return `missing unit in duration ${quoted}`;
    if (!units.has(unit)) return `unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
    rest = rest.slice(unit.length);
  }
  return undefined;
}

const verbs: ReadonlySet<string> = new Set(['watch', 'proxy']);

const subresources: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

/**
 * Whether a request is exempt from the limits of time and number (apiserver `server/filters/longrunning.go`,
 * BasicLongRunningRequestCheck).
 */
export function isLongRunning({ verb, subresource }: RequestInfo): boolean {
  return verbs.has(verb) || subresources.has(subresource);
}
