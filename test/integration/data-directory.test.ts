import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadIdentity, createIdentity } from '../../src/apiserver/pki/identity.ts';
import { DamagedStorageError, StorageLockedError } from '../../src/apiserver/storage/disk/directory-lock.ts';
import { createTransport } from '../../src/client/connect.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer, type TestServerOptions } from '../../src/testing/index.ts';
import { call, untilFound, watchEvents } from '../support/test-server.ts';

let directory = '';
let running: TestServer | undefined;

beforeEach(() => {
  directory = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'servicenet-data-')), 'data');
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  fs.rmSync(path.dirname(directory), { recursive: true });
});

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  running = await startApiServer({ dataDirectory: directory, ...options });
  return running;
}

async function stop(): Promise<void> {
  await running?.stop();
  running = undefined;
}

const services = '/api/v1/namespaces/default/services';
const configMaps = '/api/v1/namespaces/default/configmaps';

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer', default: 3 } } } },
          },
        },
      },
    ],
  },
};

describe('after a restart', () => {
  test('clients go on with the kubeconfig that they have', async () => {
    const first = await start();
    await stop();
    const second = await start({ port: Number(new URL(first.url).port) });
    expect(second.kubeconfig).toBe(first.kubeconfig);
    const client = await createTransport({
      kind: 'endpoint',
      url: first.url,
      ca: first.ca,
      token: first.token,
    });
    expect((await call(client, 'GET', '/api/v1/namespaces/default')).status).toBe(200);
    await client.close();
  });

  test('only the owner can read its files, the lock of an earlier version too', async () => {
    await start();
    const modes = (): number[] =>
      fs.readdirSync(directory).map((name) => fs.statSync(path.join(directory, name)).mode & 0o777);
    expect(new Set(modes())).toEqual(new Set([0o600]));
    await stop();
    fs.chmodSync(path.join(directory, 'lock'), 0o644);
    await start();
    expect(new Set(modes())).toEqual(new Set([0o600]));
    expect(fs.statSync(directory).mode & 0o777).toBe(0o700);
  });

  test('objects are what they were, and revisions go on', async () => {
    const first = await start();
    await call(first.client, 'POST', services, {
      body: { metadata: { name: 'a' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } },
    });
    const before = await call(first.client, 'GET', services);
    await stop();
    const second = await start({ port: Number(new URL(first.url).port) });
    const after = await call(second.client, 'GET', services);
    expect(after.body['items']).toEqual(before.body['items']);
    const next = await call(second.client, 'POST', configMaps, { body: { metadata: { name: 'b' } } });
    expect(revisionOf(next.body)).toBeGreaterThan(revisionOf(before.body));
  });

  test('addresses and node ports in use are not given again', async () => {
    const ranges = { serviceClusterIpRange: '10.9.0.0/29', serviceNodePortRange: '30000-30001' };
    const first = await start(ranges);
    const spec = { type: 'NodePort', clusterIP: '10.9.0.5', ports: [{ port: 80, nodePort: 30001 }] };
    await call(first.client, 'POST', services, { body: { metadata: { name: 'a' }, spec } });
    await stop();
    const { client } = await start(ranges);
    const again = await call(client, 'POST', services, {
      body: { metadata: { name: 'b' }, spec: { ...spec, ports: [{ port: 80 }] } },
    });
    expect(again.body['message']).toContain('provided IP is already allocated');
    const port = await call(client, 'POST', services, {
      body: { metadata: { name: 'c' }, spec: { type: 'NodePort', ports: spec.ports } },
    });
    expect(port.body['message']).toContain('provided port is already allocated');
    const free = await call(client, 'POST', services, {
      body: { metadata: { name: 'd' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } },
    });
    expect(recordAt(listAt(free.body, 'spec', 'ports')[0])['nodePort']).toBe(30000);
  });

  test('a health check port without node ports, and an IPv6 address, are still taken', async () => {
    const ranges = { serviceClusterIpRange: 'fd00::/120', serviceNodePortRange: '30000-30001' };
    const first = await start(ranges);
    const spec = {
      ...{ type: 'LoadBalancer', externalTrafficPolicy: 'Local', allocateLoadBalancerNodePorts: false },
      ...{ clusterIP: 'fd00::5', healthCheckNodePort: 30001, ports: [{ port: 80 }] },
    };
    const made = await call(first.client, 'POST', services, { body: { metadata: { name: 'a' }, spec } });
    expect(made.status).toBe(201);
    await stop();
    const { client } = await start(ranges);
    const port = await call(client, 'POST', services, {
      body: { metadata: { name: 'b' }, spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30001 }] } },
    });
    expect(port.body['message']).toContain('provided port is already allocated');
    const address = await call(client, 'POST', services, {
      body: { metadata: { name: 'c' }, spec: { clusterIP: 'fd00::5', ports: [{ port: 80 }] } },
    });
    expect(address.body['message']).toContain('provided IP is already allocated');
  });

  test('custom resources are served from the start', async () => {
    const first = await start();
    await call(first.client, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: definition,
    });
    const widgets = '/apis/example.com/v1/namespaces/default/widgets';
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' }, spec: {} };
    await untilFound(first.client, widgets);
    const made = await call(first.client, 'POST', widgets, { body: widget });
    expect(made.status).toBe(201);
    await stop();
    const { client } = await start();
    expect((await call(client, 'GET', `${widgets}/w`)).body).toEqual(made.body);
    await call(
      client,
      'DELETE',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com',
    );
    await stop();
    await start();
  });

  test('a watch goes on where it stopped', async () => {
    const first = await start();
    const made = await call(first.client, 'POST', configMaps, { body: { metadata: { name: 'a' } } });
    await call(first.client, 'PUT', `${configMaps}/a`, {
      body: { metadata: { name: 'a' }, data: { x: '1' } },
    });
    await call(first.client, 'DELETE', `${configMaps}/a`);
    await stop();
    const { client } = await start();
    const events = await watchEvents(
      client,
      configMaps,
      { resourceVersion: textAt(made.body, 'metadata', 'resourceVersion') },
      2,
    );
    expect(events.map((event) => [event['type'], textAt(event, 'object', 'data', 'x')])).toEqual([
      ['MODIFIED', '1'],
      ['DELETED', '1'],
    ]);
  });

  test('the Endpoints of the server say where it is now', async () => {
    const first = await start();
    await stop();
    // Another process has the port now.
    const other = net.createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
    await once(other, 'listening');
    const second = await start();
    other.close();
    const port = Number(new URL(second.url).port);
    expect(second.url).not.toBe(first.url);
    const endpoints = await call(second.client, 'GET', '/api/v1/namespaces/default/endpoints/kubernetes');
    expect(listAt(listAt(endpoints.body, 'subsets')[0], 'ports')).toEqual([
      { name: 'https', port, protocol: 'TCP' },
    ]);
    const service = await call(second.client, 'GET', `${services}/kubernetes`);
    expect(recordAt(listAt(service.body, 'spec', 'ports')[0])['targetPort']).toBe(port);
  });
});

