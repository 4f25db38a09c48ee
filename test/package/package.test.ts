import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRecord } from '../../src/objects/json.ts';
import { recordAt, textAt } from '../../src/objects/read.ts';
import { Child } from '../e2e/child.ts';

const run = promisify(execFile);
const seconds = 1000;
const repository = process.cwd();

/** What users have: every entry point, with types that are no `any`. */
const program = `
import { runControllers, startEmbedded, version } from 'servicenet';
import { startEmbedded as same } from 'servicenet/apiserver';
import { Controller, type RunOptions, runControllers as run } from 'servicenet/controller';
import { startApiServer, type TestServer } from 'servicenet/testing';

// @ts-expect-error it answers a text
const wrong: number = version();
// @ts-expect-error there is no such mode
const options: Parameters<typeof startApiServer>[0] = { authorizationMode: 'ABAC' };
// @ts-expect-error a transport is required
const incomplete: RunOptions = { catalog: [] };
const server: TestServer = await startApiServer({ authorizationMode: 'RBAC' });
const { status } = await server.client.request('GET', '/api/v1/namespaces/default');
await server.stop();
const unused = [wrong, options, incomplete].length;
console.log(status, same === startEmbedded, run === runControllers, typeof Controller, unused);
`;

describe('the package, as npm installs it into an empty directory', () => {
  let directory: string;
  const inside = (file: string, args: readonly string[]): Promise<{ stdout: string }> =>
    run(file, args, { cwd: directory, timeout: 180 * seconds });

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'servicenet-package-'));
    // Builds first, as before each release.
    await run('npm', ['pack', '--pack-destination', directory], { cwd: repository, timeout: 300 * seconds });
    const [tarball = ''] = readdirSync(directory);
    writeFileSync(join(directory, 'package.json'), '{ "name": "user", "private": true, "type": "module" }');
    const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    await inside('npm', ['install', ...quiet, `./${tarball}`]);
  }, 480_000);

  afterAll(() => {
    rmSync(directory, { recursive: true });
  });

  test('has what it promises, and nothing of the sources or tests', () => {
    const root = join(directory, 'node_modules', 'servicenet');
    const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const files = readdirSync(root, { recursive: true }).map(String);
    const promised = Object.values(recordAt(manifest, 'exports')).flatMap((entry) =>
      isRecord(entry) ? [textAt(entry, 'types'), textAt(entry, 'default')] : [String(entry)],
    );
    for (const file of [...promised, 'dist/start.js', 'deploy/base/deployment.yaml', 'LICENSE']) {
      expect(files, file).toContain(file.replace('./', ''));
    }
    const strange = files.filter((file) => /^(src|test|hack)\b|\.test\.|(?<!\.d)\.ts$/.test(file));
    expect(strange).toEqual([]);
    const sources = readdirSync(join(repository, 'src'), { recursive: true }).map(String);
    const modules = sources
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
      .map((file) => file.replace(/ts$/, 'js'));
    expect(modules.filter((file) => !files.includes(join('dist', file)))).toEqual([]);
  });

  test('its entry points load, and their types hold under --strict with node’s resolution', async () => {
    writeFileSync(join(directory, 'use.ts'), program);
    const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
    const flags = ['--strict', '--skipLibCheck', 'false', '--target', 'es2024', '--types', 'node'];
    const resolution = ['--module', 'nodenext', '--moduleResolution', 'nodenext', '--outDir', 'out'];
    await inside(process.execPath, [compiler, ...flags, ...resolution, 'use.ts']);
    const { stdout } = await inside(process.execPath, ['out/use.js']);
    expect(stdout.trim()).toBe('200 true true function 3');
  }, 360_000);

  test('docs/testing-your-operator.md: its files compile, and their tests pass', async () => {
    const page = readFileSync(join(repository, 'docs', 'testing-your-operator.md'), 'utf8');
    const samples = [...page.matchAll(/^```ts\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)];
    expect(samples.map(([, name]) => name)).toEqual(['service.test.ts', 'fetch.test.ts', 'rights.test.ts']);
    for (const [, name = '', text = ''] of samples) writeFileSync(join(directory, name), text);
    const names = samples.map(([, name = '']) => name);
    const compiler = join(repository, 'node_modules', 'typescript', 'bin', 'tsc');
    const flags = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2024', '--types', 'node'];
    await inside(process.execPath, [compiler, ...flags, '--module', 'nodenext', ...names]);
    const { stdout } = await inside(process.execPath, ['--test', '--test-reporter=tap', ...names]);
    expect(stdout).toContain(`# pass ${samples.length}\n`);
    expect(stdout).toContain('# fail 0\n');
  }, 360_000);

  test('npx runs its command', async () => {
    const { stdout } = await inside('npx', ['--no', '--', 'servicenet', '--help']);
    expect(stdout).toContain('Usage: servicenet');
    expect(stdout).toContain('controller');
  }, 180_000);

  test('its command serves, and ends when it is asked to', async () => {
    const command = join(directory, 'node_modules', '.bin', 'servicenet');
    const kubeconfig = join(directory, 'kubeconfig');
    const child = new Child(process.execPath, [
      command,
      'up',
      '--port',
      '0',
      '--write-kubeconfig',
      kubeconfig,
    ]);
    try {
      await child.until(() => child.output.includes('Try it:'));
      const { stdout } = await inside('kubectl', ['--kubeconfig', kubeconfig, 'get', 'svc', '-o', 'name']);
      expect(stdout.trim()).toBe('service/kubernetes');
    } finally {
      await child.end();
    }
  }, 180_000);
});
