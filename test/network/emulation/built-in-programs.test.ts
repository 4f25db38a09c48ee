import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Container, ContainerStatus, Pod } from '../../../src/objects/types/core.generated.ts';
import { listAt, numberAt, recordAt } from '../../../src/objects/json.ts';
import { makers } from '../support/gate.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { Sandbox } from '../support/sandbox.ts';
import { familyOf, ifThere, insideOf } from '../support/up-process.ts';

/** A server of a Pod, and what an honest client gets of it. */
interface Server {
  readonly container: Partial<Container>;
  readonly port: number;
  readonly path: string;
  readonly answer: RegExp;
  readonly udp?: number;
}

const agnhost = (port: number, path: string, answer: RegExp, ...args: string[]): Server => ({
  container: {
    image: 'registry.k8s.io/e2e-test-images/agnhost:2.53',
    args,
    env: ['POD_IP', 'NODE_IP'].map((name) => ({
      name,
      valueFrom: { fieldRef: { fieldPath: name === 'POD_IP' ? 'status.podIP' : 'status.hostIP' } },
    })),
  },
  ...{ port, path, answer },
});
const image = (name: string, path: string, answer: RegExp): Server => ({
  container: { image: `registry.k8s.io/e2e-test-images/${name}:1` },
  ...{ port: 80, path, answer },
});

const servers: Readonly<Record<string, Server>> = {
  'stand-in': {
    container: { ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }] },
    ...{ port: 80, path: '/hostname', answer: /^stand-in$/, udp: 53 },
  },
  netexec: { ...agnhost(8080, '/hostname', /^netexec$/, 'netexec'), udp: 8081 },
  liveness: agnhost(8080, '/started', /^\d/, 'liveness'),
  'test-webserver': agnhost(80, '/', /<pre>/, 'test-webserver'),
  guestbook: agnhost(80, '/get', /"data"/, 'guestbook'),
  'grpc-health-checking': agnhost(8080, '/x', /404/, 'grpc-health-checking'),
  'no-snat-test': agnhost(8080, '/whoami', /:\d+$/, 'no-snat-test'),
  'serve-hostname': agnhost(9376, '/', /^serve-hostname$/, 'serve-hostname'),
  net: agnhost(8889, '/x', /404/, 'net', '--serve=:8889'),
  httpd: image('httpd', '/', /It works/),
  nautilus: image('nautilus', '/data.json', /nautilus/),
};

describePods('Built-in programs', () => {
  let pods: PodNetwork;
  const found = new Map<string, Pod>();

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1 });
    for (const [name, { container }] of Object.entries(servers)) await pods.pod(name, name, container);
    for (const name of Object.keys(servers)) {
      const [pod] = await pods.running(name, 1);
      if (pod !== undefined) found.set(name, pod);
    }
  });
  afterAll(() => pods.server.stop());

  const addressOf = (name: string): string => found.get(name)?.status.podIP ?? '';
  const statusOf = async (name: string): Promise<ContainerStatus | undefined> => {
    const { body } = await pods.call('GET', `${pods.path('pods')}/${name}`);
    return (body as unknown as Pod).status.containerStatuses?.[0];
  };
  const answers = async (): Promise<void> => {
    for (const [name, { port, path, answer }] of Object.entries(servers)) {
      await until(
        async () => await pods.curl({ node: 'node-1' }, `http://${addressOf(name)}:${port}${path}`),
        (text) => answer.test(text.trim()),
      );
    }
  };
  /** The process of all built-in programs. */
  const programs = (): number | undefined =>
    familyOf(process)
      .map(Number)
      .find((pid) => {
        const words = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
        return words.some((word) => word.includes('built-in-programs.ts'));
      });

  it('answer honest clients behind hostile ones, and none of them has ended', async () => {
    await answers();
    const before = [insideOf(process), programs()];
    const listeners = [
      { protocol: 'tcp', address: '127.0.0.1', port: 10249 },
      ...Object.entries(servers).flatMap(([name, { port, udp }]) => [
        { protocol: 'tcp', address: addressOf(name), port },
        ...(udp === undefined ? [] : [{ protocol: 'udp', address: addressOf(name), port: udp }]),
      ]),
      { protocol: 'tcp', address: addressOf('grpc-health-checking'), port: 5000 },
    ];
    const sender = fileURLToPath(new URL('../../support/fuzz/hostile-sender.ts', import.meta.url));
    const command = [process.execPath, sender, '3', '1', JSON.stringify(listeners)];
    const { stdout, stderr } = await pods.server.run(command, { node: 'node-1' });
    expect(numberAt(JSON.parse(stdout || '{}'), 'fromPort0'), stderr).toBeGreaterThan(0);
    await answers();
    expect(await pods.curl({ node: 'node-1' }, 'http://127.0.0.1:10249/proxyMode')).toMatch(
      /nftables|userspace/,
    );
    expect([insideOf(process), programs()]).toEqual(before);
    for (const name of Object.keys(servers))
      expect(await statusOf(name), name).toMatchObject({ restartCount: 0 });
  });

  it('are in a process of their own: where it is killed, their containers start again, and nothing else does', async () => {
    const inside = insideOf(process);
    const pid = programs();
    if (pid === undefined) throw new Error('there is no process of built-in programs');
    process.kill(pid, 'SIGKILL');
    for (const name of Object.keys(servers)) {
      const status = await until(
        () => statusOf(name),
        (now) => now?.restartCount === 1 && now.state?.running !== undefined,
      );
      expect(status?.lastState?.terminated).toMatchObject({ exitCode: 137, reason: 'Error' });
    }
    await answers();
    expect(insideOf(process)).toBe(inside);
    expect(programs()).not.toBe(pid);
  });
});

it.for(makers)(
  'that throw end their own container alone, in namespaces of $maker',
  async ({ maker, missing }, { skip }) => {
    skip(missing !== '', `missing: ${missing}`);
    const sandbox = await Sandbox.open(maker);
    try {
      await sandbox.script(['ip netns add machine', 'ip -n machine link set lo up']);
      const [program = '', ...args] = sandbox.enter();
      const there = ['sh', '-c', 'cd "$0" && exec "$@"', process.cwd()];
      const file = fileURLToPath(new URL('../support/throwing-programs.ts', import.meta.url));
      const { stdout, stderr } = spawnSync(program, [...args, ...there, process.execPath, file], {
        encoding: 'utf8',
      });
      expect(stderr).toBe('');
      const { results, honest } = recordAt(JSON.parse(stdout));
      expect(honest).toBe('GET');
      expect(results).toHaveLength(8);
      for (const result of listAt(results)) {
        expect(result).toMatchObject({ exitCode: 2, said: true, after: 'ECONNREFUSED' });
      }
    } finally {
      await sandbox.close();
    }
  },
);
