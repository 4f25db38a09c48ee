import type { Host } from '../../../host/host.ts';
import { type Link, linksOf } from './links.ts';

/** The program is restarted after this number of batches: it keeps the messages about failed lines until its end. */
const batchesEach = 1000;

/** A batch that waits for its list. */
interface Pending {
  readonly resolve: (links: readonly Link[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A program `ip` that runs. */
interface Running {
  /** Gives it lines. */
  readonly feed: (text: string) => void;
  readonly end: () => void;
  readonly ended: Promise<void>;
  batches: number;
}

/**
 * A program `ip -batch` that stays, for what is done again and again: lines take effect as they are written, not as soon as
 * a busy machine starts a program, so that lifetimes end when they are to.
 */
export class IpBatch {
  readonly #host: Host;
  #running: Running | undefined;
  /** In the order of their lists. */
  readonly #pending: Pending[] = [];
  #printed = '';

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Runs lines, each for itself, and lists all links afterwards. Lines that fail are left out.
   *
   * @throws {Error} where the program has ended before the list came; the next call starts another one.
   * @throws {ProgramMissingError} without `ip`.
   */
  async change(lines: readonly string[]): Promise<readonly Link[]> {
    if (this.#running !== undefined && this.#running.batches >= batchesEach && this.#pending.length === 0) {
      await this.close();
    }
    const running = (this.#running ??= this.#start());
    running.batches++;
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      running.feed([...lines, 'address show', ''].join('\n'));
    });
  }

  /** Ends the program. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.end();
    await running?.ended;
  }

  #start(): Running {
    const input = new Feed();
    const output = (text: string): void => this.#print(text);
    const ended = this.#host
      .exec('ip', ['-json', '-force', '-batch', '-'], { input, output })
      .then(({ stderr }) => this.#fail(new Error(`ip -batch has ended: ${stderr.trim().slice(-200)}`)))
      .catch((error: unknown) => this.#fail(error));
    return { feed: (text) => input.add(text), end: () => input.end(), ended, batches: 0 };
  }

  /** Each list is one line. */
  #print(text: string): void {
    const lines = `${this.#printed}${text}`.split('\n');
    this.#printed = lines.pop() ?? '';
    for (const line of lines) {
      const pending = this.#pending.shift();
      try {
        const links: unknown = JSON.parse(line);
        pending?.resolve(linksOf(links));
      } catch (error) {
        pending?.reject(error);
      }
    }
  }

  #fail(error: unknown): void {
    this.#printed = '';
    this.#running = undefined;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}

/** Input of a program that keeps reading. */
class Feed implements AsyncIterable<string> {
  readonly #texts: string[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;

  add(text: string): void {
    this.#texts.push(text);
    this.#wake?.();
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    for (;;) {
      const text = this.#texts.shift();
      if (text !== undefined) yield text;
      else if (this.#isOver) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
