import { vi } from 'vitest';
import { runCommandLine } from '../../src/commands/command-line/run-command-line.ts';

export interface CommandRun {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Runs servicenet in this process, to its end: its exit code, and what it writes. */
export async function commandLine(...args: string[]): Promise<CommandRun> {
  const written = { output: '', errors: '' };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      written.output += String(text);
      return true;
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      written.errors += String(text);
      return true;
    }),
  ];
  const { exitCode } = process;
  try {
    process.exitCode = undefined;
    return { code: await runCommandLine(['node', 'servicenet', ...args]), ...written };
  } finally {
    process.exitCode = exitCode;
    for (const spy of spies) spy.mockRestore();
  }
}
