import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { Clients } from '../../src/client/resource-client.ts';
import { isNotFound } from '../../src/client/errors.ts';
import { ipAddresses, services } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { nodePortRange } from '../../src/flags/shared.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import { at } from '../../src/objects/json.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { overtaken, type Request } from '../support/overtaken.ts';

const ports = '30000-30039';
const ending: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function startServer(): Promise<TestServer> {
  const server = await startApiServer({ allocation: 'controller', serviceNodePortRange: ports });
  ending.push(() => server.stop());
  return server;
}

function allocate(transport: Transport): void {
  const options = { transport, allocation: 'controller', nodePorts: nodePortRange(ports) } as const;
  const running = runControllers({
    transport,
    controllers: [serviceAllocationController(options)],
    log: pino({ enabled: false }),
  });
  ending.push(() => running.stop());
}

/** Creates a Service and reads it until it has a node port, or the test times out. */
async function served(clients: Clients): Promise<Service> {
  const metadata = { namespace: 'default', name: 's' };
  await clients.for(services).create({ metadata, spec: { type: 'NodePort', ports: [{ port: 80 }] } });
  for (;;) {
    const service = await clients.for(services).get('default', 's');
    if ((service.spec.ports?.[0]?.nodePort ?? 0) > 0) return service;
  }
}

/** What comes first, and then nothing more until the end. */
async function* firstOf(
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk;
    if (!chunk.includes('"BOOKMARK"')) continue;
    await new Promise((resolve) => signal?.addEventListener('abort', resolve));
    return;
  }
}

async function isThere(clients: Clients, address: string): Promise<boolean> {
  try {
    await clients.for(ipAddresses).get('', address);
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

describe('service allocation, beside others who write the same objects', () => {
  it('allocates no address that another client has just taken', async () => {
    const { client } = await startServer();
    const clients = new Clients(client);
    let taken = '';
    const isMeant = ({ method, options }: Request): boolean => {
      if (method !== 'POST' || at(options.body, 'spec', 'parentRef', 'name') !== 's') return false;
      taken = String(at(options.body, 'metadata', 'name'));
      return true;
    };
    const parentRef = {
      group: 'gateway.networking.k8s.io',
      resource: 'gateways',
      namespace: 'default',
      name: 'g',
    };
    const late = overtaken(client, isMeant, () =>
      clients.for(ipAddresses).create({ metadata: { name: taken }, spec: { parentRef } }),
    );
    allocate(late);
    const { clusterIP = '' } = (await served(clients)).spec;
    const { spec } = await clients.for(ipAddresses).get('', clusterIP);
    expect(spec.parentRef).toMatchObject({ resource: 'services', namespace: 'default', name: 's' });
    expect(taken).not.toBe('');
  });

  it('releases no address that another client gave to a Service', async () => {
    const { client } = await startServer();
    const clients = new Clients(client);
    const deaf: Transport = {
      server: client.server,
      request: (method, path, options) => client.request(method, path, options),
      // It gets no events of later Services.
      stream: async (path, options) => {
        const stream = await client.stream(path, options);
        return path.endsWith('/services')
          ? { ...stream, chunks: firstOf(stream.chunks, options?.signal) }
          : stream;
      },
      close: () => Promise.resolve(),
    };
    const before = { namespace: 'default', name: 'before' };
    await clients.for(services).create({ metadata: before, spec: { ports: [{ port: 80 }] } });
    allocate(deaf);
    await expect
      .poll(async () => (await clients.for(services).get('default', 'before')).metadata.annotations, {
        timeout: 60_000,
      })
      .toHaveProperty('servicenet.dev/allocation-claim');

    const hold = (address: string, name: string) => {
      const labels = { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };
      const parentRef = { group: '', resource: 'services', namespace: 'default', name };
      return clients.for(ipAddresses).create({ metadata: { name: address, labels }, spec: { parentRef } });
    };
    const metadata = { namespace: 'default', name: 's' };
    const [address, leaked] = ['10.96.0.77', '10.96.0.78'];
    await clients.for(services).create({ metadata, spec: { clusterIP: address, ports: [{ port: 80 }] } });
    const { metadata: held } = await hold(address, 's');
    await hold(leaked, 'nobody');
    await expect.poll(() => isThere(clients, leaked), { timeout: 60_000 }).toBe(false);
    expect((await clients.for(ipAddresses).get('', address)).metadata.uid).toBe(held.uid);
  });
});
