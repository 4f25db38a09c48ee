import type { Host } from './host.ts';

export interface ResidentProgramOptions {
  readonly host: Host;
  /** It reads lines, answers each in their order, and ends with its input. */
  readonly program: string;
  readonly args: readonly string[];
  /** What every answer ends with. */
  readonly answerEnd: string;
  /** The program is restarted after this number of questions: what it keeps for itself grows until its end. */
  readonly questionsEach: number;
  /** Milliseconds for an answer: then the program is ended. Default 10,000; what is asked takes less than one. */
  readonly answerLimitMs?: number;
}

/** A question that waits for its answer. */
interface Pending {
  readonly resolve: (answer: string) => void;
  readonly reject: (error: unknown) => void;
}

/** The program while it runs. */
interface Running {
  readonly input: Feed;
  /** In the order of their answers. */
  readonly pending: Pending[];
  readonly ended: Promise<void>;
  readonly kill: AbortController;
  questions: number;
}

/** A program of a machine that stays, for what is done again and again: to start one takes longer than what it does. */
export class ResidentProgram {
  readonly #options: ResidentProgramOptions;
  #running: Running | undefined;

  constructor(options: ResidentProgramOptions) {
    this.#options = options;
  }

  /**
   * Starts the program where it does not run.
   *
   * @param text lines, the last one too with its end.
   * @returns what the program has printed, without {@link ResidentProgramOptions.answerEnd}.
   * @throws {Error} where it has ended before the answer came, or was ended as too late: what it was asked may be done. The
   *   next call starts it again.
   * @throws {ProgramMissingError} where there is no such program.
   */
  async ask(text: string): Promise<string> {
    const { questionsEach } = this.#options;
    const former = this.#running;
    if (former !== undefined && former.questions >= questionsEach && former.pending.length === 0) {
      await this.close();
    }
    const running = (this.#running ??= this.#start());
    running.questions++;
    const answer = new Promise<string>((resolve, reject) => {
      running.pending.push({ resolve, reject });
      running.input.add(text);
    });
    return this.#inTime(running, answer);
  }

  /** Ends the program, once it has done what it was asked. */
  async close(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    running.input.end();
    await this.#inTime(running, running.ended);
  }

  /** Ends the program where something takes too long. */
  async #inTime<T>({ kill }: Running, promise: Promise<T>): Promise<T> {
    const { answerLimitMs = 10_000, program, args } = this.#options;
    const late = setTimeout(() => {
      const name = [program, ...args].join(' ');
      kill.abort(new Error(`"${name}" did not answer in ${answerLimitMs / 1000} seconds, and was ended`));
    }, answerLimitMs);
    late.unref();
    try {
      return await promise;
    } finally {
      clearTimeout(late);
    }
  }

  #start(): Running {
    const { host, program, args, answerEnd } = this.#options;
    const input = new Feed();
    const pending: Pending[] = [];
    let printed = '';
    const output = (text: string): void => {
      const answers = `${printed}${text}`.split(answerEnd);
      printed = answers.pop() ?? '';
      for (const answer of answers) pending.shift()?.resolve(answer);
    };
    const fail = (error: unknown): void => {
      if (this.#running === running) this.#running = undefined;
      input.end();
      for (const { reject } of pending.splice(0)) reject(error);
    };
    const kill = new AbortController();
    const ended = host
      .exec(program, args, { input, output, signal: kill.signal })
      .then(({ exitCode, stderr }) => {
        const last = `${printed}${stderr}`.trim().slice(-200);
        const name = [program, ...args].join(' ');
        fail(new Error(`"${name}" has ended with ${exitCode}${last === '' ? '' : `: ${last}`}`));
      }, fail);
    const running: Running = { input, pending, ended, kill, questions: 0 };
    return running;
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
