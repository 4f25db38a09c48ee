/** Lists that come as a watch (`sendInitialEvents`, KEP-3157): how they end, and the fallback when they do not. */
import { isRecord } from '../../objects/json.ts';
import { StatusError } from '../../objects/status.ts';
import { isFutureRevision } from '../errors.ts';
import { ConnectionError } from '../transport.ts';

const initialEventsEnd = 'k8s.io/initial-events-end';

/**
 * A server without `sendInitialEvents` answers with a plain watch: its objects come without the bookmark that ends
 * them. Milliseconds from the last object that was added, and from the beginning, after which paged lists are used
 * instead. Servers that support it send the bookmark within about 1.3 s.
 */
export const streamedList = { silence: 5000, longest: 60_000 };

/** A streamed list that does not end: the server treated it as a plain watch. */
export class EndlessList extends Error {
  override readonly name = 'EndlessList';
}

/** Statuses of servers that do not support or do not allow `sendInitialEvents`. */
const refusals = new Set([400, 405, 406, 415, 422, 501]);
/** Statuses for which a list would fail as well, or that ask the client to wait. */
const retriable = new Set([401, 403, 404, 410, 429, 500, 503]);

/**
 * The action after a failed streamed list: client-go's reflector falls back to a list for every error that is not
 * worth a retry (`watchList` and its caller).
 */
export function streamedListVerdict(error: unknown): 'pages' | 'pages this time' | 'retry' {
  if (error instanceof EndlessList) return 'pages';
  if (error instanceof ConnectionError) return error.code === 'TIMEOUT' ? 'pages this time' : 'retry';
  if (!(error instanceof StatusError)) return 'retry';
  if (refusals.has(error.code)) return 'pages';
  return retriable.has(error.code) || isFutureRevision(error) ? 'retry' : 'pages this time';
}

/** True for the bookmark after the last of the initial objects. */
export function endsInitialEvents(object: unknown): boolean {
  const metadata = isRecord(object) ? object['metadata'] : undefined;
  const annotations = isRecord(metadata) ? metadata['annotations'] : undefined;
  return isRecord(annotations) && annotations[initialEventsEnd] === 'true';
}
