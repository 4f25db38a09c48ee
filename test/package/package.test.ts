import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRecord } from '../../src/objects/json.ts';
import { recordAt, textAt } from '../../src/objects/json.ts';
import { Child } from '../e2e/child.ts';
import { missingFor } from '../network/support/gate.ts';
import { imageTests } from './image.ts';
import { missingModules } from './modules.ts';

const run = promisify(execFile);
const seconds = 1000;
const missing = missingFor('user');
const repository = process.cwd();

/** What users have, with types that are no `any`. */
const program = `
import { startApiServer, type TestServer, type TestServerOptions } from 'servicenet/testing';

// @ts-expect-error there is no such mode
const mode: TestServerOptions = { authorizationMode: 'ABAC' };
// @ts-expect-error there is no such option
const option: TestServerOptions = { node: 1 };
const server: TestServer = await startApiServer({ authorizationMode: 'RBAC', controllers: ['*'] });
const { status } = await server.client.request('GET', '/api/v1/namespaces/default');
await server.stop();
const refused = await Promise.allSettled([startApiServer(mode), startApiServer(option)]);
console.log(status, ...refused.map(({ status }) => status));
`;

/** agnhost in the process of the built-in programs, with a command that it has and with one that it has not: prints what each says. */
const agnhost = `
import { startApiServer } from 'servicenet/testing';

const image = 'ghcr.io/shop/tool';
const server = await startApiServer({ network: true, containers: 'processes', nodes: 1, images: [\`\${image}=agnhost\`] });
const pods = '/api/v1/namespaces/default/pods';
const create = (name, args) =>
  server.client.request('POST', pods, {
    body: { metadata: { name }, spec: { restartPolicy: 'Never', containers: [{ name, image, args }] } },
  });
try {
  await create('tool', ['netexec']);
  await create('other', ['dns-suffix']);
  const until = async (name, phase) => {
    for (;;) {
      const { status } = (await server.client.request('GET', \`\${pods}/\${name}\`)).json();
      if (status.phase === phase) return status.podIP;
      if (status.phase === 'Failed' && phase !== 'Failed') throw new Error(JSON.stringify(status));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const url = \`http://\${await until('tool', 'Running')}:8080/hostname\`;
  const retry = ['--retry', '30', '--retry-all-errors'];
  console.log((await server.run(['curl', '-s', ...retry, url])).stdout);
  await until('other', 'Failed');
  const log = await server.client.request('GET', \`\${pods}/other/log\`);
  console.log(log.bytes.toString());
} finally {
  await server.stop();
}
`;

beforeAll(async () => {
  // As `npm pack` does before it, but that the types of the sources are not checked: `npm run typecheck` does so.
  await run('npm', ['run', 'build', '--', '--noCheck'], { cwd: repository, timeout: 900 * seconds });
}, 1_800_000);

