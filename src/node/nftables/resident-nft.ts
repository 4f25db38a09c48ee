import { type Host, ProgramMissingError } from '../../host/host.ts';
import { ResidentProgram } from '../../host/resident-program.ts';
import { NftError } from './nft-error.ts';

/** Bytes of JSON of a transaction for it, at most: it reads them one by one. */
export const residentLimit = 4000;

/** It keeps all lines that differ as the history of its terminal. */
const transactionsEach = 1000;

/** Its history file, in the home directory, is one that cannot be. */
const interactive = 'HOME=/dev/null TERM=dumb exec nft -j -i 2>&1';

/** nft answers it with one line, always the same. */
const question = 'describe mark\n';

/**
 * A program nft that stays, in its interactive mode: a transaction of a few elements takes it half a millisecond. To start
 * nft takes 10 ms, and as long until the kernel has closed its socket. Each line is one transaction; nft says nothing of
 * one that it has done, so that a question follows each.
 */
export class ResidentNft {
  readonly #host: Host;
  /** Undefined: it is not known yet whether there can be one. */
  #program: ResidentProgram | 'unusable' | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /**
   * Does all of a transaction or nothing.
   *
   * @param transaction one line of JSON.
   * @returns false, and has done nothing, where this nft has no interactive mode, or one that repeats its input.
   * @throws {NftError} where nft refused it, or has ended meanwhile: what it did is not known then. The next call starts
   *   another one.
   */
  async run(transaction: string): Promise<boolean> {
    this.#program ??= await this.#probe();
    if (this.#program === 'unusable') return false;
    const said = await this.#program.ask(`${transaction}\n${question}`).catch((error: unknown) => {
      throw NftError.of(error instanceof Error ? error.message : String(error));
    });
    if (said === '') return true;
    // Its cache of the tables may be wrong.
    await this.#program.close();
    throw NftError.of(said);
  }

  /** Ends it, once it has done what it was given. */
  async close(): Promise<void> {
    if (this.#program instanceof ResidentProgram) await this.#program.close();
  }

  /** Learns the answer to the question: an nft that can be used prints nothing else. */
  async #probe(): Promise<ResidentProgram | 'unusable'> {
    const host = this.#host;
    try {
      const input = `${question}${question}quit\n`;
      const { exitCode, stdout } = await host.exec('sh', ['-c', interactive], { input });
      const answerEnd = stdout.slice(0, stdout.length / 2);
      const isSilent =
        exitCode === 0 && answerEnd.indexOf('\n') === answerEnd.length - 1 && stdout === answerEnd.repeat(2);
      if (answerEnd === '' || !isSilent) return 'unusable';
      return new ResidentProgram({
        ...{ host, program: 'sh', args: ['-c', interactive], answerEnd, questionsEach: transactionsEach },
      });
    } catch (error) {
      if (error instanceof ProgramMissingError) return 'unusable';
      throw error;
    }
  }
}
