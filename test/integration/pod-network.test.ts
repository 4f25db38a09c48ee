import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Embedded, startEmbedded } from '../../src/apiserver/embedded.ts';
import type { DialPod } from '../../src/apiserver/proxy/dial-pod.ts';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { nodePortRange, readServiceCidrs } from '../../src/flags/shared.ts';
import { textAt } from '../../src/objects/json.ts';
import { type Answer, call } from '../support/test-server.ts';
import { WebhookServer } from '../support/webhook-server.ts';

const namespace = '/api/v1/namespaces/default';
const off = 'Pods and nodes are simulated and the cluster network is off: none can be reached';
/** An address of this machine in its own network, which nothing but this test listens on. */
const hostAddress = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly server: Embedded;
  readonly client: Transport;
  readonly send: (method: string, path: string, body?: unknown) => Promise<Answer>;
}

async function start(dialPod?: DialPod): Promise<Started> {
  const server = await startEmbedded({
    bindAddress: '127.0.0.1',
    port: 0,
    serviceCidrs: readServiceCidrs('10.96.0.0/16'),
    nodePorts: nodePortRange('30000-32767'),
    authorizationMode: 'AlwaysAllow',
    log: pino({ enabled: false }),
    ...(dialPod === undefined ? {} : { dialPod }),
  });
  cleanups.push(() => server.close());
  const client = await createTransport({
    kind: 'endpoint',
    url: server.url,
    ca: server.ca,
    token: server.token,
  });
  cleanups.push(() => client.close());
  const merge = { 'content-type': 'application/merge-patch+json' };
  const send: Started['send'] = async (method, path, body) =>
    call(client, method, path, { body, ...(method === 'PATCH' ? { headers: merge } : {}) });
  return { server, client, send };
}

/** A Pod with an address, and a Service in front of it. */
async function makePod({ send }: Started, ip: string, port: number): Promise<void> {
  const spec = { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] };
  await send('POST', `${namespace}/serviceaccounts`, { metadata: { name: 'default' } });
  await send('POST', `${namespace}/pods`, { metadata: { name: 'p' }, spec });
  await send('PATCH', `${namespace}/pods/p/status`, { status: { podIP: ip, podIPs: [{ ip }] } });
  await send('POST', `${namespace}/services`, {
    metadata: { name: 'web' },
    spec: { ports: [{ port: 443 }] },
  });
  const targetRef = { kind: 'Pod', namespace: 'default', name: 'p' };
  const made = await send('POST', slices, sliceOf('web', { addresses: [ip], targetRef }, port));
  expect(made.status, JSON.stringify(made.body)).toBe(201);
}

async function listen(server: Server, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, 'listening');
  cleanups.push(() => server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';

function sliceOf(service: string, endpoint: object, port: number): object {
  return {
    metadata: { generateName: `${service}-`, labels: { 'kubernetes.io/service-name': service } },
    ...{ addressType: 'IPv4', endpoints: [endpoint], ports: [{ name: '', port }] },
  };
}

/** Asks a validating webhook, and answers what became of the write that it was asked about. */
async function askWebhook({ send }: Started, clientConfig: object): Promise<string> {
  const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  await send('POST', configurations, {
    metadata: { name: 'w' },
    webhooks: [
      {
        name: 'w.example.com',
        clientConfig,
        rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
  const { status, body } = await send('POST', `${namespace}/configmaps`, {
    metadata: { generateName: 'c-' },
  });
  await send('DELETE', `${configurations}/w`);
  return status === 201 ? 'created' : textAt(body, 'message');
}

test.skipIf(hostAddress === undefined)(
  'a host that has the address of a simulated Pod is never connected to',
  async () => {
    let connections = 0;
    const host = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    const port = await listen(host, hostAddress ?? '');
    const started = await start();
    await makePod(started, hostAddress ?? '', port);
    for (const path of [`pods/p:${port}/proxy/`, `pods/https:p:${port}/proxy/`, 'services/web/proxy/x']) {
      for (const method of ['GET', 'POST']) {
        const { status, body } = await started.send(method, `${namespace}/${path}`);
        expect([status, body['kind'], body['reason'], body['message']]).toEqual([
          503,
          'Status',
          'ServiceUnavailable',
          off,
        ]);
      }
    }
    const { server } = started;
    const socket = new WebSocket(`${server.url}${namespace}/pods/p:${port}/proxy/`, {
      ca: server.ca,
      headers: { authorization: `Bearer ${server.token}` },
    });
    socket.on('error', () => undefined);
    const refused: unknown[] = await once(socket, 'unexpected-response');
    expect(refused[1]).toMatchObject({ statusCode: 503 });
    socket.terminate();

    const service = { namespace: 'default', name: 'web', port: 443 };
    expect(await askWebhook(started, { service })).toContain(`dial tcp ${hostAddress}:${port}: ${off}`);
    expect(connections).toBe(0);
  },
);

test.skipIf(hostAddress === undefined)(
  'a webhook is not asked at an address of a Node, of its Pods or of Services, by whatever name',
  async () => {
    let connections = 0;
    const host = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    const address = hostAddress ?? '';
    const port = await listen(host, address);
    const started = await start();
    const { send } = started;
    await send('POST', '/api/v1/nodes', { metadata: { name: 'n' }, spec: { podCIDRs: [`${address}/32`] } });
    await send('POST', '/api/v1/nodes', { metadata: { name: 'm' } });
    await send('PATCH', '/api/v1/nodes/m/status', {
      status: { addresses: [{ type: 'InternalIP', address: '192.0.2.77' }] },
    });
    await send('POST', `${namespace}/services`, {
      metadata: { name: 'hook' },
      spec: { ports: [{ port: 443 }] },
    });
    await send('POST', slices, sliceOf('hook', { addresses: [address] }, port));
    await send('POST', `${namespace}/services`, {
      metadata: { name: 'named' },
      spec: { type: 'ExternalName', externalName: address },
    });
    const named = (name: string, servicePort: number): object => ({
      service: { namespace: 'default', name, port: servicePort },
    });
    expect(await askWebhook(started, named('hook', 443))).toContain(off);
    expect(await askWebhook(started, named('named', port))).toContain(off);
    expect(await askWebhook(started, { url: `https://${address}:${port}/` })).toContain(off);
    expect(await askWebhook(started, { url: 'https://192.0.2.77/' })).toContain(off);
    expect(await askWebhook(started, { url: 'https://10.96.0.1/' })).toContain(off);
    expect(connections).toBe(0);

    await send('DELETE', '/api/v1/nodes/n');
    await askWebhook(started, named('hook', 443));
    expect(connections).toBeGreaterThan(0);
  },
);

test('a cluster network is asked for the address and the port of the Pod', async () => {
  const webhooks = await WebhookServer.start(['web.default.svc']);
  cleanups.push(() => webhooks.stop());
  const dialled: string[] = [];
  const started = await start(async (address, port) => {
    dialled.push(`${address}:${port}`);
    const socket = connect(webhooks.port, '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  });
  await makePod(started, '10.244.0.5', 8443);
  const service = { namespace: 'default', name: 'web', port: 443, path: '/allow' };
  webhooks.at('/allow', () => ({ response: { allowed: true } }));
  expect(await askWebhook(started, { service, caBundle: webhooks.caBundle })).toBe('created');
  webhooks.at('/page', () => ({ text: '{"page":1}' }));
  expect((await started.send('POST', `${namespace}/pods/https:p:8443/proxy/page`, {})).body).toEqual({
    page: 1,
  });
  expect(new Set(dialled)).toEqual(new Set(['10.244.0.5:8443']));
});
