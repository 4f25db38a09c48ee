import { type StorageEvent, CompactedError, type StoredObject } from '../../storage/storage.ts';
import { type VersionConversion, storagePrefixOf } from '../served-resource.ts';
import type { ReplyStream, ApiRequest, Reply } from '../../http/exchange.ts';
import { type Sender, WatchWriter } from './open-watches.ts';
import { StatusError, internalError, errorMessage, expired } from '../../../objects/status.ts';
import type { ServerCore } from '../server-core.ts';
import { SessionLines, type WatchRequest, joinLines } from './watch-lines.ts';
import { parseResourceVersion } from '../options.ts';
import { waitForRevision } from '../list.ts';

/**
 * Events with their objects converted by a webhook, in one request.
 *
 * @param withPrevious whether the versions before are needed, too.
 * @throws what the conversion throws.
 */
export async function convertEvents(
  conversion: Pick<VersionConversion, 'read'>,
  events: readonly StorageEvent[],
  withPrevious: boolean,
): Promise<StorageEvent[]> {
  const versions = events.flatMap(({ current, previous }) =>
    previous === undefined || !withPrevious ? [current] : [current, previous],
  );
  const served = (await conversion.read(versions)).values();
  return events.map((event) => {
    const { value: current = event.current } = served.next();
    const previous = event.previous === undefined || !withPrevious ? event.previous : served.next().value;
    return { ...event, current, previous };
  });
}

/** Milliseconds between bookmarks (`bookmarkFrequency`). */
const bookmarkIntervalMs = 60_000;
/** Milliseconds before the end of a watch at which a bookmark is sent. */
const bookmarkBeforeEndMs = 2_000;
/** `setTimeout`'s limit, 24 days: with a longer time it would call at once. */
const maxTimerMs = 2 ** 31 - 1;
/** Bytes of lines that are written together, at most, but for the last of them. */
const together = 64 * 1024;
/** Events that are read from the store at a time, and initial objects. */
const batch = 100;

/**
 * One open watch. It buffers no events: it keeps the revision up to which its client has all events, and continues from
 * the store's history when the client has read what was sent. A watch whose next events the history has lost is ended
 * (kube-apiserver ends one whose channel is full, `cacheWatcher.add`).
 */
class WatchSession implements Sender {
  readonly #core: ServerCore;
  readonly #writer: WatchWriter;
  readonly #watch: WatchRequest;
  readonly #lines: SessionLines;
  /** Of the store's keys. */
  readonly #prefix: string;
  readonly #signal: AbortSignal;
  /** Everything up to this revision was sent; undefined: everything that has happened. */
  #position: number | undefined;
  readonly #timers: NodeJS.Timeout[] = [];
  /** By `performance.now()`. */
  #deadline = Infinity;
  readonly #over = Promise.withResolvers<undefined>();
  #isOver = false;
  /** Behind the initial events. */
  #isRunning = false;
  #isConverting = false;
  #isReplaced = false;
  /** The definition is deleted or changed: the watch ends when its client has all events. */
  readonly #onReplaced = (): void => {
    this.#isReplaced = true;
    if (this.#isIdle) this.end();
  };

  constructor(
    core: ServerCore,
    stream: ReplyStream,
    watch: WatchRequest,
    prefix: string,
    signal: AbortSignal,
  ) {
    this.#core = core;
    this.#writer = new WatchWriter(stream, core.watches, this);
    this.#watch = watch;
    this.#lines = new SessionLines(watch, core);
    this.#prefix = prefix;
    this.#signal = signal;
    if (signal.aborted) this.end();
    signal.addEventListener('abort', () => this.end(), { once: true });
  }

