import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import type { Machine } from './support/machine.ts';
import { ApiRelay, NodeProgram } from './support/node-program.ts';
import { endpointSlice } from './support/objects.ts';

const missing = missingFor('user');
const flags = ['--node-name', 'node-1', '--cluster-cidr', '10.244.0.0/16,fd00:244::/32'];

describe.skipIf(missing !== '')(`servicenet node${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: TestCluster;
  let machine: Machine;
  let relay: ApiRelay;

  beforeAll(async () => {
    cluster = await TestCluster.start({ 'node-1': ['client', 'a-1'] });
    ({ machine } = cluster.network.at('node-1'));
    relay = await ApiRelay.open(machine, cluster.server.kubeconfig);
    await cluster.network.at('a-1').machine.serve(8080);
    const ports = [{ port: 80, targetPort: 8080, nodePort: 30_080 }];
    await cluster.service('web', { clusterIP: '10.96.3.1', type: 'NodePort', ports });
    const address = cluster.network.at('a-1').addresses.IPv4;
    await cluster.slice(endpointSlice('IPv4', [{ address, node: 'node-1' }], 8080, 'web'));
  });
  afterAll(async () => {
    await relay.close();
    await cluster.close();
  });

  it('carries Services, tells how the node is, ends by a signal, and what it wrote stays until --cleanup', async () => {
    const running = new NodeProgram(machine, relay, 'running', ...flags);
    await expect.poll(() => ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1' });
    expect(await curl('http://127.0.0.1:10256/healthz')).toContain('"nodeEligible":true');
    expect(await curl('http://127.0.0.1:10249/proxyMode')).toBe('nftables');
    // Packets follow rules a moment before nft has ended.
    await expect
      .poll(() => curl('http://127.0.0.1:10249/metrics'))
      .toMatch(/kubeproxy_sync_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} [1-9]/);
    expect((await running.signal('TERM')).exitCode).toBe(0);
    expect(await ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1' });

    // What another feature wrote is none of its business, until it is named.
    const policyTable = 'table inet servicenet-policy';
    await machine.host.exec('nft', ['add', ...policyTable.split(' ')]);
    const cleanUp = async (...features: string[]): Promise<string> => {
      const cleaning = await new NodeProgram(machine, relay, 'cleaning', '--cleanup', ...features).ended;
      expect(cleaning.exitCode, cleaning.stderr).toBe(0);
      return (await machine.host.exec('nft', ['list', 'ruleset'])).stdout;
    };
    expect(await cleanUp()).toBe(`${policyTable} {\n}\n`);
    expect(await cleanUp('--features=proxy,policy')).toBe('');
  });

  it('refuses a port that a cluster IP does not have at once, from a Pod, from the node and from outside (D13)', async () => {
    const running = new NodeProgram(machine, relay, 'refusing', ...flags);
    await expect.poll(() => ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1' });
    for (const from of [cluster.network.at('client').machine, machine, cluster.network.outside.machine]) {
      for (const protocol of ['TCP', 'UDP'] as const) {
        const what = `${protocol} from ${from.name}`;
        expect(await from.ask('10.96.3.1', 81, { protocol, timeout: 5000 }), what).toBe('refused');
      }
    }
    await running.signal('TERM');
  });

  it('does what its flags say, beside another proxy where it is told to', async () => {
    const { host } = machine;
    await host.exec('nft', ['add', 'table', 'ip', 'kube-proxy']);
    const running = new NodeProgram(
      ...([machine, relay, 'flags', ...flags, '--beside-other-proxies', '--masquerade-all'] as const),
      ...['--mark-mask', '0x00ff0000', '--nodeport-addresses', '203.0.113.0/24', '--min-sync-period', '0s'],
      ...['--healthz-bind-address', '127.0.0.1:10356', '--metrics-bind-address', '127.0.0.1:10349'],
      ...['--conntrack-tcp-timeout-close-wait', '90s', '--conntrack-tcp-be-liberal'],
    );
    // The node's address on the links to its Pods.
    await expect.poll(() => ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1', client: '10.244.1.1' });
    const nodeAddress = cluster.network.at('node-1').addresses.IPv4;
    expect(await cluster.network.outside.machine.ask(nodeAddress, 30_080)).toBe('refused');
    expect(await curl('http://127.0.0.1:10356/livez')).toContain('"lastUpdated"');
    expect(await curl('http://127.0.0.1:10349/proxyMode')).toBe('nftables');
    const { stdout } = await host.exec('nft', ['list', 'table', 'ip', 'servicenet']);
    expect(stdout).toContain('meta mark & 0x00010000 != 0x00000000');
    expect(await host.sysctl.get('net/netfilter/nf_conntrack_tcp_timeout_close_wait')).toBe('90');
    expect(await host.sysctl.get('net/netfilter/nf_conntrack_tcp_be_liberal')).toBe('1');
    expect((await running.signal('TERM')).exitCode).toBe(0);
    await host.exec('nft', ['delete', 'table', 'ip', 'kube-proxy']);
  });

  it('tells Pods by the range of its node, repairs what changed each --sync-period, and serves nothing where it is to', async () => {
    await cluster.send('PATCH', '/api/v1/nodes/node-1', {
      spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'] },
    });
    const running = new NodeProgram(
      ...([machine, relay, 'range', '--node-name', 'node-1', '--detect-local-mode', 'NodeCIDR'] as const),
      ...['--sync-period', '500ms', '--healthz-bind-address', '0', '--metrics-bind-address', '0'],
    );
    const client = cluster.network.at('client').addresses.IPv4;
    await expect.poll(() => ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1', client });
    // From elsewhere: by the node's address on the links to its Pods.
    const { outside } = cluster.network;
    expect(await outside.machine.ask('10.96.3.1', 80)).toMatchObject({ client: '10.244.1.1' });
    for (const port of [10_249, 10_256]) expect(await machine.ask('127.0.0.1', port)).toBe('refused');
    const element = ['service-ips', '{ 10.96.3.1 . tcp . 80 }'];
    const { stderr } = await machine.host.exec('nft', ['delete', 'element', 'ip', 'servicenet', ...element]);
    expect(stderr).toBe('');
    await expect.poll(() => ask('10.96.3.1', 80)).toMatchObject({ name: 'a-1', client });
    expect((await running.signal('TERM')).exitCode).toBe(0);
  });

  it('waits, live and not ready, for the end of another agent with one of its features, also by SIGKILL', async () => {
    const ports = (port: number): string[] => [
      ...['--healthz-bind-address', '0', '--metrics-bind-address', `127.0.0.1:${port}`],
    ];
    const first = new NodeProgram(machine, relay, 'first', ...flags, ...ports(10_249));
    await expect.poll(() => first.logged).toContain('node agent started');
    const second = new NodeProgram(
      ...([machine, relay, 'second', ...flags, ...ports(10_349)] as const),
      ...['--features=proxy,policy'],
    );
    const status = (path: string): Promise<string> =>
      curl(`http://127.0.0.1:10349/${path}`, '-o', '/dev/null', '-w', '%{http_code}');
    await expect.poll(() => second.logged).toContain('"reason":"OtherAgent","feature":"proxy"');
    expect(await status('healthz')).toBe('200');
    expect(await status('readyz')).toBe('500');
    await first.signal('KILL');
    await expect.poll(() => status('readyz')).toBe('200');
    // What it has not in common with the other one it may do beside it.
    const third = new NodeProgram(
      ...([machine, relay, 'third', ...flags, ...ports(10_449), '--features=announce'] as const),
    );
    await expect.poll(() => third.logged).toContain('node agent started');
    // A signal ends one that waits.
    const waiting = new NodeProgram(machine, relay, 'waiting', ...flags, ...ports(10_549));
    await expect.poll(() => waiting.logged).toContain('"reason":"OtherAgent"');
    for (const agent of [waiting, third, second]) expect((await agent.signal('TERM')).exitCode).toBe(0);
    expect(waiting.logged).not.toContain('node agent started');
    await new NodeProgram(machine, relay, 'cleaning', '--cleanup', '--features=proxy,policy').ended;
  });

  it('with --init-only sets kernel parameters, names those that it may not set, and writes nothing else', async () => {
    const { sysctl } = machine.host;
    const name = 'net/netfilter/nf_conntrack_tcp_timeout_close_wait';
    await sysctl.set(name, '60');
    const before = (await machine.host.exec('nft', ['list', 'ruleset'])).stdout;
    const { exitCode, stderr } = await new NodeProgram(machine, relay, 'init', '--init-only').ended;
    expect(exitCode, stderr).toBe(0);
    expect(await sysctl.get(name)).toBe('3600');
    // The limit belongs to the machine, not to a namespace.
    expect(stderr).toMatch(/"sysctl":"net\/netfilter\/nf_conntrack_max".*cannot set a kernel parameter/);
    expect((await machine.host.exec('nft', ['list', 'ruleset'])).stdout).toBe(before);
  });

  it.each([
    [
      'the nftables table kube-proxy',
      [
        ['add', 'table', 'ip', 'kube-proxy'],
        ['add', 'chain', 'ip', 'kube-proxy', 'services'],
      ],
    ],
    [
      'the iptables chain KUBE-SERVICES',
      [
        ['add', 'table', 'ip', 'nat'],
        ['add', 'chain', 'ip', 'nat', 'KUBE-SERVICES'],
      ],
    ],
  ])('does not start beside %s, and writes nothing', async (what, commands) => {
    for (const command of commands) await machine.host.exec('nft', command);
    const before = (await machine.host.exec('nft', ['list', 'ruleset'])).stdout;
    const { exitCode, stderr } = await new NodeProgram(machine, relay, 'beside', ...flags).ended;
    expect(exitCode).toBe(1);
    expect(stderr).toContain(what);
    expect((await machine.host.exec('nft', ['list', 'ruleset'])).stdout).toBe(before);
    const table = commands[0]?.[3] ?? '';
    await machine.host.exec('nft', ['delete', 'table', 'ip', table]);
  });

  async function curl(url: string, ...options: readonly string[]): Promise<string> {
    return (await machine.host.exec('curl', ['-sS', '--max-time', '20', ...options, url])).stdout;
  }

  function ask(address: string, port: number) {
    return cluster.network.at('client').machine.ask(address, port, { timeout: 1000 });
  }
});
