import type { ProcessContainer } from './process-container.ts';
import type { ContainerProgram } from '../programs/program.ts';

/** The sandbox of a program of ours, made when something is to be run in it: a process that does nothing. */
export class BesideProcess {
  readonly #start: () => Promise<ProcessContainer>;
  #process: Promise<ProcessContainer> | undefined;

  constructor(start: () => Promise<ProcessContainer>) {
    this.#start = start;
  }

  /** @throws {Error} where it cannot be made. */
  async words(command: readonly string[]): Promise<readonly string[]> {
    this.#process ??= this.#start();
    return await (await this.#process).exec(command);
  }

  /** Ends with the program. */
  joinTo(program: ContainerProgram): ContainerProgram {
    const ended = program.ended.then(async (exit) => {
      const process = await this.#process?.catch(() => undefined);
      process?.signal('SIGKILL');
      await process?.ended;
      return exit;
    });
    return {
      ended,
      signal: (name) => program.signal(name),
      exec: (command) => this.words(command),
      usage: async () => (await (await this.#process?.catch(() => undefined))?.usage()) ?? 0,
    };
  }
}
