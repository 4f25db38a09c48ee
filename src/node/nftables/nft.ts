import { type ExecResult, type Host, ProgramMissingError } from '../../host/host.ts';
import type { Command } from './commands.ts';

/** nft refused something, or could not do it. */
class NftError extends Error {
  override readonly name = 'NftError';
}

/** The program `nft` of a machine. */
export class Nft {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Does all of it or nothing. @throws {NftError} */
  async run(commands: readonly Command[] | string): Promise<void> {
    await this.#read(
      'nft -j -f -',
      typeof commands === 'string' ? commands : JSON.stringify({ nftables: commands }),
    );
  }

  /** The same with nft's own language, for what its JSON cannot say: constants of ours only. @throws {NftError} */
  async runText(text: string): Promise<void> {
    await this.#read('nft -f -', text);
  }

  /**
   * What `nft -j list …` prints.
   *
   * @returns undefined where there is no such thing.
   * @throws {NftError}
   */
  async list(options: readonly string[], ...what: readonly string[]): Promise<string | undefined> {
    const { exitCode, stdout, stderr } = await this.#exec('nft', ['-j', ...options, 'list', ...what]);
    if (exitCode === 0) return stdout;
    if (stderr.includes('No such file or directory')) return undefined;
    throw new NftError(`nft list ${what.join(' ')}: ${firstLines(stderr)}`);
  }

  async #read(command: 'nft -j -f -' | 'nft -f -', input: string): Promise<void> {
    // nft opens /dev/stdin, which must be a pipe for that: Node.js gives its children sockets.
    const { exitCode, stderr } = await this.#exec('sh', ['-c', `cat | ${command}`], input);
    if (exitCode !== 0) throw new NftError(`nft: ${firstLines(stderr)}`);
  }

  async #exec(program: 'nft' | 'sh', args: readonly string[], input = ''): Promise<ExecResult> {
    try {
      const result = await this.#host.exec(program, args, { input });
      if (program !== 'sh' || result.exitCode !== commandNotFound) return result;
    } catch (error) {
      if (!(error instanceof ProgramMissingError)) throw error;
    }
    throw new NftError('there is no program nft: install the package nftables (1.0.1 or later)');
  }
}

/** What sh says where it does not find a program. */
const commandNotFound = 127;

/** nft repeats the whole input in what it says of a failure. */
function firstLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines
    .slice(0, 3)
    .map((line) => line.slice(0, 300))
    .join('; ');
}
