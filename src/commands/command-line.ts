import { CommanderError } from 'commander';
import { ConfigError } from '../config/errors.ts';
import { explanation } from './explanation.ts';
import { program } from './program.ts';

/** As of shells and of most programs: it was never begun, since nobody can know what was meant. */
const misused = 2;

/**
 * Runs the command that the arguments name.
 * @returns the exit code: 0 when it ended well, 1 when it failed, 2 for a wrong command line; a command may say another.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(args);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has printed its own complaint; everything else is said in one line.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused;
    process.stderr.write(`servicenet: ${await explanation(error)}\n`);
    return error instanceof ConfigError ? misused : 1;
  }
}
