import { afterAll, beforeAll, expect, test } from 'vitest';
import { Clients } from '../../src/client/resource-client.ts';
import {
  endpointSlices,
  gatewayClasses,
  gateways,
  httpRoutes,
  services,
} from '../../src/client/resources.ts';
import { gatewayController } from '../../src/network/gateway/plan.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import type { Gateway, HTTPRoute } from '../../src/objects/types/gateway.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { startRouter, writeGateways } from '../support/router/router.ts';

const group = 'gateway.networking.k8s.io/v1';
const namespace = 'default';
const routerService = 'default/routers';

let api: TestServer;
let clients: Clients;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  api = await startApiServer({ controllers: [], nodes: 0, gatewayApi: 'standard' });
  closing.push(() => api.stop());
  clients = new Clients(api.client);
  const router = await startRouter(api.client, { gateways: true });
  closing.push(() => router.stop());
  closing.push(writeGateways(api.client, router, routerService));
  await clients.for(gatewayClasses).create({
    ...{ apiVersion: group, kind: 'GatewayClass', metadata: { name: 'ours' } },
    spec: { controllerName: gatewayController },
  });
  await clients.for(endpointSlices).create({
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { name: 'routers-1', namespace, labels: { 'kubernetes.io/service-name': 'routers' } },
    endpoints: [
      { addresses: ['10.0.0.7'], conditions: { ready: true } },
      { addresses: ['10.0.0.8'], conditions: { ready: false } },
    ],
  });
  await clients.for(gateways).create(gatewayOf('web'));
});

afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

function gatewayOf(name: string): Gateway {
  return {
    ...{ apiVersion: group, kind: 'Gateway', metadata: { name, namespace } },
    spec: { gatewayClassName: 'ours', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  };
}

function routeOf(name: string): HTTPRoute {
  return {
    ...{ apiVersion: group, kind: 'HTTPRoute', metadata: { name, namespace } },
    spec: { parentRefs: [{ name: 'web' }], rules: [{ backendRefs: [{ name, port: 80 }] }] },
  };
}

const serviceOf = (name: string): Pick<Service, 'apiVersion' | 'kind' | 'metadata' | 'spec'> => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace } },
  spec: { ports: [{ port: 80 }] },
});

/** Resolves when a condition holds. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  await expect.poll(holds, { timeout: 60_000, message: what }).toBe(true);
}

/** The status of a condition of the Gateway. */
async function conditionOf(type: string): Promise<string | undefined> {
  const { status } = await clients.for(gateways).get(namespace, 'web');
  return status?.conditions?.find((one) => one.type === type)?.status;
}

test('the class is accepted, and says what is claimed', async () => {
  await until('the class has a status', async () => {
    const { status } = await clients.for(gatewayClasses).get('', 'ours');
    return (status?.supportedFeatures ?? []).length > 0;
  });
  const { status } = await clients.for(gatewayClasses).get('', 'ours');
  expect(status?.conditions?.map(({ type, status: word }) => `${type} ${word}`)).toEqual([
    'Accepted True',
    'SupportedVersion True',
  ]);
});

test('a Gateway gets a Service that leads to the routers that are ready, and is programmed with its address', async () => {
  await until('the slice of the Gateway', async () => {
    const { items } = await clients.for(endpointSlices).list({ namespace });
    return items.some(({ metadata }) => metadata.name === 'web-ours-ipv4');
  });
  const slice = await clients.for(endpointSlices).get(namespace, 'web-ours-ipv4');
  expect(slice.endpoints?.flatMap(({ addresses }) => addresses)).toEqual(['10.0.0.7']);
  const service = await clients.for(services).get(namespace, 'web-ours');
  expect(service.spec.ports?.map(({ port, targetPort }) => [port, targetPort])).toEqual([
    [80, slice.ports?.[0]?.port],
  ]);
  expect(await conditionOf('Programmed')).toBe('False');
  await clients
    .for(services)
    .replaceStatus({ ...service, status: { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } } });
  await until('the Gateway is programmed', async () => (await conditionOf('Programmed')) === 'True');
  const { status } = await clients.for(gateways).get(namespace, 'web');
  expect(status?.addresses).toEqual([{ type: 'IPAddress', value: '192.0.2.9' }]);
});

test('a slice that somebody deletes comes back', async () => {
  await clients.for(endpointSlices).delete(namespace, 'web-ours-ipv4');
  await until('the slice is there', async () => {
    const { items } = await clients.for(endpointSlices).list({ namespace });
    return items.some(({ metadata }) => metadata.name === 'web-ours-ipv4');
  });
});

// What is planned again while the write before is not in the cache yet is refused with 409.
test('Services that come right behind their Routes resolve the references of all', async () => {
  const names = Array.from({ length: 30 }, (_, n) => `site-${n}`);
  await Promise.all(
    names.map(async (name) => {
      await clients.for(httpRoutes).create(routeOf(name));
      await clients.for(services).create(serviceOf(name));
    }),
  );
  const unresolved = async (): Promise<string[]> => {
    const { items } = await clients.for(httpRoutes).list({ namespace });
    return items.flatMap(({ metadata, status }) => {
      const [parent] = status?.parents ?? [];
      const resolved = parent?.conditions.find(({ type }) => type === 'ResolvedRefs');
      return resolved?.status === 'True' ? [] : (metadata.name ?? '');
    });
  };
  await until('all references are resolved', async () => (await unresolved()).length === 0);
  await until('all Routes are counted', async () => {
    const { status } = await clients.for(gateways).get(namespace, 'web');
    return status?.listeners?.[0]?.attachedRoutes === names.length;
  });
});

test('two Gateways that are made at once do not share a port of the routers', async () => {
  const names = Array.from({ length: 10 }, (_, n) => `gate-${n}`);
  await Promise.all(names.map((name) => clients.for(gateways).create(gatewayOf(name))));
  const made = async (): Promise<Service[]> => {
    const { items } = await clients.for(services).list({ namespace });
    return items.filter(({ metadata }) => metadata.name?.startsWith('gate-') === true);
  };
  await until('all have a Service', async () => (await made()).length === names.length);
  const ports = (await made()).flatMap(({ spec }) => (spec.ports ?? []).map(({ targetPort }) => targetPort));
  expect(new Set(ports).size).toBe(names.length);
});
