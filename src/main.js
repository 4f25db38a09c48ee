#!/usr/bin/env node
// JavaScript, and nothing else is imported here: an older Node.js would fail to load it, and could not say so. To run
// TypeScript, Node.js loads a compiler of 6 MB where the compile cache is not on yet.
import * as module from 'node:module';
import * as v8 from 'node:v8';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
// package.json has the same version in `engines`.
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `servicenet needs Node.js 22.19 or newer; this is ${process.version} (${process.execPath})\n`,
  );
  process.exit(1);
}
// Half of a start is compiling: the second start takes it from disk. Everything else is loaded behind this line.
module.enableCompileCache();
// undici parses HTTP in WebAssembly. V8 would optimize it after five requests, for 12 MiB and 150 ms of CPU; so it does
// after some hundred.
v8.setFlagsFromString('--wasm-tiering-budget=2000000000');
const { handleSignalsAsPid1 } = await import('./commands/signals.ts');
handleSignalsAsPid1();
const { runCommandLine } = await import('./commands/program.ts');
process.exitCode = await runCommandLine(process.argv);
