import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { controlPlaneAddresses, outsideAddresses } from '../../../src/emulation/lan.ts';
import { run } from '../../../src/host/local-host.ts';
import { listAt, numberAt, textAt } from '../../../src/objects/json.ts';
import { issueCertificate } from '../../support/certificates.ts';
import { BuiltInServers, type HostileTarget, programsProcess, servers } from '../support/built-in-servers.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { insideOf } from '../support/up-process.ts';

/** `SERVICENET_FUZZ_SECONDS=1800 SERVICENET_FUZZ_SEED=7` looks further. */
const seconds = Number(process.env['SERVICENET_FUZZ_SECONDS'] ?? 60);
const seed = process.env['SERVICENET_FUZZ_SEED'] ?? '1';
const sender = fileURLToPath(new URL('../../support/fuzz/hostile-sender.ts', import.meta.url));
const [controlPlane = ''] = controlPlaneAddresses(['IPv4']);
const [outside = ''] = outsideAddresses(['IPv4']);

describePods('Listeners of the cluster', () => {
  let pods: PodNetwork;
  let built: BuiltInServers;
  let healthPort = 0;
  let node = '';

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1, platform: 'openshift' });
    built = await BuiltInServers.create(pods);
    [node = ''] = await pods.addressesOf('node-1');
    await pods.service('stand-in', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }, 80);
    const stored = await pods.call('GET', `${pods.path('services')}/stand-in`);
    healthPort = numberAt(stored.body, 'spec', 'healthCheckNodePort');
    const { certificate, key } = issueCertificate({
      subject: 'edge.test',
      names: ['edge.test'],
    });
    const routes = pods.path('routes', 'route.openshift.io/v1');
    const route = async (name: string, tls?: object): Promise<void> => {
      const spec = {
        host: `${name}.test`,
        to: { kind: 'Service', name: 'stand-in' },
        ...(tls && { tls }),
      };
      const answer = await pods.call('POST', routes, {
        metadata: { name },
        spec,
      });
      expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    };
    await route('plain');
    await route('edge', { termination: 'edge', certificate, key });
    await route('pass', { termination: 'passthrough' });
    await pods.call('POST', '/apis/servicenet.dev/v1alpha1/bgppeers', {
      ...{
        apiVersion: 'servicenet.dev/v1alpha1',
        kind: 'BGPPeer',
        metadata: { name: 'outside' },
      },
      spec: {
        myASN: 64512,
        peerASN: 64513,
        peerAddress: outside,
        holdTime: '3s',
      },
    });
  });
  afterAll(() => pods.server.stop());

  const routed = (...flags: string[]): Promise<string> => pods.curl({ node: 'node-1' }, ...withUrl(flags));
  const withUrl = (flags: readonly string[]): [string, ...string[]] => [flags[0] ?? '', ...flags.slice(1)];

  const asAdministrator = async (path: string): Promise<string> => {
    const { url, token } = pods.server;
    return (await run('curl', ['-sk', '-H', `Authorization: Bearer ${token}`, `${url}${path}`])).stdout;
  };

  /** Each is asked by an honest client, until it answers. */
  const answer = async (): Promise<void> => {
    await built.answer();
    const honest: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
      [
        'router',
        () => routed(`http://${controlPlane}:10180/hostname`, '-H', 'Host: plain.test'),
        /^stand-in/,
      ],
      [
        'router by TLS and HTTP/2',
        () =>
          routed(
            'https://edge.test:10543/hostname',
            '-k',
            '--http2',
            '--resolve',
            `edge.test:10543:${controlPlane}`,
          ),
        /^stand-in/,
      ],
      ['proxy status', () => routed('http://127.0.0.1:10249/proxyMode'), /nftables|userspace/],
      ['health of the node', () => routed('http://127.0.0.1:10256/livez'), /currentTime/],
      ['health of a Service', () => routed(`http://${node}:${healthPort}/`), /localEndpoints/],
      ['DNS', () => pods.curl({ namespace: 'default' }, 'http://stand-in/hostname'), /^stand-in/],
      [
        'DNS by TCP',
        async () => {
          const words = [
            'bash',
            '-c',
            `exec 3<>/dev/tcp/${controlPlane}/53; printf '${question}' >&3; head -c 4 <&3 | od -An -tx1`,
          ];
          return (await pods.server.run(words, { node: 'node-1' })).stdout;
        },
        /12 34/,
      ],
      ['kubelet', () => asAdministrator('/api/v1/nodes/node-1/proxy/healthz'), /^ok$/],
      [
        'metrics',
        async () =>
          textAt((await pods.call('GET', '/apis/metrics.k8s.io/v1beta1/nodes/node-1')).body, 'kind'),
        /NodeMetrics/,
      ],
      [
        'API server',
        async () => String((await pods.call('GET', '/api/v1/namespaces/default')).status),
        /200/,
      ],
    ];
    for (const [name, ask, good] of honest) {
      const heard = await until(ask, (found) => good.test(found)).catch(String);
      expect(heard, name).toMatch(good);
    }
  };

  it(
    'answer honest clients behind hostile ones, and nothing has ended',
    { timeout: (seconds + 300) * 1000 },
    async () => {
      await answer();
      const processes = (): unknown => {
        try {
          return [insideOf(process), programsProcess()];
        } catch (error) {
          return String(error);
        }
      };
      const before = processes();
      const errors = vi.spyOn(process.stderr, 'write');
      const api = new URL(pods.server.url);
      const tls = (address: string, port: number): HostileTarget[] => [
        { protocol: 'tcp', address, port },
        ...['', 'h2', 'http/1.1'].map((alpn): HostileTarget => ({
          protocol: 'tls',
          address,
          port,
          alpn,
        })),
      ];
      const tcp = (address: string, port: number): HostileTarget => ({
        protocol: 'tcp',
        address,
        port,
      });
      const udp = (address: string, port: number): HostileTarget => ({
        protocol: 'udp',
        address,
        port,
      });
      const inside: readonly HostileTarget[] = [
        ...built.listeners(),
        ...[tcp('127.0.0.1', 10249), tcp('127.0.0.1', 10256), tcp(node, healthPort)],
        ...[udp(node, 10262), udp(controlPlane, 53), tcp(controlPlane, 53)],
        ...[...tls(node, 10250), ...tls(controlPlane, 10443)],
        ...[tcp(controlPlane, 10180), ...tls(controlPlane, 10543)],
      ];
      const peers: readonly HostileTarget[] = [{ protocol: 'peer', address: outside, port: 179 }];
      const command = (listeners: readonly HostileTarget[]): [string, ...string[]] => [
        process.execPath,
        ...[sender, String(seconds), seed, JSON.stringify(listeners)],
      ];
      const own = { protocol: 'unix', address: ownWayOf(insideOf(process)), port: 0 } as const;
      const [program, ...args] = command([...tls(api.hostname, Number(api.port)), own]);
      const local = spawn(program, args, {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [ofApi, ofNode, ofPeer] = await Promise.all([
        text(local.stdout),
        pods.server.run(command(inside), { node: 'node-1' }),
        pods.server.run(command(peers), { outside: true }),
        once(local, 'exit'),
      ]);
      const said = errors.mock.calls.map(([text]) => String(text)).join('');
      errors.mockRestore();
      expect(processes(), said).toEqual(before);
      expect(numberAt(JSON.parse(ofApi), 'connections')).toBeGreaterThan(0);
      expect(numberAt(JSON.parse(ofNode.stdout || '{}'), 'fromPort0'), ofNode.stderr).toBeGreaterThan(0);
      expect(numberAt(JSON.parse(ofPeer.stdout || '{}'), 'connections'), ofPeer.stderr).toBeGreaterThan(0);
      await answer();
      expect(processes()).toEqual(before);
      for (const name of Object.keys(servers)) {
        expect(await built.statusOf(name), name).toMatchObject({
          restartCount: 0,
        });
      }
      const { body } = await pods.call('GET', '/api/v1/nodes');
      expect(listAt(body, 'items')).toHaveLength(1);
    },
  );
});

/** The socket without a name by which the process inside reaches the API server (host/sockets.ts). */
function ownWayOf(pid: number): string {
  const folder = `/proc/${pid}/fd`;
  const descriptor = readdirSync(folder).find((name) => {
    try {
      return /\/servicenet-[^/]+\/s \(deleted\)$/.test(readlinkSync(join(folder, name)));
    } catch {
      // It was closed meanwhile.
      return false;
    }
  });
  if (descriptor === undefined) throw new Error('the process inside has no way of its own');
  return join(folder, descriptor);
}

/** A question for `a.` by TCP, for printf. */
const question = String.raw`\x00\x13\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01`;
