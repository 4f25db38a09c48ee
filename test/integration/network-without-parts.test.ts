import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { textAt } from '../../src/objects/json.ts';
import { missingProgram } from '../network/support/gate.ts';

const isRoot = process.getuid?.() === 0;
const namespaces = isRoot ? ['unshare', '--mount'] : ['unshare', '--user', '--map-root-user', '--mount'];

/** Not nft: that is what this is about. */
function missing(): string {
  if (process.platform !== 'linux') return 'Linux';
  const absent = [
    missingProgram('unshare', 'util-linux'),
    missingProgram('ip', 'iproute2'),
    missingProgram('curl', 'curl'),
  ].filter((what) => what !== '');
  if (absent.length > 0) return absent.join(', ');
  const tried = spawnSync('unshare', [...namespaces.slice(1), '--net', '--pid', '--fork', 'true'], {
    encoding: 'utf8',
  });
  return tried.status === 0 ? '' : `namespaces (${tried.stderr.trim()})`;
}

const lacks = missing();
const home = mkdtempSync(join(tmpdir(), 'servicenet-without-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** What is no program in its mount namespace cannot be found either, nor can what is no library be loaded. */
function without(files: string, program: readonly string[]) {
  const hide = `for file in ${files}; do mount --bind /dev/null "$file"; done; exec "$@"`;
  const [unshare = '', ...flags] = namespaces;
  return spawnSync(unshare, [...flags, 'sh', '-c', hide, 'sh', process.execPath, ...program], {
    encoding: 'utf8',
    timeout: 100_000,
    env: { ...process.env, HOME: home },
  });
}

const named = (program: string): string => `$(PATH="$PATH:/usr/sbin:/sbin" command -v ${program})`;
const koffi = readdirSync('node_modules/@koromix', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.node'))
  .map((file) => join('node_modules/@koromix', file));

type Run = (program: readonly string[]) => ReturnType<typeof without>;

function up(run: Run, network: 'auto' | 'on') {
  const own = ['--port=0', '--nodes=1', '--controllers=', '--page=off', '--network', network];
  return run(['src/main.js', 'up', ...own, '--', 'kubectl', 'get', 'namespace', 'default']);
}

/** `--network=on` ends with one line of advice. */
function expectRefusal(run: Run, advice: string): void {
  const { stderr, status } = up(run, 'on');
  expect(stderr).toContain(advice);
  expect(status).toBe(1);
}

const only = '`--network=on` is refused';
const noIP = 'there is no ip: install the package iproute2';

it.skipIf(lacks !== '')(
  `Pods of \`up\` are only simulated, and one line says why, where there is no iproute2${lacks && ` (missing: ${lacks})`}`,
  () => {
    const { stdout, stderr, status } = up((program) => without(named('ip'), program), 'auto');
    expect(stdout, stderr).toContain('default   Active');
    expect(status).toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('NoClusterNetwork'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(noIP);
  },
);

it.skipIf(lacks !== '').each([
  ['util-linux', named('setpriv'), 'install the package util-linux'],
  ['koffi', koffi.join(' '), 'the package koffi cannot be loaded: install it with its optional dependencies'],
])(`${only} where there is no %s${lacks && ` (missing: ${lacks})`}`, (_, files, advice) => {
  expectRefusal((program) => without(files, program), advice);
});

/** An ordinary user who may switch user namespaces off for those within its own. */
const switchedOff = [
  ...['unshare', '--user', '--map-user=1000', '--map-group=1000', '--keep-caps', 'sh', '-c'],
  ...['echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', 'sh', process.execPath],
];

it.skipIf(lacks !== '')(
  `${only} where user namespaces are switched off${lacks && ` (missing: ${lacks})`}`,
  () => {
    const [unshare = '', ...flags] = switchedOff;
    const env = { ...process.env, HOME: home };
    expectRefusal(
      (program) => spawnSync(unshare, [...flags, ...program], { encoding: 'utf8', timeout: 100_000, env }),
      'user namespaces are switched off: sudo sysctl -w user.max_user_namespaces=10000',
    );
  },
);

it.skipIf(lacks !== '')(
  `Services of \`up\` are forwarded in userspace where there is no nft${lacks && ` (missing: ${lacks})`}`,
  () => {
    const { status, stdout, stderr } = without(named('nft'), ['test/support/without-nft.ts']);
    expect(status, stderr).toBe(0);
    const report: unknown = JSON.parse(stdout);
    expect(report).toMatchObject({ answering: 2, outside: true });
    expect(textAt(report, 'refused')).toMatch(/refused|Failed to connect/i);
  },
);
