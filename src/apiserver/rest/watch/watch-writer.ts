import type { ReplyStream } from '../../http/exchange.ts';
import type { OpenWatches, Sender } from './open-watches.ts';

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