describe('the package, as npm installs it into a new project', () => {
  let home: string;
  let directory: string;
  const page = readFileSync(join(repository, 'docs', 'testing-your-operator.md'), 'utf8');
  const inside = (file: string, args: readonly string[]): Promise<{ stdout: string }> =>
    run(file, args, { cwd: directory, timeout: 600 * seconds });

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'servicenet-package-'));
    directory = join(home, 'project');
    for (const folder of ['servicenet', 'project']) mkdirSync(join(home, folder));
    // Without scripts: it has been built.
    const env = { ...process.env, npm_config_ignore_scripts: 'true' };
    await run('hack/release.sh', [join(home, 'release')], { cwd: repository, env, timeout: 900 * seconds });
    const packed = readdirSync(join(home, 'release')).find((name) => /^servicenet-\d/.test(name)) ?? '';
    copyFileSync(join(home, 'release', packed), join(home, 'servicenet', packed));
    // A new project, as the page says it: its name of the package is that of today's version.
    const commands = /^```sh\n(npm init -y\n[\s\S]*?)^```$/m.exec(page)?.[1] ?? '';
    expect(commands).toContain(`../servicenet/${readdirSync(join(home, 'servicenet')).join()}`);
    // With install scripts: a package must not have one that needs a file which is not in it.
    const quiet = ['prefer_offline=true', 'audit=false', 'fund=false', 'dangerously_allow_all_scripts=true'];
    const settings = quiet.map((setting) => `npm_config_${setting}`);
    await inside('env', [...settings, 'sh', '-e', '-c', commands]);
  }, 1_800_000);

  afterAll(() => {
    rmSync(home, { recursive: true });
  });

  test('is one of the files of a release, which have a chart, a bill of materials and their checksums', async () => {
    const cwd = join(home, 'release');
    const files = readdirSync(cwd).filter((name) => name !== 'SHA256SUMS');
    const sums = (await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd })).stdout;
    expect(sums.trim().split('\n').toSorted()).toEqual(files.map((name) => `${name}: OK`).toSorted());
    const chart = files.find((name) => name.startsWith('servicenet-chart-')) ?? '';
    const { stdout } = await run('tar', ['--list', '--file', chart], { cwd });
    const names = stdout.trim().split('\n');
    expect(names).toContain('servicenet/Chart.yaml');
    expect(names.every((name) => name.startsWith('servicenet/'))).toBe(true);
    const bill: unknown = JSON.parse(readFileSync(join(cwd, 'sbom.cdx.json'), 'utf8'));
    expect(textAt(bill, 'bomFormat')).toBe('CycloneDX');
    await expect(run('hack/release.sh', [cwd, 'v9.9.9'], { cwd: repository })).rejects.toThrow('v9.9.9');
  });

  test('is built before it is packed', () => {
    const manifest: unknown = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
    expect(textAt(manifest, 'scripts', 'prepack')).toBe('npm run build');
  });

  test('has what it promises, and nothing of the sources or tests', () => {
    const root = join(directory, 'node_modules', 'servicenet');
    const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const files = readdirSync(root, { recursive: true }).map(String);
    const promised = Object.values(recordAt(manifest, 'exports')).flatMap((entry) =>
      isRecord(entry) ? [textAt(entry, 'types'), textAt(entry, 'default')] : [String(entry)],
    );
    for (const file of [...promised, 'dist/main.js', 'deploy/base/deployment.yaml', 'LICENSE']) {
      expect(files, file).toContain(file.replace('./', ''));
    }
    const strange = files.filter((file) => /^(src|test|hack)\b|\.test\.|(?<!\.d)\.ts$/.test(file));
    expect(strange).toEqual([]);
    expect(missingModules(join(root, 'dist'))).toEqual([]);
  });

  test('runs no script where it is installed', () => {
    const manifest: unknown = JSON.parse(
      readFileSync(join(directory, 'node_modules', 'servicenet', 'package.json'), 'utf8'),
    );
    const scripts = Object.keys(recordAt(manifest, 'scripts'));
    const installing = [
      'preinstall',
      'install',
      'postinstall',
      'prepublish',
      'preprepare',
      'prepare',
      'postprepare',
    ];
    expect(scripts.filter((name) => installing.includes(name))).toEqual([]);
  });

  test('links in its documents lead to files of the package', () => {
    const root = join(directory, 'node_modules', 'servicenet');
    const documents = globSync('*.md', { cwd: root }).concat(globSync('docs/**/*.md', { cwd: root }));
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'docs/testing-your-operator.md']));
    const broken = documents.flatMap((document) =>
      [...readFileSync(join(root, document), 'utf8').matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^https?:/.test(link) && !existsSync(join(root, dirname(document), link)))
        .map((link) => `${document}: ${link}`),
    );
    expect(broken).toEqual([]);
  });

  test.each(['servicenet', 'servicenet/apiserver', 'servicenet/controller'])(
    '%s is no entry point',
    async (name) => {
      const load = `import(${JSON.stringify(name)}).catch((error) => console.log(error.code))`;
      const { stdout } = await inside(process.execPath, ['-e', load]);
      expect(stdout.trim()).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED');
    },
  );

  test('its entry point loads, and its types hold under --strict with node’s resolution', async () => {
    writeFileSync(join(directory, 'use.ts'), program);
    const compiler = join(repository, 'node_modules', 'typescript-native', 'bin', 'tsc');
    // Without the types of browsers, which take a third of the time: of Node.js ours must find all that they need.
    const strict = ['--strict', '--skipLibCheck', 'false', '--target', 'es2024', '--lib', 'es2024'];
    const flags = [...strict, '--types', 'node'];
    const resolution = ['--module', 'nodenext', '--moduleResolution', 'nodenext', '--outDir', 'out'];
    await inside(process.execPath, [compiler, ...flags, ...resolution, 'use.ts']);
    const { stdout } = await inside(process.execPath, ['out/use.js']);
    expect(stdout.trim()).toBe('200 rejected rejected');
  }, 360_000);

  test('docs/testing-your-operator.md: its files compile, and their tests pass', async () => {
    const samples = [...page.matchAll(/^```ts\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)];
    const inProcess = ['service.test.ts', 'fetch.test.ts', 'rights.test.ts'];
    expect(samples.map(([, name]) => name)).toEqual([...inProcess, 'traffic.test.ts']);
    for (const [, name = '', text = ''] of samples) writeFileSync(join(directory, name), text);
    const names = samples.map(([, name = '']) => name);
    const compiler = join(repository, 'node_modules', 'typescript-native', 'bin', 'tsc');
    const flags = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2024', '--types', 'node'];
    await inside(process.execPath, [compiler, ...flags, '--module', 'nodenext', ...names]);
    const { stdout } = await inside(process.execPath, ['--test', '--test-reporter=tap', ...inProcess]);
    expect(stdout).toContain(`# pass ${inProcess.length}\n`);
    expect(stdout).toContain('# fail 0\n');
  }, 360_000);

  test.skipIf(missing !== '')(
    `docs/testing-your-operator.md: a Service leads to its Pods${missing === '' ? '' : ` (missing: ${missing})`}`,
    async () => {
      await inside(process.execPath, ['--test', 'traffic.test.ts']);
    },
    180_000,
  );

  test.skipIf(missing !== '')(
    `runs programs of Kubernetes' test images${missing === '' ? '' : ` (missing: ${missing})`}`,
    async () => {
      writeFileSync(join(directory, 'agnhost.js'), agnhost);
      const { stdout } = await inside(process.execPath, ['agnhost.js']);
      const [name, log] = stdout.split('\n');
      expect(name).toBe('tool');
      expect(log).toContain('the built-in agnhost has netexec, guestbook and pause');
    },
    180_000,
  );

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
      ...['up', '--port', '0', '--network', 'off', '--write-kubeconfig', kubeconfig],
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

imageTests();
