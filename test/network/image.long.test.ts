import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import { at, listAt, textAt } from '../../src/objects/json.ts';
import { type Stage, wordsOf } from '../support/dockerfile.ts';
import { buildImageRoot, imageStage } from '../support/image-root.ts';
import { applyStrictly, kustomizeWith } from '../support/manifests.ts';
import { textsAt } from '../support/role-rules.ts';
import { call } from '../support/test-server.ts';
import { TestCluster } from './support/cluster.ts';
import { missingFor, missingProgram } from './support/gate.ts';
import { endpointSlice } from './support/objects.ts';
import { processesOf, residentNft } from './support/processes.ts';

const missing = [missingFor('user'), missingProgram('mmdebstrap', 'mmdebstrap')]
  .filter((what) => what !== '')
  .join(', ');

/** What a container engine does: root file system and kernel parameters read-only, capabilities dropped. */
const enter = `set -e
root="$1"; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --bounding-set=-all,+net_admin --inh-caps=-all --no-new-privs -- "$@"`;

/** The image's packages and program on Debian, and its DaemonSet's arguments, service account and rights. */
describe.skipIf(missing !== '')(`the node agent in its image${missing && ` (missing: ${missing})`}`, () => {
  const objects = kustomizeWith(['agent', 'node']);
  const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet');
  const [agent] = listAt(daemonSet, 'spec', 'template', 'spec', 'containers');
  let directory: string;
  let root: string;
  let image: Stage;
  let cluster: TestCluster;
  let node: Host;
  let relay: Server;
  const stopping = new AbortController();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'servicenet-root-'));
    // The network's namespaces are an ordinary user's.
    chmodSync(directory, 0o755);
    root = join(directory, 'root');
    image = imageStage();
    buildImageRoot(directory, root);

    cluster = await TestCluster.start({ 'node-1': ['client', 'server'] }, { authorizationMode: 'RBAC' });
    node = cluster.network.at('node-1').machine.host;
    await applyStrictly(cluster.server.client, objects);
    const { body } = await call(
      cluster.server.client,
      'POST',
      '/api/v1/namespaces/servicenet-system/serviceaccounts/servicenet-agent/token',
      { body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} } },
    );
    const account = join(root, 'run/secrets/kubernetes.io/serviceaccount');
    mkdirSync(account, { recursive: true });
    writeFileSync(join(account, 'token'), textAt(body, 'status', 'token'));
    writeFileSync(join(account, 'ca.crt'), cluster.server.ca);
    writeFileSync(join(account, 'namespace'), 'servicenet-system');
    // The node reaches the API server by its own loopback address, which the certificate has.
    const { port } = new URL(cluster.server.url);
    relay = createServer((socket) => {
      const onward = connect(Number(port), '127.0.0.1');
      for (const [from, to] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        from.pipe(to).on('error', () => from.destroy());
      }
    });
    await node.listen(relay, '127.0.0.1', 6443);
  }, 480_000);

  afterAll(async () => {
    stopping.abort();
    relay.close();
    await cluster.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const inside = (...words: string[]): Parameters<Host['exec']> => [
    'unshare',
    ['-m', 'sh', '-c', enter, 'sh', root, ...words],
  ];

  test('has no capability but NET_ADMIN, and can write nothing', async () => {
    const script = 'grep CapEff /proc/self/status; touch /tmp/x; echo 1 > /proc/sys/net/ipv4/ip_forward';
    const { stdout, stderr } = await node.exec(...inside('sh', '-c', script));
    // CAP_NET_ADMIN is 12 (linux/capability.h).
    expect(stdout.trim()).toBe(`CapEff:\t${(1 << 12).toString(16).padStart(16, '0')}`);
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2);
  });

  test('carries the traffic of a Service, and is live and ready', async () => {
    const server = cluster.network.at('server');
    await server.machine.serve(8080);
    await cluster.service('web', { clusterIP: '10.96.0.80' });
    await cluster.slice(endpointSlice('IPv4', [{ address: server.addresses.IPv4, node: 'node-1' }], 8080));
    const environment = [
      ...['NODE_NAME=node-1', 'KUBERNETES_SERVICE_HOST=127.0.0.1', 'KUBERNETES_SERVICE_PORT=6443'],
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ];
    const program = [...wordsOf(image, 'ENTRYPOINT'), ...textsAt(agent, 'args')];
    const [unshare, words] = inside('env', '-i', ...environment, ...program);
    const running = node.exec(unshare, words, { signal: stopping.signal });
    const ended = running.then(({ stdout, stderr }) => {
      throw new Error(`the agent ended: ${stdout} ${stderr}`);
    });
    const answered = expect
      .poll(() => cluster.network.at('client').machine.ask('10.96.0.80', 80, { timeout: 2000 }))
      .toMatchObject({ name: 'server' });
    await Promise.race([answered, ended]);
    const { port } = { port: textAt(agent, 'livenessProbe', 'httpGet', 'port') };
    const healthz = listAt(agent, 'ports').find((each) => textAt(each, 'name') === port);
    // A change is written by the nft that stays: without a home directory, a terminal, or a file system to write to.
    await cluster.slice(endpointSlice('IPv4', [], 8080));
    await expect.poll(() => cluster.network.at('client').machine.ask('10.96.0.80', 80)).toBe('refused');
    expect(await processesOf(node, residentNft)).toHaveLength(1);
    for (const url of [
      `http://127.0.0.1:${String(at(healthz, 'containerPort'))}/livez`,
      'http://127.0.0.1:10249/readyz',
    ]) {
      await expect.poll(async () => (await node.exec('curl', ['-sf', url])).exitCode).toBe(0);
    }
    stopping.abort();
    await expect(ended).rejects.toThrow();
  });
});
