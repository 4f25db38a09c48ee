import { type Host, ProgramMissingError, type ExecOptions, type ExecResult } from '../../host/host.ts';
import { ResidentProgram } from '../../host/resident-program.ts';
import { errorMessage } from '../../objects/status.ts';
import type { TableWatch } from './table-watch.ts';
import type { Command } from './elements.ts';

/** nft refused something, or could not do it. */
class NftError extends Error {
  override readonly name = 'NftError';

  /** @param said the error message of nft, which repeats the whole input: its first lines are kept. */
  static of(said: string, command = 'nft'): NftError {
    return new NftError(`${command}: ${firstLines(said)}`);
  }
}

function firstLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines
    .slice(0, 3)
    .map((line) => line.slice(0, 300))
    .join('; ');
}

/** Bytes of JSON of a transaction for it, at most: it reads them one by one. */
export const residentLimit = 4000;

/** It keeps all lines that differ as the history of its terminal. */
const transactionsEach = 1000;

/** A program nft has this time for one transaction or listing: one that was stopped would keep the agent from all else. */
const limitSeconds = 30;

/**
 * The programs of sh by which nft is run, and what the interactive one is asked. A fake nft recognises them by their text.
 */
export const nftScripts = {
  /**
   * One shell runs nft for each of several transactions: to start a program takes a process of Node.js 10 ms at 200 MiB,
   * and a shell less than 1 ms. nft opens /dev/stdin, which must be a pipe for that: Node.js gives its children sockets.
   * dd reads as many bytes as it is told, where head of busybox takes what there is. A line is printed for each one done.
   */
  transactions: `while read -r bytes; do dd bs="$bytes" count=1 iflag=fullblock 2>/dev/null | timeout -s KILL ${limitSeconds} nft -j -f - || exit; echo done; done`,
  /** Protocols as numbers: nft looks each name up in `/etc/protocols`. */
  listings: `for what; do timeout -s KILL ${limitSeconds} nft -j --numeric-protocol list $what || exit; done`,
  /** All counters, again for each line. */
  counters: `while read -r _; do timeout -s KILL ${limitSeconds} nft -j list counters 2>&1; echo listed; done`,
  /** One transaction in nft's own language. */
  text: `cat | timeout -s KILL ${limitSeconds} nft -f -`,
  /** The history file of nft, in the home directory, is one that cannot be. */
  interactive: 'HOME=/dev/null TERM=dumb exec nft -j -i 2>&1',
  /** nft answers it with one line, always the same. */
  question: 'describe mark\n',
} as const;

const { interactive, question } = nftScripts;

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

/** The program `nft` of a machine. One call at a time. */
export class Nft {
  readonly #host: Host;
  readonly #resident: ResidentNft;
  readonly #counters: ResidentProgram;
  readonly #watch: Pick<TableWatch, 'own'>;

