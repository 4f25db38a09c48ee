import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Child } from '../e2e/child.ts';
import { freePort } from '../support/free-port.ts';
import { missingFor } from './support/gate.ts';

const missing = missingFor(process.getuid?.() === 0 ? 'root' : 'user');
const repository = join(import.meta.dirname, '../..');

/** What `npm start` and README.md print as commands, run as they stand in another terminal: in a shell, in this clone. */
describe.skipIf(missing !== '')(`a quick start${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  const home = mkdtempSync(join(tmpdir(), 'servicenet-quick-start-'));
  // Of a user, who has no programs of this package in PATH.
  const path = (process.env['PATH'] ?? '').split(':').filter((folder) => !folder.includes('node_modules'));
  const environment = { ...process.env, HOME: home, KUBECONFIG: '', PATH: path.join(':') };
  let up: Child;
  let printed: readonly string[] = [];
  let exported = '';

  beforeAll(async () => {
    const start = ['npm', 'start', '--', '--port', '0', '--network', 'on', '--default-pool', '192.0.2.0/24'];
    up = new Child('sh', ['-c', `cd '${repository}' && exec ${start.join(' ')}`], environment);
    await up.until(() => up.output.includes('cluster network is ready'));
    exported = `export KUBECONFIG='${home}/.servicenet/kubeconfig'`;
    await output('kubectl -n shop rollout status deployment storefront --timeout=60s');
    const [, tries = ''] = up.output.split('Try it:\n');
    [exported = '', ...printed] = [...tries.matchAll(/^ {2}(\S.*)$/gm)].map(([, line = '']) => line);
  });
  afterAll(async () => {
    await up.end();
    rmSync(home, { recursive: true });
  });

  /** Begins a command line in a shell in which the line of `export` was run. */
  const begin = (line: string): Child => {
    return new Child('sh', ['-c', `cd '${repository}'; ${exported}; ${line}`], environment);
  };

  /** What a command line prints, which has to succeed. */
  async function output(line: string): Promise<string> {
    const child = begin(line);
    await child.closed;
    expect(child.code, `${line}: ${child.output}`).toBe(0);
    return child.output;
  }

  test('every command that npm start prints works', { timeout: 240_000 }, async () => {
    expect(printed.length).toBeGreaterThanOrEqual(7);
    expect(printed.filter((line) => line.length > 78)).toEqual([]);
    for (const line of printed) {
      if (line.endsWith('--watch')) {
        const watch = begin(`exec ${line}`);
        await watch.until(() => watch.output.includes('kubernetes'));
        await watch.end();
      } else if (line.includes('port-forward')) {
        const port = String(await freePort());
        const forward = begin(`exec ${line.replace('8000', port)}`);
        await forward.until(() => forward.output.includes(`Forwarding from 127.0.0.1:${port}`));
        expect(await output(`curl -s http://127.0.0.1:${port}/hostname`)).toMatch(/^storefront-/);
        await forward.end();
      } else {
        const text = await output(line);
        if (line.includes('/hostname')) expect(text).toMatch(/^storefront-/);
      }
    }
    await output('kubectl delete deployment,service web');
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'up ends without a word by a %s to its process group, as Ctrl-C and timeout send it',
    { timeout: 120_000 },
    async (signal) => {
      const kubeconfig = ['--write-kubeconfig', join(home, signal)];
      const words = ['src/main.js', 'up', '--port', '0', '--network', 'on', '--nodes', '1', ...kubeconfig];
      const group = spawn(process.execPath, words, { cwd: repository, env: environment, detached: true });
      let output = '';
      let errors = '';
      group.stdout.on('data', (text) => (output += String(text)));
      group.stderr.on('data', (text) => (errors += String(text)));
      const closed = once(group, 'close');
      // Its network begins at this time, and may be ready or not.
      await expect.poll(() => output).toContain('Stop it with Ctrl-C');
      process.kill(-(group.pid ?? 0), signal);
      await closed;
      expect([group.exitCode, errors]).toEqual([0, '']);
    },
  );

  test("every command of README.md's quick start does what stands there", { timeout: 240_000 }, async () => {
    const [, section = ''] = readFileSync(join(repository, 'README.md'), 'utf8').split('## Quick start\n');
    const [text = ''] = section.split(/^## /m);
    const inline = [...text.matchAll(/`(npm run [^`]+)`/g)].map(([, line = '']) => line);
    const commands = [...text.matchAll(/^\$ (.*)$/gm)].map(([, line = '']) => line).slice(1);
    expect(commands.length).toBeGreaterThan(9);
    expect(inline.length).toBeGreaterThan(0);
    for (const line of [...commands, ...inline]) {
      const said = await output(line);
      if (line.includes('/hostname')) expect(said).toMatch(/^storefront-/);
    }
    // What the text says for the tour.
    expect(text).toContain('`kubectl delete deployment,service web`');
    await output('kubectl delete deployment,service web');
    expect(await output('kubectl get nodes')).not.toContain('SchedulingDisabled');
  });
});
