import { CommanderError } from 'commander';
import { program } from './program.ts';

/**
 * Runs the command that the arguments name.
 * @returns the exit code: 0 when it ended well, 1 when it failed, commander's own for a wrong command line.
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync(args);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // commander has printed its own complaint; everything else is said in one line.
    if (error instanceof CommanderError) return error.exitCode;
    process.stderr.write(`servicenet: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}
