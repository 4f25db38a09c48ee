import { StatusError } from '../../../objects/status.ts';
import { expired } from '../../../objects/status.ts';
import type { ApiRequest, Reply } from '../../http/exchange.ts';
import { CompactedError } from '../../storage/storage.ts';
import { parseResourceVersion } from '../options.ts';
import { waitForRevision } from '../list.ts';
import { storagePrefixOf } from '../served-resource.ts';
import type { ServerCore } from '../server-core.ts';
import type { WatchRequest } from './watch-lines.ts';
import { WatchSession } from './watch-session.ts';

/** Seconds of a watch that names no timeout: random between this and twice of it (`minRequestTimeout`). */
const minTimeoutSeconds = 1_800;

/**
 * Serves a watch until its time is over, the client is gone or the server stops.
 *
 * @throws {StatusError} before the stream has begun. A resourceVersion that is too old, or for the initial events
 *   too new for three seconds, is reported inside the stream.
 */
export async function watchObjects(
  core: ServerCore,
  request: ApiRequest,
  reply: Reply,
  watch: WatchRequest,
): Promise<void> {
  const { options, resource, namespace } = watch;
  const from = parseResourceVersion(options.resourceVersion);
  const seconds = options.timeoutSeconds ?? 0;
  const milliseconds = (seconds > 0 ? seconds : minTimeoutSeconds * (1 + core.random())) * 1000;
  const { mediaType } = watch.output.negotiated;
  const contentType = mediaType === 'application/json' ? mediaType : `${mediaType};stream=watch`;
  // Those that are lists as well are compressed (WatchListCompression).
  const compress = options.sendInitialEvents === true && options.allowWatchBookmarks;
  const stream = reply.stream(200, { 'Content-Type': contentType }, compress);
  const session = new WatchSession(core, stream, watch, storagePrefixOf(resource, namespace), request.signal);
  const uncached = resource.definition.uncached === true;
  session.endAfter(milliseconds);
  try {
    if (options.sendInitialEvents === true && !uncached) {
      await waitForRevision(core, resource, from, request.signal);
    }
    const initial =
      options.sendInitialEvents === true || (from === 0n && options.sendInitialEvents === undefined);
    const start = initial ? await session.sendInitial() : startOf(core, from);
    const oldest = Math.max(core.firstRevision, core.storage.compactedRevision);
    if (start < oldest) throw new CompactedError(start, oldest);
    await session.run(start);
  } catch (error) {
    session.sendError(toldInStream(error, uncached));
  } finally {
    session.end();
  }
  stream.end();
}

/** The ERROR event for a client (`newErrWatcher` of the watch cache); other errors are thrown again. */
function toldInStream(error: unknown, uncached: boolean): StatusError {
  if (error instanceof StatusError) return error;
  if (!(error instanceof CompactedError)) throw error;
  if (uncached) return expired('The resourceVersion for the provided watch is too old.');
  return expired(`too old resource version: ${error.revision} (${error.compactedRevision})`);
}

/** `sendInitialEvents=false` without a version starts at the newest revision. */
function startOf(core: ServerCore, from: bigint): number {
  return from === 0n ? core.storage.revision : Number(from);
}
