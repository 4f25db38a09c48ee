import { CommanderError } from 'commander';
import { ConfigError } from '../../flags/readers.ts';
import { explanation } from './explanation.ts';
import { program } from './program.ts';

/** Exit code of a wrong command line, as of shells and most programs: nothing was started. */
const misused = 2;

/**
 * Runs the command that the arguments name.
 * @returns the exit code: 0 on success, 1 on failure, 2 for a wrong command line; commands may define others.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(args);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has printed its own message; other errors are printed in one line.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused;
    process.stderr.write(`servicenet: ${await explanation(error)}\n`);
    return error instanceof ConfigError ? misused : 1;
  }
}
