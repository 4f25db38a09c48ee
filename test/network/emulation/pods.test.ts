import { afterAll, beforeAll, expect, it } from 'vitest';
import { isRecord, listAt, textAt } from '../../../src/objects/json.ts';
import { describePods, inUrl, PodNetwork, until } from '../support/pod-network.ts';

describePods('Pods of `up`', () => {
  let pods: PodNetwork;

  beforeAll(async () => {
    pods = await PodNetwork.start({ serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112' });
  });
  afterAll(() => pods.server.stop());

  it('answer by the cluster IP of their Service, from a Pod, from nodes, and by a node port from outside', async () => {
    await pods.deploy('web', 3, { ports: [{ containerPort: 8080 }] });
    const spec = await pods.service('web', { type: 'NodePort', ipFamilyPolicy: 'RequireDualStack' }, 8080);
    const [nodePort = 0] = (spec.ports ?? []).map((port) => port.nodePort ?? 0);
    for (const address of spec.clusterIPs ?? []) {
      const url = `http://${inUrl(address)}`;
      const answers = await until(
        () => pods.namesOf({ namespace: 'default' }, url),
        (names) => names.length >= 3,
      );
      expect(answers).toHaveLength(3);
      expect(await pods.get({ node: 'node-1' }, url)).toMatchObject({ namespace: 'default' });
    }
    for (const node of ['node-1', 'node-2']) {
      for (const address of await pods.addressesOf(node)) {
        const url = `http://${inUrl(address)}:${nodePort}/some/path`;
        expect(await until(() => pods.get({ outside: true }, url), isRecord)).toMatchObject({
          path: '/some/path',
        });
      }
    }
    const [clusterIP = ''] = spec.clusterIPs ?? [];
    expect(await pods.curl({ outside: true }, `http://${clusterIP}`), 'outside knows no cluster IP').toBe('');
  });

  it('see the client by its own address, also on another node', async () => {
    await pods.deploy('seen', 1, { ports: [{ containerPort: 80 }] });
    await pods.deploy('seeing', 2, {});
    const { clusterIP = '' } = await pods.service('seen', {}, 80);
    for (const pod of await pods.running('seeing', 2)) {
      const where = { pod: `default/${pod.metadata.name ?? ''}` };
      const answer = await until(() => pods.get(where, `http://${clusterIP}`), isRecord);
      expect(answer).toMatchObject({ client: pod.status.podIP });
    }
  });

  it('serve what tests ask for: names, statuses, health by readiness, slow answers, echo', async () => {
    const ports = [{ containerPort: 80 }, { containerPort: 7, protocol: 'UDP' }];
    await pods.deploy('probe', 1, { ports });
    const [pod] = await pods.running('probe', 1);
    const address = pod?.status.podIP ?? '';
    const from = { node: 'node-2' };
    expect(await pods.curl(from, `http://${address}/hostname`)).toBe(`${pod?.metadata.name ?? ''}\n`);
    expect(await pods.curl(from, `http://${address}/healthz`)).toBe('ok\n');
    expect(await pods.curl(from, `http://${address}/clientip`)).toMatch(/^172\.\d+\.\d+\.\d+:\d+\n$/);
    const timed = await pods.server.run(
      ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code} %{time_total}', `http://${address}/slow?ms=300`],
      from,
    );
    expect(timed.stdout).toMatch(/^200 /);
    expect(Number(timed.stdout.split(' ')[1])).toBeGreaterThanOrEqual(0.3);
    const status = await pods.server.run(
      ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://${address}/status/503`],
      from,
    );
    expect(status.stdout).toBe('503');
    const echo = (protocol: 'tcp' | 'udp', port: number) =>
      pods.server.run(
        ['bash', '-c', `exec 3<>/dev/${protocol}/${address}/${port}; printf 'hello you' >&3; head -c 9 <&3`],
        from,
      );
    expect((await echo('tcp', 80)).stdout).toBe('hello you');
    expect((await echo('udp', 7)).stdout).toBe('hello you');
  });

  it('answer where their image says so if they declare no port, as in tutorials', async () => {
    await pods.deploy('tutorial', 1, { image: 'nginx:1.29' });
    const [pod] = await pods.running('tutorial', 1);
    const url = `http://${pod?.status.podIP ?? ''}/hostname`;
    expect(await pods.curl({ node: 'node-1' }, url)).toBe(`${pod?.metadata.name ?? ''}\n`);
  });

  it('refuse where they declare no port and their image is not known, and while their containers are down', async () => {
    await pods.deploy('silent', 1, {});
    const [silent] = await pods.running('silent', 1);
    const from = { node: 'node-1' };
    expect(await pods.isRefused(from, `http://${silent?.status.podIP ?? ''}`)).toBe(true);
    const annotations = { 'servicenet.dev/fail-after': '1s' };
    await pods.deploy('failing', 1, { ports: [{ containerPort: 80 }] }, { annotations });
    const [failing] = await pods.running('failing', 1, { ready: false });
    const url = `http://${failing?.status.podIP ?? ''}/hostname`;
    await expect.poll(() => pods.isRefused(from, url)).toBe(true);
  });

  it('listen on their node with hostNetwork, and are reached by host ports', async () => {
    await pods.deploy('host', 1, { ports: [{ containerPort: 8088 }] }, { spec: { hostNetwork: true } });
    const [onHost] = await pods.running('host', 1);
    expect(await pods.get({ outside: true }, `http://${onHost?.status.hostIP ?? ''}:8088`)).toMatchObject({
      pod: onHost?.metadata.name,
    });
    await pods.deploy('port', 1, { ports: [{ containerPort: 80, hostPort: 8089 }] });
    const [byPort] = await pods.running('port', 1);
    for (const from of [{ outside: true }, { node: byPort?.spec.nodeName ?? '' }] as const) {
      expect(await pods.get(from, `http://${byPort?.status.hostIP ?? ''}:8089`)).toMatchObject({
        pod: byPort?.metadata.name,
      });
    }
    await pods.delete('deployments', 'port', 'apps/v1');
    await expect
      .poll(() => pods.isRefused({ outside: true }, `http://${byPort?.status.hostIP ?? ''}:8089`))
      .toBe(true);
  });

  it('reach the API server as kubernetes.default, by its cluster IP', async () => {
    const answer = await pods.server.run([
      ...['curl', '-s', '--max-time', '5', '--cacert', '/dev/stdin'],
      ...['-H', `Authorization: Bearer ${pods.server.token}`, 'https://10.96.0.1/version', '--insecure'],
    ]);
    expect(answer.stdout).toContain('"gitVersion"');
  });

  it('are reached through the proxies of Pods and Services', async () => {
    await pods.deploy('proxied', 1, { ports: [{ containerPort: 80 }] });
    await pods.service('proxied', {}, 80);
    const [pod] = await pods.running('proxied', 1);
    const name = pod?.metadata.name ?? '';
    for (const path of [`pods/${name}`, `services/proxied:80`]) {
      const answer = await until(
        () => pods.call('GET', `/api/v1/namespaces/default/${path}/proxy/here?q=1`),
        ({ status }) => status === 200,
      );
      expect(answer.body).toMatchObject({ pod: name, path: '/here?q=1' });
    }
  });

  it('are reached through the proxy of their node by its ports, as its kubelet is', async () => {
    await pods.deploy('noded', 1, { ports: [{ containerPort: 8090 }] }, { spec: { hostNetwork: true } });
    const [pod] = await pods.running('noded', 1);
    const node = pod?.spec.nodeName ?? '';
    const at = (id: string, path: string) => pods.call('GET', `/api/v1/nodes/${id}/proxy${path}`);
    expect(await at(`${node}:8090`, '/here')).toMatchObject({ status: 200, body: { path: '/here', node } });
    const health = await until(
      () => at(`${node}:10256`, '/healthz'),
      ({ status }) => status === 200,
    );
    expect(health.body).toMatchObject({ nodeEligible: true });
    for (const id of [node, `${node}:10250`, `https:${node}:10250`]) {
      const { status } = await pods.server.client.request('GET', `/api/v1/nodes/${id}/proxy/healthz`);
      expect(status).toBe(200);
    }
    const listed = await at(node, '/pods');
    const names = listAt(listed.body, 'items').map((each) => textAt(each, 'metadata', 'name'));
    expect(names).toContain(pod?.metadata.name);
    await until(
      () => at(node, '/stats/summary'),
      ({ body }) =>
        listAt(body, 'pods').some((each) => textAt(each, 'podRef', 'name') === pod?.metadata.name),
    );
    expect(await at(node, '/configz')).toMatchObject({
      status: 200,
      body: { kubeletconfig: { port: 10_250 } },
    });
    const cadvisor = await pods.server.client.request('GET', `/api/v1/nodes/${node}/proxy/metrics/cadvisor`);
    expect(cadvisor.bytes.toString()).toContain('container_memory_working_set_bytes{');
    const stored = await pods.call('GET', `/api/v1/nodes/${node}`);
    expect(stored.body).toMatchObject({ status: { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } } });
    const message = /^error trying to reach service: dial tcp [\d.]+:9: connect: connection refused$/;
    expect(await at(`${node}:9`, '/')).toMatchObject({
      status: 503,
      body: {
        kind: 'Status',
        reason: 'ServiceUnavailable',
        message: expect.stringMatching(message) as string,
      },
    });
  });

  it('leave nothing on their node when they are deleted', async () => {
    const links = async (): Promise<number> =>
      (await pods.server.run(['ip', '-br', 'link'], { node: 'node-1' })).stdout.split('\n').length;
    const before = await links();
    await pods.deploy('short', 6, { ports: [{ containerPort: 80 }] });
    const short = await pods.running('short', 6);
    expect(await links()).toBeGreaterThan(before);
    await pods.delete('deployments', 'short', 'apps/v1');
    await expect.poll(links).toBe(before);
    // A client of a moment ago is refused, and does not wait for minutes.
    const [pod] = short.filter(({ spec }) => spec.nodeName === 'node-1');
    for (const ip of (pod?.status.podIPs ?? []).map((each) => inUrl(each.ip))) {
      for (const node of ['node-1', 'node-2']) {
        expect(await pods.isRefused({ node }, `http://${ip}`), `${ip} from ${node}`).toBe(true);
      }
    }
  });
});