  /** Ends the watch after these milliseconds. */
  endAfter(milliseconds: number): void {
    if (this.#isOver) return;
    this.#deadline = performance.now() + milliseconds;
    this.#timers.push(setTimeout(() => this.end(), Math.min(milliseconds, maxTimerMs)));
  }

  /** Ends the watch: {@link run} resolves. */
  end(): void {
    this.#isOver = true;
    for (const timer of this.#timers.splice(0)) clearTimeout(timer);
    this.#watch.resource.replaced?.removeEventListener('abort', this.#onReplaced);
    this.#writer.end();
    if (this.#signal.aborted) this.#writer.abandon();
    this.#over.resolve(undefined);
  }

  cut(): void {
    this.#writer.destroy();
    this.end();
  }

  get isOutdated(): boolean {
    return this.#position !== undefined && this.#position < this.#core.storage.compactedRevision;
  }

  /**
   * Sends the existing objects as ADDED events, at the client's pace.
   *
   * @returns the revision from which the watch continues.
   * @throws {CompactedError} when the client is so slow that the history lacks a revision it needs.
   * @throws {StatusError} 500 when the objects cannot be converted.
   */
  async sendInitial(): Promise<number> {
    const { filter, options } = this.#watch;
    const { storage, watches } = this.#core;
    const { revision } = storage;
    this.#position = revision;
    let from: string | undefined;
    for (let remaining = 1; remaining > 0;) {
      await watches.turn();
      if (this.#isOver) break;
      const page = storage.list(this.#prefix, {
        revision,
        limit: batch,
        ...(from === undefined ? {} : { from }),
      });
      const lines: Buffer[] = [];
      const enough = this.#enough;
      let bytes = 0;
      let looked = 0;
      for (const item of await this.#served(page.items)) {
        if (bytes > 0 && bytes + item.byteLength > enough) break;
        looked++;
        from = `${item.key}\0`;
        const isSelected = filter.everything || (filter.mayMatch(item.text()) && filter.matches(item.object));
        if (!isSelected) continue;
        const added = this.#lines.stored('ADDED', item);
        lines.push(added);
        bytes += added.length;
      }
      remaining = page.items.length - looked + page.remaining;
      if (lines.length > 0) await this.#writer.writeAll(joinLines(lines));
    }
    if (options.sendInitialEvents === true && options.allowWatchBookmarks && !this.#isOver) {
      this.#writer.write(this.#lines.bookmark(revision, { 'k8s.io/initial-events-end': 'true' }));
    }
    return revision;
  }

  /** Objects as the resource serves them. @throws {StatusError} 500 */
  async #served(items: readonly StoredObject[]): Promise<readonly StoredObject[]> {
    const { conversion } = this.#watch.resource;
    try {
      return conversion === undefined ? items : await conversion.read(items);
    } catch (error) {
      throw conversionFailure(error);
    }
  }

  /** Sends what happens after a revision, and bookmarks; resolves when the watch is over. */
  async run(start: number): Promise<void> {
    const { options, resource } = this.#watch;
    const { storage, watches } = this.#core;
    const now = storage.revision;
    this.#isRunning = true;
    this.#position = start < now ? start : undefined;
    const unsubscribe = storage.watch(this.#prefix, Math.max(start, now), (event) => {
      // A session that is behind reads the event from the history.
      if (this.#position !== undefined) return;
      this.#position = event.revision - 1;
      watches.schedule(this);
    });
    try {
      if (this.#position !== undefined) watches.schedule(this);
      if (!this.#isOver && options.allowWatchBookmarks && resource.definition.uncached !== true) {
        const send = (): void => this.#sendBookmark();
        this.#timers.push(setInterval(send, bookmarkIntervalMs));
        const lastMs = this.#deadline - performance.now() - bookmarkBeforeEndMs;
        if (lastMs > 0 && lastMs <= maxTimerMs) this.#timers.push(setTimeout(send, lastMs));
      }
      const { replaced } = resource;
      if (replaced?.aborted === true) this.#onReplaced();
      else if (!this.#isOver) replaced?.addEventListener('abort', this.#onReplaced);
      await this.#over.promise;
    } finally {
      unsubscribe();
    }
    if (this.#signal.aborted) return;
    if (resource.conversion === undefined) this.#sendNext();
    this.#writer.finish();
  }

  sendError(error: StatusError): void {
    if (!this.#signal.aborted) this.#writer.finish(this.#lines.error(error));
  }

  send(): void {
    if (this.#isRunning && !this.#isOver && !this.#isConverting) this.#sendNext();
  }

  get #isIdle(): boolean {
    return this.#position === undefined && !this.#writer.isWaiting;
  }

  /** Reads the next events from the history and sends them, unless the client has yet to read. */
  #sendNext(): void {
    if (this.#position === undefined || this.#writer.isWaiting) {
      this.#endIfReplaced();
      return;
    }
    let events: readonly StorageEvent[];
    try {
      events = this.#core.storage.events(this.#prefix, this.#position, batch);
    } catch (error) {
      if (!(error instanceof CompactedError)) throw error;
      const { definition } = this.#watch.resource;
      this.#core.log.warn(
        { resource: definition.plural, namespace: this.#watch.namespace, reason: 'SlowWatcher' },
        'ending a watch that is too far behind; its client lists again',
      );
      this.end();
      return;
    }
    const { conversion } = this.#watch.resource;
    if (events.length === 0) {
      this.#position = undefined;
      this.#endIfReplaced();
    } else if (conversion === undefined) {
      const sent = this.#sendEvents(events);
      if (sent === events.length && sent < batch) this.#position = undefined;
      this.#goOn();
    } else {
      this.#isConverting = true;
      convertEvents(conversion, events, !this.#watch.filter.everything)
        .then((converted) => {
          if (!this.#isOver) this.#sendEvents(converted);
        })
        .catch((error: unknown) => {
          this.sendError(conversionFailure(error));
          this.end();
        })
        .finally(() => {
          this.#isConverting = false;
          this.#goOn();
        });
    }
  }

  #goOn(): void {
    if (this.#isOver || this.#writer.isWaiting) return;
    if (this.#position === undefined) this.#endIfReplaced();
    else this.#core.watches.schedule(this);
  }

  #endIfReplaced(): void {
    if (this.#isReplaced && this.#isIdle) this.end();
  }

  /** Bytes of lines that are made before the client has to read on. */
  get #enough(): number {
    return Math.min(together, this.#core.watches.maxPieceBytes);
  }

  /** Sends as many events as make a piece. @returns how many of them. */
  #sendEvents(events: readonly StorageEvent[]): number {
    const lines: Buffer[] = [];
    const enough = this.#enough;
    let bytes = 0;
    let sent = 0;
    for (const event of events) {
      if (bytes >= enough) break;
      const next = this.#lines.of(event);
      this.#position = event.revision;
      sent++;
      if (next === undefined) continue;
      lines.push(next);
      bytes += next.length;
    }
    if (lines.length > 0) this.#writer.write(joinLines(lines));
    return sent;
  }

  /** Sends a bookmark where the client has all events. */
  #sendBookmark(): void {
    this.send();
    if (this.#isIdle && !this.#isOver) this.#writer.write(this.#lines.bookmark(this.#core.storage.revision));
  }
}

/** Why the objects of a watch cannot be had (`etcd3` transformErrorToEvent). */
function conversionFailure(error: unknown): StatusError {
  return internalError(errorMessage(error));
}

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
