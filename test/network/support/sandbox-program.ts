/** Runs a command in a sandbox: `sandbox-program.ts bwrap|unshare writable|read-only COMMAND`; in namespaces that it may change. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { makeRoot } from '../../../src/emulation/containers/container-root.ts';
import {
  defaultCapabilities,
  isMapped,
  report,
  sandboxArgv,
} from '../../../src/emulation/containers/sandbox-command.ts';

const [way, kind, ...command] = process.argv.slice(2);
const folder = '/run/sandbox';
await mkdir(`${folder}/volume`, { recursive: true });
await writeFile(`${folder}/volume/file`, 'of the volume\n');
await writeFile(`${folder}/hosts`, '10.0.0.1 here\n');
const mounts = [
  { from: `${folder}/hosts`, at: '/etc/hosts', isReadOnly: true, isFile: true },
  { from: `${folder}/volume`, at: '/etc/new/volume', isReadOnly: true, isFile: false },
  { from: `${folder}/volume`, at: '/data', isReadOnly: false, isFile: false },
];
const root = await makeRoot({ folder, mounts, isWritable: kind === 'writable', view: 'whole', cgroups: [] });
const [first = '', ...rest] = [
  ...sandboxArgv({
    ...{
      root,
      folder,
      hostname: 'pod',
      hasBubblewrap: way === 'bwrap',
      capabilities: defaultCapabilities,
      hasTerminal: false,
      memoryLimit: undefined,
      // Old kernels refuse it in a user namespace.
      sysctls: new Map(isMapped('uid', 1) ? [['kernel/shm_rmid_forced', '1']] : []),
    },
  }),
  ...['sh', '-c', report, '/', ...command],
];
const child = spawn(first, rest, { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
let reported = '';
child.stdio[3]?.on('data', (chunk: Buffer) => (reported += chunk.toString()));
child.once('close', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 128);
  if (code === 128) process.stderr.write(reported);
});
