import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Transport } from '../../src/client/transport.ts';
import { applyManifests, readManifests } from '../../src/commands/apply.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, numberAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { itemsOf, untilObject } from '../support/with-controllers.ts';

// What the header comment of each file in deploy/examples says.

let server: TestServer;
let client: Transport;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-examples-'));
  server = await startApiServer({
    nodes: 3,
    addressPools: ['192.0.2.0/24'],
    serviceClusterIpRange: '10.96.0.0/16,fd00:10:96::/112',
  });
  client = server.client;
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.stop();
});

function example(name: string): string {
  return fileURLToPath(new URL(`../../deploy/examples/${name}.yaml`, import.meta.url));
}

async function apply(name: string): Promise<void> {
  await applyManifests(client, await readManifests([example(name)]));
}

function service(namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/services/${name}`;
}

function ingressOf(object: JsonRecord): string {
  return textAt(listAt(object, 'status', 'loadBalancer', 'ingress')[0], 'ip');
}

/** Resolves with the EndpointSlices of a Service when they hold so many ready endpoints. */
async function readySlices(namespace: string, name: string, count: number): Promise<JsonRecord[]> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const own = (body: JsonRecord): JsonRecord[] =>
    itemsOf(body).filter(
      (slice) => recordAt(slice, 'metadata', 'labels')['kubernetes.io/service-name'] === name,
    );
  const ready = (slice: JsonRecord): unknown[] =>
    listAt(slice, 'endpoints').filter((endpoint) => recordAt(endpoint, 'conditions')['ready'] === true);
  return own(await untilObject(client, path, (body) => own(body).flatMap(ready).length === count));
}

describe('deploy/examples', () => {
  test('quickstart: a shop of three Services with ready endpoints', async () => {
    await apply('quickstart');
    const catalog = await readySlices('shop', 'catalog', 3);
    const zones = catalog.flatMap((slice) => listAt(slice, 'endpoints')).map((each) => textAt(each, 'zone'));
    expect(zones.sort()).toEqual(['zone-a', 'zone-b', 'zone-c']);
    await readySlices('shop', 'cart', 2);
    await readySlices('shop', 'storefront', 3);
    const cart = await untilObject(client, service('shop', 'cart'), () => true);
    expect(numberAt(listAt(cart, 'spec', 'ports')[0], 'nodePort')).toBeGreaterThanOrEqual(30000);
    const storefront = await untilObject(
      client,
      service('shop', 'storefront'),
      (body) => ingressOf(body) !== '',
    );
    expect(ingressOf(storefront)).toMatch(/^192\.0\.2\.\d+$/);
  });

  test('dual-stack: both families, one family, and what the cluster has', async () => {
    await apply('dual-stack');
    const families = async (name: string): Promise<unknown> =>
      recordAt(await untilObject(client, service('dual-stack', name), () => true), 'spec')['ipFamilies'];
    expect(await families('web')).toEqual(['IPv4', 'IPv6']);
    expect(await families('web-v6')).toEqual(['IPv6']);
    expect(await families('web-preferred')).toEqual(['IPv4', 'IPv6']);
    const both = await readySlices('dual-stack', 'web', 4);
    expect(both.map((slice) => textAt(slice, 'addressType')).sort()).toEqual(['IPv4', 'IPv6']);
    const [only, ...more] = await readySlices('dual-stack', 'web-v6', 2);
    expect(more).toEqual([]);
    expect(textAt(only, 'addressType')).toBe('IPv6');
  });

  test('headless-statefulset: names in the endpoints, and peers before they are ready', async () => {
    // One second may be over before a busy machine has looked: these Pods are not ready before the test says so.
    const text = readFileSync(example('headless-statefulset'), 'utf8');
    expect(text).toContain('servicenet.dev/ready-after: 1s');
    const file = join(folder, 'headless-statefulset.yaml');
    writeFileSync(file, text.replace('ready-after: 1s', 'ready-after: 1h'));
    await applyManifests(client, await readManifests([file]));
    const path = '/apis/discovery.k8s.io/v1/namespaces/database/endpointslices';
    const peers = (body: JsonRecord): unknown[] =>
      itemsOf(body)
        .filter((slice) => recordAt(slice, 'metadata', 'labels')['kubernetes.io/service-name'] === 'db-peers')
        .flatMap((slice) => listAt(slice, 'endpoints'));
    await untilObject(client, path, (body) => peers(body).some((each) => textAt(each, 'hostname') === ''));
    const [first] = itemsOf(await untilObject(client, '/api/v1/namespaces/database/pods', () => true));
    const conditions = listAt(first, 'status', 'conditions').map(
      (condition) => `${textAt(condition, 'type')}=${textAt(condition, 'status')}`,
    );
    expect(conditions).toContain('Ready=False');
    for (const name of ['db-0', 'db-1', 'db-2']) {
      const pod = `/api/v1/namespaces/database/pods/${name}`;
      await untilObject(client, pod, (_body, status) => status === 200);
      await client.request('PATCH', pod, {
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations: { 'servicenet.dev/ready-after': '1s' } } },
      });
    }
    const slices = await readySlices('database', 'db', 3);
    const hostnames = slices
      .flatMap((slice) => listAt(slice, 'endpoints'))
      .map((each) => textAt(each, 'hostname'));
    expect(hostnames.sort()).toEqual(['db-0', 'db-1', 'db-2']);
    const db = await untilObject(client, service('database', 'db'), () => true);
    expect(textAt(db, 'spec', 'clusterIP')).toBe('None');
  });

  test('shared-address: two Services on one address, and one that keeps to itself', async () => {
    await apply('shared-address');
    const addressOf = async (name: string): Promise<string> =>
      ingressOf(await untilObject(client, service('sharing', name), (body) => ingressOf(body) !== ''));
    const shared = await addressOf('dns-tcp');
    expect(await addressOf('dns-udp')).toBe(shared);
    expect(await addressOf('other')).not.toBe(shared);
  });

  test('traffic-policies: local, near, and on the own node', async () => {
    await apply('traffic-policies');
    const local = await untilObject(client, service('policies', 'local'), () => true);
    expect(numberAt(local, 'spec', 'healthCheckNodePort')).toBeGreaterThanOrEqual(30000);
    await readySlices('policies', 'near', 6);
    const path = '/apis/discovery.k8s.io/v1/namespaces/policies/endpointslices';
    const near = (body: JsonRecord): unknown[] =>
      itemsOf(body)
        .filter((slice) => recordAt(slice, 'metadata', 'labels')['kubernetes.io/service-name'] === 'near')
        .flatMap((slice) => listAt(slice, 'endpoints'));
    await untilObject(client, path, (body) =>
      near(body).every(
        (each) => textAt(listAt(each, 'hints', 'forZones')[0], 'name') === textAt(each, 'zone'),
      ),
    );
    const agents = await readySlices('policies', 'own-node', 3);
    const nodes = agents
      .flatMap((slice) => listAt(slice, 'endpoints'))
      .map((each) => textAt(each, 'nodeName'));
    expect(nodes.sort()).toEqual(['node-1', 'node-2', 'node-3']);
  });
});
