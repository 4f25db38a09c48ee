#!/usr/bin/env node
import { CommanderError } from 'commander';
import { program } from './commands/program.ts';

try {
  await program().parseAsync();
} catch (error) {
  // commander has printed its own complaint; everything else is said in one line.
  if (!(error instanceof CommanderError)) {
    process.stderr.write(`servicenet: ${error instanceof Error ? error.message : String(error)}\n`);
  }
  process.exitCode = error instanceof CommanderError ? error.exitCode : 1;
}
