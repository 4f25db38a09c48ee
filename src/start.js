#!/usr/bin/env node
// What `npm start` and the command `servicenet` run; main.ts is the rest. It is JavaScript, because Node compiles the
// first file before anything can turn the compile cache on: were that file TypeScript, Node would load its type
// stripper, a WebAssembly module of 14 MiB, for it alone.
import * as module from 'node:module';

/**
 * Flags of V8 that keep `up` small (docs/performance.md says what each gives). V8 reads them when it starts, and a
 * command cannot name them: `env -S` is not everywhere, and npm's links know nothing of Node's options.
 */
const flags = ['--max-semi-space-size=8', '--heap-growing-percent=30', '--expose-gc'];
/** Of glibc: without it each thread of V8 and libuv has its own heap, of which little is ever given back. */
const allocation = { MALLOC_ARENA_MAX: '1' };

if (isOld()) {
  process.stderr.write(
    `servicenet needs Node.js 22.19 or newer; this is ${process.version} (${process.execPath})\n`,
  );
  process.exit(1);
}
if (process.argv[2] === 'up' && !flags.every((flag) => process.execArgv.includes(flag))) startAgain();
module.enableCompileCache();
await import('./main.ts');

/** Whether this is an older Node.js than package.json's `engines` has: then other files would not even be parsed. */
function isOld() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major < 22 || (major === 22 && minor < 19);
}

/** Becomes Node with the flags: the same process, some 45 ms later. What was given by hand comes behind and wins. */
function startAgain() {
  // Older versions of Node and Windows lack it, and a channel to a parent would be lost: then it goes without them.
  if (process.platform === 'win32' || process.execve === undefined || process.send !== undefined) return;
  const args = [process.execPath, ...flags, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, args, { ...allocation, ...process.env });
}