  /** @param watch counts what is done; default: nobody does. */
  constructor(host: Host, watch: Pick<TableWatch, 'own'> = { own: (write) => write() }) {
    this.#host = host;
    this.#resident = new ResidentNft(host);
    this.#counters = new ResidentProgram({
      ...{ host, program: 'sh', args: ['-c', nftScripts.counters], answerEnd: 'listed\n' },
      ...{ questionsEach: Infinity, answerLimitMs: (limitSeconds + 5) * 1000 },
    });
    this.#watch = watch;
  }

  /** Ends the programs that {@link runAll} and {@link listCounters} leave behind for the next call. */
  async close(): Promise<void> {
    await Promise.all([this.#resident.close(), this.#counters.close()]);
  }

  /** Does all of it or nothing. @throws {NftError} */
  async run(commands: readonly Command[]): Promise<void> {
    const text = JSON.stringify({ nftables: commands });
    await this.#watch.own(async () => {
      await this.#transact([sized(text)], () => 1);
      return 1;
    });
  }

  /**
   * Transactions one after the other, each as one line of JSON: nft does all of one or nothing, and none after one that
   * failed. The next is made while nft does the one before. A small one alone is done by a program nft that stays until
   * {@link close}.
   *
   * @returns how many there were.
   * @throws {NftError} of the one that failed.
   */
  runAll(transactions: AsyncIterable<string>): Promise<number> {
    return this.#watch.own(() => this.#runAll(transactions));
  }

  async #runAll(transactions: AsyncIterable<string>): Promise<number> {
    const rest = transactions[Symbol.asyncIterator]();
    const first = await rest.next();
    if (first.done === true) return 0;
    let next = await rest.next();
    const isSmallAlone = next.done === true && Buffer.byteLength(first.value) <= residentLimit;
    if (isSmallAlone && (await this.#resident.run(first.value))) return 1;
    let count = 1;
    const input = async function* (): AsyncGenerator<string> {
      yield sized(first.value);
      for (; next.done !== true; next = await rest.next()) {
        count++;
        yield sized(next.value);
      }
    };
    await this.#transact(input(), () => count);
    return count;
  }

  /** @param count how many the input has, once it has been read. @throws {NftError} also where not all were done. */
  async #transact(input: NonNullable<ExecOptions['input']>, count: () => number): Promise<void> {
    const stdout = await this.#shell(nftScripts.transactions, [], { input });
    const done = stdout.split('\n').filter((line) => line === 'done').length;
    if (done !== count()) throw new NftError(`nft was given ${done} of ${count()} transactions`);
  }

  /** One transaction in nft's own language, for what its JSON cannot say: constants of ours only. @throws {NftError} */
  async runText(text: string): Promise<void> {
    await this.#watch.own(async () => {
      await this.#shell(nftScripts.text, [], { input: text });
      return 1;
    });
  }

  /** The output of `nft -j list …`. @returns undefined if there is no such thing. @throws {NftError} */
  async list(options: readonly string[], ...what: readonly string[]): Promise<string | undefined> {
    const signal = AbortSignal.timeout(limitSeconds * 1000);
    const { exitCode, stdout, stderr } = await this.#exec('nft', ['-j', ...options, 'list', ...what], {
      signal,
    });
    if (exitCode === 0) return stdout;
    if (stderr.includes('No such file or directory')) return undefined;
    throw NftError.of(stderr, `nft list ${what.join(' ')}`);
  }

  /**
   * The output of `nft -j list counters`. It may be read each second: a shell stays for it until {@link close}.
   *
   * @throws {NftError}
   */
  async listCounters(): Promise<string> {
    const said = await this.#counters.ask('\n').catch((error: unknown) => {
      throw NftError.of(errorMessage(error));
    });
    if (said.startsWith('{')) return said;
    throw NftError.of(said, 'nft list counters');
  }

  /**
   * The output of `nft -j list …` for one thing after the other, with protocols as numbers.
   *
   * @param what each of words of ours only: `map ip servicenet service-ips`.
   * @param output is called with each piece of it, as they come.
   * @throws {NftError}
   */
  async listEach(what: readonly string[], output: (text: string) => void): Promise<void> {
    await this.#shell(nftScripts.listings, what, { output });
  }

  /** @returns what it printed. */
  async #shell(script: string, args: readonly string[], options: ExecOptions): Promise<string> {
    const { exitCode, stdout, stderr } = await this.#exec('sh', ['-c', script, 'sh', ...args], options);
    if (exitCode === killed)
      throw new NftError(`nft did not answer in ${limitSeconds} seconds, and was ended`);
    if (exitCode !== 0) throw NftError.of(stderr);
    return stdout;
  }

  async #exec(
    program: 'nft' | 'sh',
    args: readonly string[],
    options: ExecOptions = {},
  ): Promise<ExecResult> {
    try {
      const result = await this.#host.exec(program, args, options);
      if (program !== 'sh' || !noCommand.has(result.exitCode)) return result;
    } catch (error) {
      if (!(error instanceof ProgramMissingError)) throw error;
    }
    throw new NftError('there is no program nft: install the package nftables (1.0.1 or later)');
  }
}

/** The exit code of a shell whose program got SIGKILL. */
const killed = 137;

/** A transaction as the shell reads it. */
function sized(text: string): string {
  return `${Buffer.byteLength(text)}\n${text}`;
}

/** The messages of sh about a program that it does not find, and one that cannot be run. */
const noCommand: ReadonlySet<number> = new Set([126, 127]);
