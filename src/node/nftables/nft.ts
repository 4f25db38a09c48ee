import type { Host } from '../../host/host.ts';
import { ProgramMissingError } from '../../host/host.ts';
import type { Command } from './commands.ts';

/** nft refused something, or could not do it. */
export class NftError extends Error {
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
    const input = typeof commands === 'string' ? commands : JSON.stringify({ nftables: commands });
    const { exitCode, stderr } = await this.#exec(['-j', '-f', '-'], input);
    if (exitCode !== 0) throw new NftError(`nft: ${firstLines(stderr)}`);
  }

  /**
   * What `nft -j list …` prints.
   *
   * @returns undefined where there is no such thing.
   * @throws {NftError}
   */
  async list(options: readonly string[], ...what: readonly string[]): Promise<string | undefined> {
    const { exitCode, stdout, stderr } = await this.#exec(['-j', ...options, 'list', ...what]);
    if (exitCode === 0) return stdout;
    if (stderr.includes('No such file or directory')) return undefined;
    throw new NftError(`nft list ${what.join(' ')}: ${firstLines(stderr)}`);
  }

  async #exec(args: readonly string[], input = ''): Promise<{ exitCode: number; stdout: string; stderr: string }> {
    try {
      return await this.#host.exec('nft', args, { input });
    } catch (error) {
      if (!(error instanceof ProgramMissingError)) throw error;
      throw new NftError('there is no program nft: install the package nftables (1.0.1 or later)', { cause: error });
    }
  }
}

/** nft repeats the whole input in what it says of a failure. */
function firstLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines
    .slice(0, 3)
    .map((line) => line.slice(0, 300))
    .join('; ');
}
