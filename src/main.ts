#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { endAsProcessOne } from './commands/signals.ts';

endAsProcessOne();
// Half of a start is compiling: the second start takes it from disk. Everything else is loaded behind this line.
enableCompileCache();
const { runCommandLine } = await import('./commands/command-line.ts');
process.exitCode = await runCommandLine(process.argv);
