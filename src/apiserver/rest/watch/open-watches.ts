import type { Logger } from 'pino';
import type { ReplyStream } from '../../http/exchange.ts';

/** A watch, which sends in its turn. */
export interface Sender {
  /** Writes pending events, at most a piece of {@link OpenWatches.maxPieceBytes}. */
  send(): void;
  /** Whether the store has forgotten what the client has yet to see. */
  readonly isOutdated: boolean;
  /** Ends the watch at once: its client does not read. */
  cut(): void;
}

/**
 * Bytes that wait for clients of watches, all together. Beyond half of it a piece has at most {@link smallPiece} bytes;
 * beyond all of it no watch sends what exists until clients have read, and those that have waited longest are ended, a
 * second after their client stopped to read.
 */
const maxUnread = 64 * 2 ** 20;
/** Beyond these bytes, those that have waited longest are ended at once, down to {@link maxUnread}. */
const maxUnreadOfAll = 2 * maxUnread;
/** Milliseconds in which a client must read on before it counts as slow. */
const slowAfterMs = 1_000;
/** Bytes of a write at most, while most clients read. */
const largePiece = 2 ** 20;
const smallPiece = 16 * 1024;
/** Milliseconds in which watches send, before other work has its turn. */
const maxTurnMs = 20;

/**
 * The state shared by the open watches of a server: their turns to send, and a limit of what their clients have not
 * read.
 */
export class OpenWatches {
  readonly #log: Logger;
  #due: Sender[] = [];
  /** Watches whose turn has come and that send later in the same turn. */
  readonly #turns: (() => void)[] = [];
  #isScheduled = false;
  /** Watches that wait for their clients to read, the longest waiting first. */
  readonly #unread = new Map<Sender, { readonly bytes: number; readonly since: number }>();
  #unreadBytes = 0;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Bytes that a watch may write at a time. */
  get maxPieceBytes(): number {
    return this.#unreadBytes < maxUnread / 2 ? largePiece : smallPiece;
  }

  /** Schedules a watch after the next turn of the event loop, so that all events until then are sent in one write. */
  schedule(sender: Sender): void {
    this.#due.push(sender);
    this.#scheduleTurn();
  }

  /**
   * Resolves when a watch may write a piece of what exists: one in each turn of the event loop, so that what it writes
   * counts for the next, and none while too much is unread.
   */
  async turn(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#turns.push(resolve);
      this.#scheduleTurn();
    });
  }

  #scheduleTurn(): void {
    if (this.#isScheduled || !this.#isDue) return;
    this.#isScheduled = true;
    setImmediate(() => setImmediate(() => this.#sendDue()));
  }

  /** Notes that a watch has to wait for its client. */
  waits(sender: Sender, bytes: number): void {
    this.#unread.set(sender, { bytes, since: performance.now() });
    this.#unreadBytes += bytes;
    this.#sweeping ??= setInterval(() => this.#endSlow(), slowAfterMs).unref();
    if (this.#unreadBytes > maxUnreadOfAll) this.#endSlow(0);
  }

  /** Notes that a watch has stopped waiting. */
  goesOn(sender: Sender): void {
    const unread = this.#unread.get(sender);
    if (unread === undefined) return;
    this.#unread.delete(sender);
    this.#unreadBytes -= unread.bytes;
    this.#scheduleTurn();
    if (this.#unread.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }

  get #isDue(): boolean {
    return this.#due.length > 0 || (this.#turns.length > 0 && this.#hasRoom);
  }

  get #hasRoom(): boolean {
    return this.#unreadBytes <= maxUnread;
  }

  #sendDue(): void {
    const due = this.#due;
    this.#due = [];
    const stop = performance.now() + maxTurnMs;
    for (const [i, sender] of due.entries()) {
      if (performance.now() < stop) {
        sender.send();
        continue;
      }
      this.#due = due.slice(i).concat(this.#due);
      break;
    }
    if (this.#hasRoom) this.#turns.shift()?.();
    this.#isScheduled = this.#isDue;
    if (this.#isScheduled) setImmediate(() => this.#sendDue());
  }

  /**
   * Ends the watches that have waited longest, until the others have no more unread than {@link maxUnread}, and those that
   * have lost events.
   *
   * @param after milliseconds that they have waited at least.
   */
  #endSlow(after = slowAfterMs): void {
    const latest = performance.now() - after;
    const slow: Sender[] = [];
    let bytes = this.#unreadBytes;
    for (const [sender, unread] of this.#unread) {
      if (unread.since > latest) break;
      if (bytes <= maxUnread && !sender.isOutdated) continue;
      slow.push(sender);
      bytes -= unread.bytes;
    }
    if (slow.length === 0) return;
    this.#log.warn(
      { watches: slow.length, reason: 'SlowWatcher' },
      'ending watches whose clients do not read; they can resume from their last resourceVersion',
    );
    for (const sender of slow) sender.cut();
  }
}

/** Writes to the client of one watch: a piece, and the next one when the client has read. */
export class WatchWriter {
  readonly #stream: ReplyStream;
  readonly #watches: OpenWatches;
  readonly #sender: Sender;
  #isWaiting = false;
  /** The rest of the bytes that are being written. */
  #rest: Buffer | undefined;
  #isOver = false;
  #isAbandoned = false;
  #wake: (() => void) | undefined;

  /** @param sender is scheduled when its client has read. */
  constructor(stream: ReplyStream, watches: OpenWatches, sender: Sender) {
    this.#stream = stream;
    this.#watches = watches;
    this.#sender = sender;
  }

  /** Whether the client has to read before more can be written. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Writes bytes; not while the client {@link isWaiting has to read}. @returns whether it can be sent more at once. */
  write(bytes: Buffer): boolean {
    if (this.#isAbandoned) return false;
    const most = this.#watches.maxPieceBytes;
    if (bytes.length > most) {
      this.#stream.write(bytes.subarray(0, most), () => this.#onRead());
      this.#rest = bytes.subarray(most);
    } else {
      this.#rest = undefined;
      if (this.#stream.write(bytes)) return true;
      void this.#stream.drained().then(() => this.#onRead());
    }
    this.#isWaiting = true;
    this.#watches.waits(this.#sender, this.#stream.unsent + (this.#rest?.length ?? 0));
    return false;
  }

  /** Writes bytes; resolves when the client can be sent more, or the watch is over. */
  async writeAll(bytes: Buffer): Promise<void> {
    this.write(bytes);
    while (this.#isWaiting && !this.#isOver) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** The watch is over: {@link writeAll} does not wait any longer. */
  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  /** Writes the last bytes, however long the client takes. */
  finish(bytes?: Buffer): void {
    if (this.#isAbandoned) return;
    if (this.#rest !== undefined) this.#stream.write(this.#rest);
    this.#rest = undefined;
    if (bytes !== undefined) this.#stream.write(bytes);
  }

  /** Writes nothing more: the client is gone. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#rest = undefined;
    this.#goOn();
  }

  /** Closes the connection of a client that does not read. */
  destroy(): void {
    this.abandon();
    this.#stream.destroy();
  }

  #onRead(): void {
    const rest = this.#rest;
    this.#goOn();
    if (this.#isAbandoned) return;
    if (rest === undefined || this.write(rest)) this.#watches.schedule(this.#sender);
  }

  #goOn(): void {
    this.#isWaiting = false;
    this.#watches.goesOn(this.#sender);
    this.#wake?.();
  }
}
