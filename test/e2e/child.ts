import { type ChildProcess, spawn } from 'node:child_process';

/** A process of ours, and what it has printed. */
export class Child {
  /** Standard output and standard error, as they came. */
  output = '';
  readonly #process: ChildProcess;
  /** Resolves when it has ended and all its output is there. */
  readonly closed: Promise<void>;
  readonly #name: string;

  constructor(file: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.#name = [file, ...args].join(' ');
    this.#process = spawn(file, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    // It may end before it has read what is typed.
    this.#process.stdin?.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      this.#process.once('close', () => resolve());
      this.#process.once('error', (error) => {
        this.output += String(error);
        resolve();
      });
    });
    const read = (text: string): void => {
      this.output += text;
    };
    this.#process.stdout?.setEncoding('utf8').on('data', read);
    this.#process.stderr?.setEncoding('utf8').on('data', read);
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Its exit code; null while it runs, and when a signal ended it. */
  get code(): number | null {
    return this.#process.exitCode;
  }

  /** Resolves when the condition holds. @throws {Error} with the output, when the process ends first or it takes two minutes. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = Date.now() + 120_000;
    while (!(await condition())) {
      if (!this.running || Date.now() > deadline) {
        throw new Error(
          `${this.#name} ${this.running ? 'is not ready' : 'ended'}: ${this.output.slice(-4000)}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Writes to its standard input, which stays open. */
  type(text: string): void {
    this.#process.stdin?.write(text);
  }

  /** Ends it: `SIGTERM` is asked, and after a minute made, `SIGKILL` is made at once. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (!this.running) return;
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 60_000);
    this.#process.kill(signal);
    await this.closed;
    clearTimeout(late);
  }
}