test.each(['AlwaysAllow', 'RBAC'] as const)(
  'a restart at the same address writes nothing (%s)',
  async (authorizationMode) => {
    const first = await start({ authorizationMode });
    const before = await call(first.client, 'GET', services);
    await stop();
    const { client } = await start({ authorizationMode, port: Number(new URL(first.url).port) });
    expect(revisionOf((await call(client, 'GET', services)).body)).toBe(revisionOf(before.body));
  },
);

test('a second server on the directory is refused', async () => {
  await start();
  await expect(startApiServer({ dataDirectory: directory })).rejects.toThrow(StorageLockedError);
});

test('a damaged log refuses the start, and names the file', async () => {
  await start();
  await stop();
  const log = path.join(directory, 'log-0000000001');
  const bytes = fs.readFileSync(log);
  bytes.writeUInt8(bytes.readUInt8(200) ^ 0xff, 200);
  fs.writeFileSync(log, bytes);
  await expect(start()).rejects.toThrow(DamagedStorageError);
  await expect(start()).rejects.toThrow(log);
});

test('a damaged identity refuses the start, and names the file', async () => {
  await start();
  await stop();
  fs.writeFileSync(path.join(directory, 'identity.json'), '{}');
  await expect(start()).rejects.toThrow('identity.json does not hold the keys of a server');
});

test('an identity in which any bit has flipped refuses the start, and names the file and what to do', () => {
  fs.mkdirSync(directory);
  const now = new Date();
  const made = loadIdentity(directory, now);
  expect(loadIdentity(directory, now).adminToken).toBe(made.adminToken);
  const file = path.join(directory, 'identity.json');
  const bytes = fs.readFileSync(file);
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << (at % 8)), at);
    fs.writeFileSync(file, damaged);
    expect(() => loadIdentity(directory, now), `byte ${at}`).toThrow(
      `${file} does not hold the keys of a server, or not as they were written. Restore it from a backup, or remove it`,
    );
  }
  // One without a checksum, as earlier versions wrote it, is checked by its keys.
  const { checksum: _checksum, ...members } = recordAt(JSON.parse(bytes.toString()));
  fs.writeFileSync(file, JSON.stringify(members));
  expect(loadIdentity(directory, now).adminToken).toBe(made.adminToken);
  const other = createIdentity(now).authority.certificate;
  fs.writeFileSync(file, JSON.stringify({ ...members, caCertificate: other }));
  expect(() => loadIdentity(directory, now)).toThrow(file);
});

