/**
 * Starts `servicenet up` once, as `npm start` does, and ends it, so that Node.js has compiled the program before
 * somebody waits for it: the first start of a fresh clone takes a third of the time. npm calls it (`prepare`) at the
 * end of `npm ci`; an installation never fails for its sake.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Milliseconds after which a start is given up. */
const patience = 20_000;
/** The last line of what `up` says when all of its code is loaded. */
const introduced = 'Stop it with';

const folder = await mkdtemp(join(tmpdir(), 'servicenet-warm-'));
try {
  await startOnce(join(folder, 'kubeconfig'));
} catch (error) {
  process.stderr.write(`The first start will be slower: ${String(error)}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function startOnce(kubeconfig: string): Promise<void> {
  const root = join(import.meta.dirname, '..');
  // The same flags of Node.js, too: what V8 compiled under others counts as not compiled.
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const [node = '', ...args] = manifest.scripts.start.split(' ');
  const server = spawn(node, [...args, '--port', '0', '--write-kubeconfig', kubeconfig], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: patience,
    killSignal: 'SIGKILL',
  });
  const ended: Promise<unknown[]> = once(server, 'exit');
  let said = '';
  server.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.includes(introduced)) server.kill('SIGINT');
  });
  const [code, signal] = await ended;
  if (code !== 0) throw new Error(`up ended with ${String(signal ?? code)}`);
}
