import { vi } from 'vitest';
import { program, runCommandLine } from '../../src/commands/program.ts';
import type { Given } from '../../src/flags/readers.ts';

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

/** What the arguments of a command give its flags, defaults included, where standard error is no terminal. */
export function givenFlags(name: string, args: readonly string[]): Given {
  const command = program().commands.find((one) => one.name() === name);
  if (command === undefined) throw new Error(`there is no command ${name}`);
  command.parseOptions([...args]);
  return { logFormat: 'json', ...command.opts() };
}