test.each([
  ['removed', (log: string) => fs.rmSync(log)],
  ['emptied', (log: string) => fs.truncateSync(log)],
  ['zeroed', (log: string) => fs.writeFileSync(log, Buffer.alloc(fs.statSync(log).size))],
])('a log that was %s refuses the start, and is not replaced by an empty one', async (_, harm) => {
  await start();
  await stop();
  harm(path.join(directory, 'log-0000000001'));
  const files = (): [string, number][] =>
    fs.readdirSync(directory).map((name) => [name, fs.statSync(path.join(directory, name)).size]);
  const before = files();
  await expect(start()).rejects.toThrow(
    /Nothing was changed\. Restore .* from a backup, or move .* to start empty/,
  );
  await expect(start()).rejects.toThrow(directory);
  expect(files()).toEqual(before);
});

test('a lock file with a content of its own refuses the start, and names the file', async () => {
  fs.mkdirSync(directory);
  fs.writeFileSync(path.join(directory, 'lock'), 'garbage'.repeat(100));
  await expect(start()).rejects.toThrow(
    `${path.join(directory, 'lock')} is not the lock of a data directory.`,
  );
});

test('a start on a full disk is refused, says what to do, and loses nothing', async ({ skip }) => {
  fs.mkdirSync(directory);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory]).status !== 0) {
    skip('only root can mount a small disk');
  }
  try {
    await start();
    await stop();
    const filler = path.join(directory, 'filler');
    expect(() => fs.writeFileSync(filler, Buffer.alloc(2 ** 20))).toThrow('ENOSPC');
    await expect(start()).rejects.toThrow(
      `cannot keep the store in ${directory}: the disk is full: make room and start again`,
    );
    fs.rmSync(filler);
    await start();
  } finally {
    await stop();
    spawnSync('umount', [directory]);
  }
});

test('on a full disk writes are answered with 500 and reads go on', async ({ skip }) => {
  fs.mkdirSync(directory);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory]).status !== 0) {
    skip('only root can mount a small disk');
  }
  try {
    const { client } = await start();
    const data = { x: 'x'.repeat(100_000) };
    let made = 0;
    let refused = await call(client, 'POST', configMaps, { body: { metadata: { name: `c${made}` }, data } });
    for (; refused.status === 201 && made < 20;) {
      refused = await call(client, 'POST', configMaps, { body: { metadata: { name: `c${++made}` }, data } });
    }
    expect(refused.status).toBe(500);
    expect(refused.body['message']).toBe('Internal error occurred: the disk is full, nothing was stored');
    expect(listAt((await call(client, 'GET', configMaps)).body, 'items').length).toBe(made);
    expect((await call(client, 'GET', `${configMaps}/c${made}`)).status).toBe(404);
    // A refused Service gives its address back.
    const service = {
      body: { metadata: { name: 's' }, spec: { clusterIP: '10.96.0.50', ports: [{ port: 80 }] } },
    };
    const annotated = { body: { ...service.body, metadata: { name: 's', annotations: data } } };
    expect((await call(client, 'POST', services, annotated)).status).toBe(500);
    expect(spawnSync('mount', ['-o', 'remount,size=4m', directory]).status).toBe(0);
    expect((await call(client, 'POST', services, service)).status).toBe(201);
    await stop();
  } finally {
    await stop();
    spawnSync('umount', [directory]);
  }
});

function revisionOf(object: unknown): number {
  return Number(textAt(object, 'metadata', 'resourceVersion'));
}

test('a binding that RBAC starts with is made again at a start when it was bound to another role', async () => {
  const options = { authorizationMode: 'RBAC' } as const;
  const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
  const roleRef = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name });
  const first = await start(options);
  await call(first.client, 'DELETE', `${bindings}/system:basic-user`);
  const metadata = { name: 'system:basic-user' };
  const other = await call(first.client, 'POST', bindings, { body: { metadata, roleRef: roleRef('view') } });
  expect(other.status).toBe(201);
  await stop();
  const second = await start(options);
  const { body } = await call(second.client, 'GET', `${bindings}/system:basic-user`);
  expect(body).toMatchObject({
    roleRef: roleRef('system:basic-user'),
    subjects: [{ name: 'system:authenticated' }],
  });
});

test('roles that RBAC starts with are given back at a start what they have lost', async () => {
  const options = { authorizationMode: 'RBAC' } as const;
  const view = '/apis/rbac.authorization.k8s.io/v1/clusterroles/system:discovery';
  const first = await start(options);
  const { body: whole } = await call(first.client, 'GET', view);
  const emptied = await call(first.client, 'PUT', view, { body: { ...whole, rules: [] } });
  expect(emptied.status).toBe(200);
  await stop();
  const second = await start(options);
  const { body: restored } = await call(second.client, 'GET', view);
  expect(listAt(restored, 'rules').length).toBeGreaterThan(0);
});
