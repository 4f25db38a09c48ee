import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Host } from '../../src/host/host.ts';
import { call } from '../support/test-server.ts';
import { TestCluster } from './support/cluster.ts';
import { missingFor } from './support/gate.ts';
import { endpointSlice, type TestEndpoint } from './support/objects.ts';

const missing = missingFor('user');

/** What `curl` got, or its exit code where it got nothing. */
interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

describe.skipIf(missing !== '')(`health${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: TestCluster;
  let node: string;

  beforeAll(async () => {
    cluster = await TestCluster.start({ 'node-1': ['a-1', 'b-1'] });
    node = cluster.network.at('node-1').addresses.IPv4;
  });
  afterAll(() => cluster.close());

  it('should fail health check node port if there are only terminating endpoints', async () => {
    const agents = cluster.startAgents(['node-1']);
    const port = 31_900;
    await balanced('web', '10.96.2.1', port);
    await endpoints('web', [ready('a-1'), ready('b-1')]);
    await expect.poll(() => status(port)).toBe(200);
    expect(await get(`http://${node}:${port}/any/path`)).toEqual({
      status: 200,
      headers: {
        'content-type': 'application/json',
        'x-content-type-options': 'nosniff',
        'x-load-balancing-endpoint-weight': '2',
      },
      body: [
        '{',
        '\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},',
        '\t"localEndpoints": 2,',
        '\t"serviceProxyHealthy": true',
        '}',
      ].join('\n'),
    });
    const terminating = { ready: false, serving: true, terminating: true };
    await endpoints('web', [
      { ...ready('a-1'), ...terminating },
      { ...ready('b-1'), node: 'node-2' },
    ]);
    await expect.poll(() => status(port)).toBe(503);
    expect(await get(`http://${node}:${port}/`)).toMatchObject({
      headers: { 'x-load-balancing-endpoint-weight': '0' },
    });
    await cluster.send('DELETE', '/api/v1/namespaces/shop/services/web');
    await expect.poll(() => status(port)).toBe(0);
    await agents.stop();
  });

  it('says in an Event that the port is taken, and opens it once it is free; other updates do not reopen it', async () => {
    const { host } = cluster.network.at('node-1').machine;
    const port = 31_901;
    const taker = createServer();
    await host.listen(taker, node, port);
    let opened = 0;
    const counting: Host = {
      ...host,
      listen: async (server, address, wanted) => {
        await host.listen(server, address, wanted);
        if (wanted === port) opened++;
      },
    };
    const agents = cluster.startAgents(['node-1'], {}, () => counting);
    await balanced('taken', '10.96.2.2', port);
    await endpoints('taken', [ready('a-1')]);
    await expect.poll(() => agents.events).toHaveLength(1);
    expect(agents.events[0]).toMatch(/^FailedToStartServiceHealthcheck taken: .*31901.*EADDRINUSE/);
    const closed = once(taker, 'close');
    taker.close();
    await closed;
    await endpoints('taken', [ready('a-1'), ready('b-1')]);
    await expect.poll(() => status(port)).toBe(200);
    await endpoints('taken', [ready('b-1')]);
    await expect
      .poll(() => get(`http://${node}:${port}/`))
      .toMatchObject({ headers: { 'x-load-balancing-endpoint-weight': '1' } });
    expect(opened).toBe(1);
    expect(agents.events).toHaveLength(1);
    await agents.stop();
  });

  it('/healthz fails on a node that the cluster autoscaler takes away, or that is being deleted, and /livez does not', async () => {
    const agents = cluster.startAgents(['node-1'], { healthz: { host: '0.0.0.0', port: 10_256 } });
    await expect.poll(() => status(10_256, '/healthz')).toBe(200);
    const first: unknown = JSON.parse((await get(`http://${node}:10256/healthz`)).body);
    expect(first).toMatchObject({ nodeEligible: true, healthy: true });
    await expect
      .poll(async (): Promise<unknown> => JSON.parse((await get(`http://${node}:10256/healthz`)).body))
      .toMatchObject({ status: { IPv4: { healthy: true } } });
    const taint = { key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' };
    await cluster.send('PATCH', '/api/v1/nodes/node-1', { spec: { taints: [taint] } });
    await expect.poll(() => status(10_256, '/healthz')).toBe(503);
    const livez = await get(`http://${node}:10256/livez`);
    expect(livez.status).toBe(200);
    expect(JSON.parse(livez.body)).not.toHaveProperty('nodeEligible');
    expect(await status(10_256, '/')).toBe(404);
    expect(await agents.metrics.scrape()).toMatch(/kubeproxy_proxy_healthz_total\{code="503"\} [1-9]/);
    await cluster.send('PATCH', '/api/v1/nodes/node-1', { spec: { taints: null } });
    await expect.poll(() => status(10_256, '/healthz')).toBe(200);
    // Being deleted, and then gone.
    await cluster.send('PATCH', '/api/v1/nodes/node-1', { metadata: { finalizers: ['example.com/kept'] } });
    await cluster.send('DELETE', '/api/v1/nodes/node-1');
    await expect.poll(() => status(10_256, '/healthz')).toBe(503);
    await cluster.send('PATCH', '/api/v1/nodes/node-1', { metadata: { finalizers: null } });
    await expect
      .poll(async () => (await call(cluster.server.client, 'GET', '/api/v1/nodes/node-1')).status)
      .toBe(404);
    expect(await status(10_256, '/healthz')).toBe(503);
    expect(await status(10_256, '/livez')).toBe(200);
    await agents.stop();
    expect(await status(10_256, '/healthz')).toBe(0);
  });

  async function balanced(name: string, clusterIP: string, healthCheckNodePort: number): Promise<void> {
    await cluster.service(name, {
      ...{ clusterIP, type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort },
    });
  }

  function endpoints(name: string, list: readonly TestEndpoint[]): Promise<void> {
    return cluster.slice(endpointSlice('IPv4', list, 8080, name));
  }

  function ready(pod: string): TestEndpoint {
    return { address: cluster.network.at(pod).addresses.IPv4, node: 'node-1' };
  }

  async function status(port: number, path = '/'): Promise<number> {
    return (await get(`http://${node}:${port}${path}`)).status;
  }

  /** From outside, as a load balancer asks; status 0 without an answer. */
  async function get(url: string): Promise<Got> {
    const { host } = cluster.network.outside.machine;
    const { stdout } = await host.exec('curl', ['-sS', '-i', '--max-time', '20', url]);
    const [head = '', body = ''] = stdout.split('\r\n\r\n', 2);
    const [first = '', ...lines] = head.split('\r\n');
    const kept = /^(content-type|x-)/i;
    const headers = lines
      .filter((line) => kept.test(line))
      .map((line): [string, string] => {
        const [name = '', value = ''] = line.toLowerCase().split(': ', 2);
        return [name, value];
      });
    const status = Number(first.split(' ')[1] ?? 0);
    return { status, headers: Object.fromEntries(headers), body };
  }
});
