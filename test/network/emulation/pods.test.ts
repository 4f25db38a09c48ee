import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Container, Pod, PodSpec, ServiceSpec } from '../../../src/objects/core.generated.ts';
import { isRecord } from '../../../src/objects/json.ts';
import { textAt } from '../../../src/objects/read.ts';
import { type RunPlace, startApiServer, type TestServer } from '../../../src/testing/index.ts';
import { call } from '../../support/test-server.ts';
import { missingFor } from '../support/gate.ts';

const missing = missingFor('user');

describe.skipIf(missing !== '')(`Pods of \`up\`${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startApiServer({
      network: true,
      nodes: 2,
      serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
    });
  });
  afterAll(() => server.stop());

  it('answer by the cluster IP of their Service, from a Pod, from nodes, and by a node port from outside', async () => {
    await deploy('web', 3, { ports: [{ containerPort: 8080 }] });
    const spec = await service('web', { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack' }, 8080);
    const [nodePort = 0] = (spec.ports ?? []).map((port) => port.nodePort ?? 0);
    for (const address of spec.clusterIPs ?? []) {
      const url = `http://${inUrl(address)}`;
      const answers = await until(() => several({ namespace: 'default' }, url), hasPods(3));
      expect(answers).toHaveLength(3);
      expect(await get({ node: 'node-1' }, url)).toMatchObject({ namespace: 'default' });
    }
    for (const node of ['node-1', 'node-2']) {
      for (const address of await addressesOf(node)) {
        const url = `http://${inUrl(address)}:${nodePort}/some/path`;
        expect(await until(() => get({ outside: true }, url), isRecord)).toMatchObject({
          path: '/some/path',
        });
      }
    }
    const [clusterIP = ''] = spec.clusterIPs ?? [];
    expect(await curl({ outside: true }, `http://${clusterIP}`), 'outside knows no cluster IP').toBe('');
  });

  it('see the client by its own address, also on another node', async () => {
    await deploy('seen', 1, { ports: [{ containerPort: 80 }] });
    await deploy('seeing', 2, {});
    const { clusterIP = '' } = await service('seen', {}, 80);
    for (const pod of await running('seeing', 2)) {
      const where = { pod: `default/${pod.metadata.name ?? ''}` };
      const answer = await until(() => get(where, `http://${clusterIP}`), isRecord);
      expect(answer).toMatchObject({ client: pod.status.podIP });
    }
  });

  it('serve what tests ask for: names, statuses, health by readiness, slow answers, echo', async () => {
    const ports = [{ containerPort: 80 }, { containerPort: 7, protocol: 'UDP' }];
    await deploy('probe', 1, { ports });
    const [pod] = await running('probe', 1);
    const address = pod?.status.podIP ?? '';
    const from = { node: 'node-2' };
    expect(await curl(from, `http://${address}/hostname`)).toBe(`${pod?.metadata.name ?? ''}\n`);
    expect(await curl(from, `http://${address}/healthz`)).toBe('ok\n');
    expect(await curl(from, `http://${address}/clientip`)).toMatch(/^172\.\d+\.\d+\.\d+:\d+\n$/);
    const timed = await server.run(
      ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{time_total}', `http://${address}/slow?ms=300`],
      from,
    );
    expect(timed.stdout).toMatch(/^200 /);
    expect(Number(timed.stdout.split(' ')[1])).toBeGreaterThanOrEqual(0.3);
    const status = await server.run(
      ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/status/503`],
      from,
    );
    expect(status.stdout).toBe('503');
    const echo = (protocol: 'tcp' | 'udp', port: number) =>
      server.run(
        ['bash', '-c', `exec 3<>/dev/${protocol}/${address}/${port}; printf 'hello you' >&3; head -c 9 <&3`],
        from,
      );
    expect((await echo('tcp', 80)).stdout).toBe('hello you');
    expect((await echo('udp', 7)).stdout).toBe('hello you');
  });

  it('refuse where they declare no port, and while their containers are down', async () => {
    await deploy('silent', 1, {});
    const [silent] = await running('silent', 1);
    const from = { node: 'node-1' };
    expect(await isRefused(from, `http://${silent?.status.podIP ?? ''}`)).toBe(true);
    const annotations = { 'servicenet.dev/fail-after': '1s' };
    await deploy('failing', 1, { ports: [{ containerPort: 80 }] }, { annotations });
    const [failing] = await running('failing', 1);
    const url = `http://${failing?.status.podIP ?? ''}/hostname`;
    await expect.poll(() => isRefused(from, url)).toBe(true);
  });

  it('listen on their node with hostNetwork, and are reached by host ports', async () => {
    await deploy('host', 1, { ports: [{ containerPort: 8088 }] }, { spec: { hostNetwork: true } });
    const [onHost] = await running('host', 1);
    expect(await get({ outside: true }, `http://${onHost?.status.hostIP ?? ''}:8088`)).toMatchObject({
      pod: onHost?.metadata.name,
    });
    await deploy('port', 1, { ports: [{ containerPort: 80, hostPort: 8089 }] });
    const [byPort] = await running('port', 1);
    for (const from of [{ outside: true }, { node: byPort?.spec.nodeName ?? '' }] as const) {
      expect(await get(from, `http://${byPort?.status.hostIP ?? ''}:8089`)).toMatchObject({
        pod: byPort?.metadata.name,
      });
    }
    await call(server.client, 'DELETE', '/apis/apps/v1/namespaces/default/deployments/port');
    await expect
      .poll(() => isRefused({ outside: true }, `http://${byPort?.status.hostIP ?? ''}:8089`))
      .toBe(true);
  });

  it('reach the API server as kubernetes.default, by its cluster IP', async () => {
    const answer = await server.run([
      ...['curl', '-s', '--max-time', '5', '--cacert', '/dev/stdin'],
      ...['-H', `Authorization: Bearer ${server.token}`, 'https://10.96.0.1/version', '--insecure'],
    ]);
    expect(answer.stdout).toContain('"gitVersion"');
  });

  it('are reached through the proxies of Pods and Services', async () => {
    await deploy('proxied', 1, { ports: [{ containerPort: 80 }] });
    await service('proxied', {}, 80);
    const [pod] = await running('proxied', 1);
    const name = pod?.metadata.name ?? '';
    for (const path of [`pods/${name}`, `services/proxied:80`]) {
      const answer = await until(
        () => call(server.client, 'GET', `/api/v1/namespaces/default/${path}/proxy/here?q=1`),
        ({ status }) => status === 200,
      );
      expect(answer.body).toMatchObject({ pod: name, path: '/here?q=1' });
    }
  });

  it('leave nothing on their node when they are deleted', async () => {
    const links = async (): Promise<number> =>
      (await server.run(['ip', '-br', 'link'], { node: 'node-1' })).stdout.split('\n').length;
    const before = await links();
    await deploy('short', 6, { ports: [{ containerPort: 80 }] });
    await running('short', 6);
    expect(await links()).toBeGreaterThan(before);
    await call(server.client, 'DELETE', '/apis/apps/v1/namespaces/default/deployments/short');
    await expect.poll(links).toBe(before);
  });

  async function deploy(
    name: string,
    replicas: number,
    container: Partial<Container>,
    { annotations = {}, spec = {} }: { annotations?: Record<string, string>; spec?: Partial<PodSpec> } = {},
  ): Promise<void> {
    const metadata = { labels: { app: name }, annotations };
    const template = {
      metadata,
      spec: { ...spec, containers: [{ name: 'main', image: 'x', ...container }] },
    };
    await post('/apis/apps/v1/namespaces/default/deployments', {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name } },
      spec: { replicas, selector: { matchLabels: { app: name } }, template },
    });
  }

  async function service(name: string, spec: Partial<ServiceSpec>, targetPort: number): Promise<ServiceSpec> {
    const stored = await post('/api/v1/namespaces/default/services', {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { selector: { app: name }, ports: [{ port: 80, targetPort }], ...spec },
    });
    return stored['spec'] as ServiceSpec;
  }

  async function post(path: string, body: object): Promise<Record<string, unknown>> {
    const answer = await call(server.client, 'POST', path, { body });
    if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    return answer.body;
  }

  async function addressesOf(node: string): Promise<readonly string[]> {
    const { body } = await call(server.client, 'GET', `/api/v1/nodes/${node}`);
    const { addresses } = body['status'] as { addresses: { type: string; address: string }[] };
    return addresses.flatMap(({ type, address }) => (type === 'InternalIP' ? [address] : []));
  }

  /** The Pods of a Deployment, once so many run. */
  async function running(app: string, count: number): Promise<readonly Pod[]> {
    return await until(
      async () => {
        const query = { labelSelector: `app=${app}` };
        const { body } = await call(server.client, 'GET', '/api/v1/namespaces/default/pods', { query });
        return (body['items'] as Pod[]).filter(({ status }) => status.phase === 'Running');
      },
      (pods) => pods.length >= count,
    );
  }

  async function curl(where: RunPlace, url: string): Promise<string> {
    return (await server.run(['curl', '-s', '--max-time', '2', url], where)).stdout;
  }

  /** curl exits with 7 for a refusal, and with 28 for silence. */
  async function isRefused(where: RunPlace, url: string): Promise<boolean> {
    return (await server.run(['curl', '-sS', '--max-time', '2', url], where)).exitCode === 7;
  }

  async function get(where: RunPlace, url: string): Promise<unknown> {
    const text = await curl(where, url);
    return text === '' ? undefined : JSON.parse(text);
  }

  /** The names of the Pods that answer forty connections. */
  async function several(where: RunPlace, url: string): Promise<readonly string[]> {
    const script = `for i in $(seq 40); do curl -s --max-time 2 '${url}'; done`;
    const { stdout } = await server.run(['sh', '-c', script], where);
    const names = stdout
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [textAt(JSON.parse(line), 'pod')]));
    return [...new Set(names)];
  }
});

function hasPods(count: number): (names: readonly string[]) => boolean {
  return (names) => names.length >= count;
}

function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** Asks again until the answer is good; fails after a minute. */
async function until<T>(ask: () => Promise<T>, good: (answer: T) => boolean): Promise<T> {
  let answer: T | undefined;
  await expect
    .poll(async () => {
      answer = await ask();
      return good(answer);
    })
    .toBe(true);
  if (answer === undefined) throw new Error('no answer came');
  return answer;
}
