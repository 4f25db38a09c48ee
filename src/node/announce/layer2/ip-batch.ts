import type { Host } from '../../../host/host.ts';
import { ResidentProgram } from '../../../host/resident-program.ts';
import { type Link, linksOf } from './links.ts';

/**
 * A program `ip -batch` that stays: lines take effect as they are written, not as soon as a busy machine starts a program,
 * so that lifetimes end when they are to.
 */
export class IpBatch {
  readonly #program: ResidentProgram;

  constructor(host: Host) {
    this.#program = new ResidentProgram({
      ...{ host, program: 'ip', args: ['-json', '-force', '-batch', '-'] },
      // Each list is one line.
      answerEnd: '\n',
      // It keeps the messages about failed lines until its end.
      questionsEach: 1000,
    });
  }

  /**
   * Runs lines, each for itself, and lists all links afterwards. Lines that fail are left out.
   *
   * @throws {Error} where the program has ended before the list came; the next call starts another one.
   * @throws {ProgramMissingError} without `ip`.
   */
  async change(lines: readonly string[]): Promise<readonly Link[]> {
    const links: unknown = JSON.parse(await this.#program.ask([...lines, 'address show', ''].join('\n')));
    return linksOf(links);
  }

  /** Ends the program. */
  async close(): Promise<void> {
    await this.#program.close();
  }
}
