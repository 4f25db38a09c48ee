import { isRecord } from '../objects/json.ts';
import { isStatus, type StatusCause, type StatusDetails, StatusError } from '../objects/status.ts';
import { ConnectionError, type ResponseHeaders } from './transport.ts';

/** Reasons for answers without one (of a proxy, or an old server). */
const reasons = new Map<number, string>([
  [400, 'BadRequest'],
  [401, 'Unauthorized'],
  [403, 'Forbidden'],
  [404, 'NotFound'],
  [405, 'MethodNotAllowed'],
  [406, 'NotAcceptable'],
  [409, 'Conflict'],
  [410, 'Gone'],
  [413, 'RequestEntityTooLarge'],
  [415, 'UnsupportedMediaType'],
  [422, 'Invalid'],
  [429, 'TooManyRequests'],
  [500, 'InternalError'],
  [503, 'ServiceUnavailable'],
  [504, 'Timeout'],
]);

/** Characters of an answer that is no Status which the message shows. */
const shownBody = 200;

/** Makes the error of an answer of 400 and above. */
export function errorFromResponse(
  what: string,
  code: number,
  headers: ResponseHeaders,
  body: Buffer,
): StatusError {
  const retryAfter = retryAfterSeconds(headers);
  const status = parseStatus(body);
  if (status !== undefined) return errorFromStatus(status, code, retryAfter);
  const text = body
    .subarray(0, 4 * shownBody)
    .toString('utf8')
    .trim()
    .slice(0, shownBody);
  const message = `${what}: the server answered ${code}${text === '' ? '' : `: ${text}`}`;
  return new StatusError(
    code,
    reasons.get(code) ?? '',
    message,
    retryAfter === undefined ? {} : { details: { retryAfterSeconds: retryAfter } },
  );
}

/**
 * Makes the error of a Status object: the body of a failed answer, or the object of a watch's ERROR event. Members
 * of wrong types are left out.
 *
 * @param code the HTTP status, where the Status has none.
 */
export function errorFromStatus(value: unknown, code = 500, retryAfter?: number): StatusError {
  const status = isRecord(value) ? value : {};
  const given = status['code'];
  const actual = typeof given === 'number' && given >= 400 && given <= 599 ? given : code;
  const details = readDetails(status['details'], retryAfter);
  const metadata = status['metadata'];
  const token = isRecord(metadata) ? metadata['continue'] : undefined;
  return new StatusError(
    actual,
    text(status['reason']) ?? reasons.get(actual) ?? '',
    text(status['message']) ?? `the server answered ${actual}`,
    {
      ...(details === undefined ? {} : { details }),
      ...(typeof token === 'string' && token !== '' ? { continueToken: token } : {}),
    },
  );
}

/** True for the 410 of a revision that is compacted, in either of its spellings. */
export function isExpired(error: unknown): boolean {
  return error instanceof StatusError && (error.code === 410 || error.reason === 'Expired');
}

/** True for the 504 for a revision that the server has not reached: it was restored from a backup, or started empty. */
export function isFutureRevision(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  return error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') ?? false;
}

/** True when the object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.code === 404;
}

/** True when RBAC or admission refuses it. */
export function isForbidden(error: unknown): boolean {
  return error instanceof StatusError && error.code === 403;
}

/** True when the server rejects the content of the object or patch. */
export function isInvalid(error: unknown): error is StatusError {
  return error instanceof StatusError && error.code === 422;
}

/** True for a conflict: the object was changed since it was read. */
export function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'Conflict';
}

/** True when the name is taken. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409 && error.reason === 'AlreadyExists';
}

/** Milliseconds of the server's Retry-After; undefined without one. */
export function retryAfterOf(error: unknown): number | undefined {
  if (!(error instanceof StatusError)) return undefined;
  const seconds = error.details?.retryAfterSeconds;
  return seconds === undefined ? undefined : Math.min(seconds, maxRetryAfterSeconds) * 1000;
}

/** Upper limit in seconds of a server's Retry-After. */
const maxRetryAfterSeconds = 300;

/**
 * True when the server was not reached or refuses the credentials. The transport of controllers logs this once for all
 * callers, with what to do (`availability-tracker.ts`).
 */
export function isUnreached(error: unknown): boolean {
  if (error instanceof StatusError) return error.code === 401;
  return error instanceof ConnectionError && !isEarlyEnd(error);
}

/** True when the server was reached and closed a watch early. */
export function isEarlyEnd(error: unknown): boolean {
  return error instanceof ConnectionError && earlyEnds.has(error.code);
}

const earlyEnds: ReadonlySet<string> = new Set(['SHORT_WATCH', 'SHORT_LIST']);

/** One word for an error, for metrics. */
export function errorWord(error: unknown): string {
  if (error instanceof StatusError) return error.reason === '' ? String(error.code) : error.reason;
  if (error instanceof ConnectionError) return error.code;
  return error instanceof Error ? error.name : 'Unknown';
}

/** `Retry-After` in seconds. The form with a date is not used by API servers and counts as absent. */
export function retryAfterSeconds(headers: ResponseHeaders): number | undefined {
  const header = headers['retry-after'];
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

function parseStatus(body: Buffer): unknown {
  // A Status is small: a longer body, such as a proxy's page, is not parsed.
  if (body.length > 1024 * 1024) return undefined;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isStatus(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function readDetails(value: unknown, retryAfter: number | undefined): StatusDetails | undefined {
  if (!isRecord(value)) return retryAfter === undefined ? undefined : { retryAfterSeconds: retryAfter };
  const details: StatusDetails = {};
  for (const member of ['name', 'group', 'kind', 'uid'] as const) {
    const found = text(value[member]);
    if (found !== undefined) details[member] = found;
  }
  const seconds = value['retryAfterSeconds'];
  const wait = typeof seconds === 'number' && seconds >= 0 ? seconds : retryAfter;
  if (wait !== undefined) details.retryAfterSeconds = wait;
  if (Array.isArray(value['causes'])) details.causes = value['causes'].filter(isCause);
  return details;
}

function isCause(value: unknown): value is StatusCause {
  return isRecord(value) && Object.values(value).every((member) => typeof member === 'string');
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** True when a create was refused because its namespace is being emptied. */
export function isNamespaceTerminating(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    error.code === 403 &&
    (error.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating')
  );
}
