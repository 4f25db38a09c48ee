import { type ExecOptions, type ExecResult, type Host, ProgramMissingError } from '../../host/host.ts';
import type { Command } from './commands.ts';
import { NftError } from './nft-error.ts';
import { residentLimit, ResidentNft } from './resident-nft.ts';

/**
 * One shell runs nft for each of several transactions: to start a program takes a process of Node.js 10 ms at 200 MiB, and
 * a shell less than 1 ms. nft opens /dev/stdin, which must be a pipe for that: Node.js gives its children sockets.
 */
const eachTransaction = 'while read -r bytes; do head -c "$bytes" | nft -j -f - || exit; done';

/** Protocols as numbers: nft looks each name up in `/etc/protocols`. */
const eachListing = 'for what; do nft -j --numeric-protocol list $what || exit; done';

/** The program `nft` of a machine. One call at a time. */
export class Nft {
  readonly #host: Host;
  readonly #resident: ResidentNft;

  constructor(host: Host) {
    this.#host = host;
    this.#resident = new ResidentNft(host);
  }

  /** Ends the program that {@link runAll} leaves behind for the next small transaction. */
  async close(): Promise<void> {
    await this.#resident.close();
  }

  /** Does all of it or nothing. @throws {NftError} */
  async run(commands: readonly Command[]): Promise<void> {
    const text = JSON.stringify({ nftables: commands });
    await this.#shell(eachTransaction, [], { input: [sized(text)] });
  }

  /**
   * Transactions one after the other, each as one line of JSON: nft does all of one or nothing, and none after one that
   * failed. The next is made while nft does the one before. A small one alone is done by a program nft that stays until
   * {@link close}.
   *
   * @returns how many there were.
   * @throws {NftError} of the one that failed.
   */
  async runAll(transactions: AsyncIterable<string>): Promise<number> {
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
    await this.#shell(eachTransaction, [], { input: input() });
    return count;
  }

  /** One transaction in nft's own language, for what its JSON cannot say: constants of ours only. @throws {NftError} */
  async runText(text: string): Promise<void> {
    await this.#shell('cat | nft -f -', [], { input: text });
  }

  /** The output of `nft -j list …`. @returns undefined if there is no such thing. @throws {NftError} */
  async list(options: readonly string[], ...what: readonly string[]): Promise<string | undefined> {
    const { exitCode, stdout, stderr } = await this.#exec('nft', ['-j', ...options, 'list', ...what]);
    if (exitCode === 0) return stdout;
    if (stderr.includes('No such file or directory')) return undefined;
    throw NftError.of(stderr, `nft list ${what.join(' ')}`);
  }

  /**
   * The output of `nft -j list …` for one thing after the other, with protocols as numbers.
   *
   * @param what each of words of ours only: `map ip servicenet service-ips`.
   * @param output is called with each piece of it, as they come.
   * @throws {NftError}
   */
  async listEach(what: readonly string[], output: (text: string) => void): Promise<void> {
    await this.#shell(eachListing, what, { output });
  }

  async #shell(script: string, args: readonly string[], options: ExecOptions): Promise<void> {
    const { exitCode, stderr } = await this.#exec('sh', ['-c', script, 'sh', ...args], options);
    if (exitCode !== 0) throw NftError.of(stderr);
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

/** A transaction as the shell reads it. */
function sized(text: string): string {
  return `${Buffer.byteLength(text)}\n${text}`;
}

/** The messages of sh about a program that it does not find, and one that cannot be run. */
const noCommand: ReadonlySet<number> = new Set([126, 127]);
