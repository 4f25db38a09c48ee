import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { listAt, parseRecord, recordAt } from '../../../src/objects/json.ts';
import { ask } from '../../support/page.ts';
import { forMakers } from '../support/for-makers.ts';
import { end, familyOf, insideOf, UpHome } from '../support/up-process.ts';

const manifest = join(import.meta.dirname, '../../../deploy/examples/quickstart.yaml');

forMakers('the cluster network of `servicenet up`', (maker) => {
  const home = new UpHome(maker);
  const run = home.run.bind(home);
  let published = 0;
  let up: ChildProcess;

  beforeAll(async () => {
    published = await freePort();
    up = await start();
  });
  afterAll(async () => {
    await end(up, 'SIGKILL');
    home.remove();
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

  it('runs programs in a Pod, and in one of a workload', async () => {
    const asked = ['curl', '-s', 'http://localhost:8080/hostname'];
    const name = await vi.waitUntil(() => run(['--pod', 'deploy/shop/catalog'], ...asked).stdout.trim());
    expect(name).toMatch(/^catalog-/);
    expect(run(['-n', 'shop', '--pod', name], ...asked).stdout.trim()).toBe(name);
    expect(run(['--pod', `shop/${name}`], ...asked).stdout.trim()).toBe(name);
    expect(run(['--pod', 'deploy/shop/nope'], 'true').stderr).toBe(
      'servicenet: there is no Pod of Deployment nope in namespace shop\n',
    );
  });

  it('begins programs in the folder that it was called in, which is not that of up', () => {
    for (const place of [[], ['--node', 'node-1'], ['--outside']]) {
      expect(run(place, 'pwd').stdout).toBe(`${home.folder}\n`);
    }
  });

  it('gives programs a kubeconfig that works where they run', () => {
    for (const place of [[], ['--node', 'node-2'], ['--outside']]) {
      const { stdout, stderr } = run(place, 'kubectl', 'get', 'nodes', '-o', 'name');
      expect({ stdout, stderr }).toEqual({ stdout: 'node/node-1\nnode/node-2\nnode/node-3\n', stderr: '' });
    }
  });

  it('runs the program of `up --inside` in a Pod of its own, with kubectl', () => {
    const script = `kubectl get pods -o jsonpath='{.items[*].status.podIP}'; echo; ip -4 -br address show eth0; exit 5`;
    const program = ['sh', '-c', script];
    const { status, stdout } = home.servicenet('up', '--inside', '--nodes', '1', '--', ...program);
    expect(status).toBe(5);
    const [podIP = '', link = ''] = stdout.split('\n');
    expect(podIP).toMatch(/^10\.244\./);
    expect(link).toContain(` ${podIP}/32`);
  });

  it('opens a real connection for the page: from a Pod, a node and outside, and to the cluster alone', async () => {
    const link = new URL(home.servicenet('page').stdout.trim());
    const { origin, hash } = link;
    const post = async (path: string, body: object, session = ''): Promise<Record<string, unknown>> => {
      const headers = {
        host: link.host,
        origin,
        'content-type': 'application/json',
        authorization: `Bearer ${session}`,
      };
      const { text } = await ask(Number(link.port), 'POST', path, headers, JSON.stringify(body));
      return parseRecord(text) ?? {};
    };
    const { session } = await post('/data/session', { key: hash.slice('#k='.length) });
    const check = async (from: string, to: string): Promise<Record<string, unknown>> =>
      await vi.waitFor(
        async () => {
          const answer = await post('/data/trace', { from, to, check: true }, String(session));
          // One a second.
          expect(answer['reason']).not.toBe('TooManyRequests');
          return answer;
        },
        { timeout: 60_000, interval: 200 },
      );
    for (const from of ['deploy/shop/catalog', 'node/node-1', 'outside']) {
      const [traced] = listAt(await check(from, 'svc/shop/storefront:80'), 'traces');
      expect(recordAt(traced, 'packet'), from).toMatchObject({ outcome: 'connected', agrees: true });
    }
    expect(await check('node/node-1', 'outside:80')).toMatchObject({ reason: 'CannotCheck' });
    expect(await check('node/node-1', '203.0.113.77:80')).toMatchObject({ reason: 'CannotCheck' });
  });

  it('leads load balancer addresses in from outside, and published ports from this machine', async () => {
    const url = 'http://198.51.100.1/hostname';
    const fromOutside = (): string => run(['--outside'], 'curl', '-s', '--max-time', '2', url).stdout;
    const here = (): string =>
      spawnSync('curl', ['-s', `http://127.0.0.1:${published}/hostname`], { encoding: 'utf8' }).stdout;
    await expect.poll(fromOutside).toMatch(/^storefront-/);
    await expect.poll(here).toMatch(/^storefront-/);
  });

  it('leads requests from outside by the Ingress, whose status has the address of the router', async () => {
    const kubectl = (...args: string[]): string =>
      spawnSync('kubectl', args, { encoding: 'utf8', env: home.environment }).stdout;
    const path = '-o=jsonpath={.status.loadBalancer.ingress[*].ip}';
    await expect.poll(() => kubectl('get', 'ingress', '-n', 'shop', 'shop', path)).toMatch(/^198\.51\.100\./);
    const address = kubectl('get', 'ingress', '-n', 'shop', 'shop', path);
    const ask = (url: string): string =>
      run(['--outside'], 'curl', '-s', '--max-time', '5', '-H', 'Host: shop.example.com', url).stdout;
    await expect.poll(() => ask(`http://${address}/hostname`)).toMatch(/^storefront-/);
    // What a Pod answers to this path does not matter: the router has no answer of its own for it.
    expect(ask(`http://${address}/cart`)).not.toMatch(/^\d{3} [A-Z]/);
    expect(run(['--outside'], 'curl', '-s', `http://${address}/`).stdout).toBe('404 NoHost\n');
    expect(kubectl('get', 'ingressclass', '-o', 'name')).toBe('ingressclass.networking.k8s.io/servicenet\n');
  });

  it('shows on a terminal which Pod has answered', async () => {
    const screen = new UpHome(maker);
    const shown = screen.onTerminal(['--nodes', '1', '--apply', manifest]);
    const ended = once(shown.process, 'exit');
    try {
      await shown.said('storefront');
      await expect
        .poll(() => screen.run([], 'curl', '-s', 'http://storefront.shop/hostname').stdout)
        .toMatch(/^storefront-/);
      await shown.said('last answer of shop/storefront: storefront-');
    } finally {
      const [up = ''] = familyOf(shown.process);
      process.kill(Number(up), 'SIGTERM');
      await ended;
      screen.remove();
    }
    expect(shown.process.exitCode).toBe(0);
  });

  it('is made anew when the process inside is killed: Pods keep their addresses', async () => {
    const addresses = (): string => {
      const path = ['get', 'pods', '-n', 'shop', '-o', 'jsonpath={.items[*].status.podIP}'];
      return spawnSync('kubectl', path, { encoding: 'utf8', env: home.environment }).stdout;
    };
    const before = addresses();
    process.kill(insideOf(up), 'SIGKILL');
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
    await end(up, 'SIGKILL');
    await expect.poll(() => family.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
    expect(links()).toBe(before);
    expect(existsSync('/run/netns') ? readdirSync('/run/netns') : []).toEqual([]);
    // What it has left says once what became of it, and is gone.
    expect(run([], 'true').stderr).toContain('was killed, and its cluster is gone: start servicenet up');
    expect(run([], 'true').stderr).toContain('no servicenet up with a cluster network listens at');
    expect(existsSync(`${home.kubeconfig}.sock`)).toBe(false);
    up = await start();
    await expect
      .poll(() => run([], 'curl', '-s', 'http://catalog.shop/hostname').stdout)
      .toMatch(/^catalog-/);
  });

  it('outlives clients of its socket that say nothing, nothing that is true, or go away', async () => {
    expect(statSync(`${home.kubeconfig}.sock`).mode & 0o777, 'others cannot connect').toBe(0o600);
    for (const words of ['', 'no JSON\n', '{"where":{"kind":"client","namespace":"default"}}\n']) {
      const client = connect(`${home.kubeconfig}.sock`);
      await once(client, 'connect');
      client.end(words);
      client.resume();
      await once(client, 'close');
    }
    expect(run(['--outside'], 'true').status).toBe(0);
  });

  it('says which published port is taken, and leaves the `up` that has it alone', () => {
    const own = ['--port', '0', '--network', 'on', '--write-kubeconfig', `${home.kubeconfig}-2`];
    const { status, stderr } = home.servicenet('up', ...own, '--publish', `${published}:shop/catalog:80`);
    expect(status).toBe(1);
    expect(stderr).toContain(`--publish: port ${published} of 127.0.0.1 is in use`);
    expect(existsSync(`${home.kubeconfig}-2`)).toBe(false);
    expect(run(['--outside'], 'true').status).toBe(0);
  });

  it('keeps its kubeconfig when another `up` is started, and takes it away at its end', async () => {
    const nodes = (): string => run(['--outside'], 'kubectl', 'get', 'nodes', '-o', 'name').stdout;
    const before = nodes();
    expect(before).toContain('node/node-1\n');
    await expect(home.start(['--nodes', '1'])).rejects.toThrow('up has ended');
    expect(nodes()).toBe(before);
    await end(up, 'SIGTERM');
    expect(readdirSync(home.folder).filter((name) => name.startsWith('kubeconfig'))).toEqual([]);
    up = await start();
  });

  it('is made again when its process is killed before all nodes have their machines', async () => {
    await end(up, 'SIGTERM');
    const begun = home.launch(['--nodes', '9']);
    up = begun.process;
    await begun.said('servicenet is ready');
    process.kill(insideOf(up), 'SIGKILL');
    await begun.said('cluster network is ready');
    expect(run(['--node', 'node-9'], 'true').status).toBe(0);
  });

  function start(): Promise<ChildProcess> {
    const publish = ['--publish', `${published}:shop/storefront:80`];
    return home.start(['--default-pool', '198.51.100.0/24', '--apply', manifest, ...publish]);
  }
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const closed = once(server, 'close');
  server.close();
  await closed;
  return typeof address === 'object' && address !== null ? address.port : 0;
}
