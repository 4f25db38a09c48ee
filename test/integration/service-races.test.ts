import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

const services = '/api/v1/namespaces/default/services';
const ipAddresses = '/apis/networking.k8s.io/v1/ipaddresses';
const ports = [{ port: 80 }];

/** On disk: there a write is on its way for as long as a sync takes, and others meet it. */
let server: TestServer;
let directory = '';
beforeAll(async () => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-races-'));
  server = await startApiServer({
    dataDirectory: directory,
    serviceClusterIpRange: '10.9.0.0/27',
    serviceNodePortRange: '30000-30003',
  });
});
afterAll(async () => {
  await server.stop();
  fs.rmSync(directory, { recursive: true });
});

function addressObject(address: string): object {
  return {
    metadata: { name: address },
    spec: { parentRef: { resource: 'services', namespace: 'default', name: 'other' } },
  };
}

/** All node ports that can be had now; none is kept. */
async function freeNodePorts(): Promise<number[]> {
  const made: string[] = [];
  const found: number[] = [];
  for (let n = 0; ; n++) {
    const name = `probe-${n}`;
    const { status, body } = await call(server.client, 'POST', services, {
      body: { metadata: { name }, spec: { type: 'NodePort', ports } },
    });
    if (status !== 201) break;
    made.push(name);
    found.push(Number(recordAt(listAt(body, 'spec', 'ports')[0])['nodePort']));
  }
  for (const name of made) await call(server.client, 'DELETE', `${services}/${name}`);
  return found.toSorted((a, b) => a - b);
}

describe('the write that takes the last finalizer of a deleted Service', () => {
  test('takes nothing for the version that never comes to be', async () => {
    const { client } = server;
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30000 }] };
    await call(client, 'POST', services, {
      body: { metadata: { name: 'a', finalizers: ['example.com/x'] }, spec },
    });
    await call(client, 'DELETE', `${services}/a`);
    const more = {
      type: 'NodePort',
      ports: [
        { name: 'x', port: 80, nodePort: 30000 },
        { name: 'y', port: 81, nodePort: 30001 },
      ],
    };
    const last = await call(client, 'PUT', `${services}/a`, {
      body: { metadata: { name: 'a' }, spec: more },
    });
    expect(last.status).toBe(200);
    expect((await call(client, 'GET', `${services}/a`)).status).toBe(404);
    expect(await freeNodePorts()).toEqual([30000, 30001, 30002, 30003]);
    const addresses = await call(client, 'GET', ipAddresses);
    expect(listAt(addresses.body, 'items').map((item) => textAt(item, 'metadata', 'name'))).toEqual([
      '10.9.0.1',
    ]);
  });

  test('gives back what the stored version held and the next one does not', async () => {
    const { client } = server;
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30002 }] };
    await call(client, 'POST', services, {
      body: { metadata: { name: 'a', finalizers: ['example.com/x'] }, spec },
    });
    await call(client, 'DELETE', `${services}/a`);
    const moved = { type: 'NodePort', ports: [{ port: 80, nodePort: 30003 }] };
    await call(client, 'PUT', `${services}/a`, { body: { metadata: { name: 'a' }, spec: moved } });
    expect(await freeNodePorts()).toEqual([30000, 30001, 30002, 30003]);
  });
});

describe('an IPAddress made by hand and a Service at the same time', () => {
  test('one of them gets the address, the other an error that says why', async () => {
    const { client } = server;
    for (let round = 0; round < 15; round++) {
      const [made, service] = await Promise.all([
        call(client, 'POST', ipAddresses, { body: addressObject('10.9.0.9') }),
        call(client, 'POST', services, {
          body: { metadata: { name: 'a' }, spec: { clusterIP: '10.9.0.9', ports } },
        }),
      ]);
      if (made.status === 201) {
        expect(service.status).toBe(422);
        expect(service.body['message']).toBe(
          'Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.9"]: failed to allocate IP 10.9.0.9: provided IP is already allocated',
        );
        await call(client, 'DELETE', `${ipAddresses}/10.9.0.9`);
      } else {
        expect([made.status, made.body['reason']]).toEqual([409, 'AlreadyExists']);
        expect(service.status).toBe(201);
        await call(client, 'DELETE', `${services}/a`);
      }
    }
  });

  test('a Service that takes any address takes another one', async () => {
    const { client } = server;
    const byHand = Array.from({ length: 24 }, (_, n) => `10.9.0.${n + 2}`);
    const answers = await Promise.all([
      ...byHand.map(async (address) => call(client, 'POST', ipAddresses, { body: addressObject(address) })),
      ...byHand
        .slice(0, 5)
        .map(async (_, n) =>
          call(client, 'POST', services, { body: { metadata: { name: `s${n}` }, spec: { ports } } }),
        ),
    ]);
    const made = answers.slice(byHand.length);
    expect(made.map(({ status, body }) => (status === 201 ? '' : body['message']))).toEqual([
      '',
      '',
      '',
      '',
      '',
    ]);
    const taken = made.map(({ body }) => textAt(body, 'spec', 'clusterIP'));
    const refused = byHand.filter((_, n) => answers[n]?.status !== 201);
    expect(taken.filter((address) => byHand.includes(address)).toSorted()).toEqual(refused.toSorted());
    expect(new Set(taken).size).toBe(5);
  });
});
