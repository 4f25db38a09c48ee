import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { asUser } from '../support/gate.ts';
import { forMakers } from '../support/for-makers.ts';

const main = join(import.meta.dirname, '../../../src/main.ts');
const manifest = join(import.meta.dirname, '../../../deploy/examples/quickstart.yaml');

forMakers('the cluster network of `servicenet up`', (maker) => {
  const folder = mkdtempSync('/tmp/servicenet-network-');
  const kubeconfig = join(folder, 'kubeconfig');
  const environment = { ...process.env, HOME: folder, KUBECONFIG: kubeconfig };
  let published = 0;
  let up: ChildProcess;

  beforeAll(async () => {
    chmodSync(folder, 0o777);
    published = await freePort();
    up = await start();
  });
  afterAll(async () => {
    await kill(up);
    rmSync(folder, { recursive: true });
  });

  it('runs programs as a Pod of a namespace, which finds Services by short names', async () => {
    await expect
      .poll(() => run(['-n', 'shop'], 'curl', '-s', 'http://catalog/hostname').stdout)
      .toMatch(/^catalog-/);
    expect(run([], 'curl', '-s', 'http://storefront.shop/hostname').stdout).toMatch(/^storefront-/);
    expect(run([], 'getent', 'hosts', 'no-such.shop').status).toBe(2);
  });

  it('passes input, output and the exit code, and says what is wrong with a place', () => {
    const script = 'cat; echo told >&2; exit 7';
    const { status, stdout, stderr } = run(['--node', 'node-1'], 'sh', '-c', script);
    expect({ status, stdout, stderr }).toEqual({ status: 7, stdout: 'typed', stderr: 'told\n' });
    expect(run(['--pod', 'nope'], 'true').stderr).toBe(
      'servicenet: there is no Pod nope in namespace default\n',
    );
    expect(run(['-n', 'nope'], 'true').stderr).toContain('namespaces "nope" not found');
    expect(run([], '/no/such/program').status).toBe(127);
  });

  it('gives programs a kubeconfig that works where they run', () => {
    for (const place of [[], ['--node', 'node-2'], ['--outside']]) {
      const { stdout, stderr } = run(place, 'kubectl', 'get', 'nodes', '-o', 'name');
      expect({ stdout, stderr }).toEqual({ stdout: 'node/node-1\nnode/node-2\nnode/node-3\n', stderr: '' });
    }
  });

  it('runs the program of `up --inside` in a Pod of its own, with kubectl', () => {
    const script = `kubectl get pods -o jsonpath='{.items[*].status.podIP}'; echo; ip -4 -br address show eth0; exit 5`;
    const { status, stdout } = spawnSync(
      words()[0] ?? '',
      [...words().slice(1), ...['up', '--inside', '--nodes', '1', '--', 'sh', '-c', script]],
      { encoding: 'utf8', env: environment },
    );
    expect(status).toBe(5);
    const [podIP = '', link = ''] = stdout.split('\n');
    expect(podIP).toMatch(/^10\.244\./);
    expect(link).toContain(` ${podIP}/32`);
  });

  it('leads load balancer addresses in from outside, and published ports from this machine', async () => {
    const url = 'http://198.51.100.1/hostname';
    const fromOutside = (): string => run(['--outside'], 'curl', '-s', '--max-time', '2', url).stdout;
    const here = (): string =>
      spawnSync('curl', ['-s', `http://127.0.0.1:${published}/hostname`], { encoding: 'utf8' }).stdout;
    await expect.poll(fromOutside).toMatch(/^storefront-/);
    await expect.poll(here).toMatch(/^storefront-/);
  });

  it('is made anew when the process inside is killed: Pods keep their addresses', async () => {
    const addresses = (): string => {
      const path = ['get', 'pods', '-n', 'shop', '-o', 'jsonpath={.items[*].status.podIP}'];
      return spawnSync('kubectl', path, { encoding: 'utf8', env: environment }).stdout;
    };
    const before = addresses();
    const inside = familyOf(up).find((pid) => commandOf(pid).includes('emulation/process'));
    process.kill(Number(inside), 'SIGKILL');
    await expect
      .poll(() => run([], 'curl', '-s', 'http://catalog.shop/hostname').stdout)
      .toMatch(/^catalog-/);
    expect(addresses()).toBe(before);
  });

  it('leaves no process and no link when `up` is killed, and touches no network of this machine', async () => {
    const links = (): string => spawnSync('ip', ['-br', 'address'], { encoding: 'utf8' }).stdout;
    const before = links();
    const family = familyOf(up);
    expect(family.length).toBeGreaterThan(2);
    await kill(up);
    await expect.poll(() => family.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    expect(links()).toBe(before);
    expect(existsSync('/run/netns') ? readdirSync('/run/netns') : []).toEqual([]);
    expect(run([], 'true').stderr).toContain('start servicenet up');
    up = await start();
    await expect
      .poll(() => run([], 'curl', '-s', 'http://catalog.shop/hostname').stdout)
      .toMatch(/^catalog-/);
  });

  async function start(): Promise<ChildProcess> {
    const flags = [
      '--port',
      '0',
      '--network',
      'on',
      '--write-kubeconfig',
      kubeconfig,
      '--default-pool',
      '198.51.100.0/24',
    ];
    const ways = ['--apply', manifest, '--publish', `${published}:shop/storefront:80`];
    const [program = '', ...args] = [...words(), 'up', ...flags, ...ways];
    const started = spawn(program, args, { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve, reject) => {
      let said = '';
      started.once('exit', () => reject(new Error(`up has ended: ${said}`)));
      started.stdout.on('data', (chunk) => {
        said += String(chunk);
        if (said.includes('cluster network is ready')) resolve();
      });
    });
    return started;
  }

  function run(place: readonly string[], ...what: readonly string[]) {
    const [program = '', ...args] = [...words(), 'run', ...place, '--', ...what];
    return spawnSync(program, args, { encoding: 'utf8', env: environment, input: 'typed' });
  }

  function words(): readonly string[] {
    return [...(maker === 'user' ? asUser : []), process.execPath, main];
  }
});

async function kill(process: ChildProcess): Promise<void> {
  const ended = once(process, 'exit');
  process.kill('SIGKILL');
  await ended;
}

/** All processes that a process has begun, and theirs. */
function familyOf({ pid = 0 }: { readonly pid?: number | undefined }): readonly string[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return children.flatMap((child) => [child, ...familyOf({ pid: Number(child) })]);
}

function commandOf(pid: string): string {
  // sh has the file among its arguments, too.
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return words[0]?.endsWith('node') === true ? words.join(' ') : '';
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const closed = once(server, 'close');
  server.close();
  await closed;
  return typeof address === 'object' && address !== null ? address.port : 0;
}
