import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { localHost } from '../../../../src/host/local-host.ts';
import type { Host } from '../../../../src/host/host.ts';
import type { PlannedPort } from '../../../../src/network/gateway/plan.ts';
import { TargetChoice } from '../../../../src/router/backends.ts';
import { UdpPort } from '../../../../src/router/gateway/streams.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { listener, serviceRule } from '../../network/gateway/routes.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A port with one backend that echoes, whose flows are counted by their open sockets. */
async function startPort() {
  const clock = new FakeClock();
  const backend = createSocket('udp4');
  backend.on('message', (message, { port, address }) => backend.send(message, port, address));
  backend.bind(0, '127.0.0.1');
  await once(backend, 'listening');
  const endpoints = [{ addresses: ['127.0.0.1'] }];
  const reader = {
    service: () => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: {}, status: {} },
      spec: { ports: [{ port: 80, protocol: 'UDP' }] },
    }),
    slices: () => [
      {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: {}, addressType: 'IPv4' },
        ...{ endpoints, ports: [{ port: backend.address().port, protocol: 'UDP' }] },
      },
    ],
  };
  const choice = new TargetChoice(reader, clock, () => 0.5);
  let open = 0;
  const host: Host = {
    ...localHost,
    datagram: async (address, port) => {
      const socket = await localHost.datagram(address, port);
      open++;
      socket.on('close', () => open--);
      return socket;
    },
  };
  const rule = serviceRule('dns', 'UDPRoute');
  const backends = [{ weight: 1, rule, requestHeaders: undefined }];
  const streams = [{ source: rule.source, hostname: '', backends }];
  const plan: PlannedPort = {
    ...{ port: 53, protocol: 'UDP' },
    listeners: [listener('', [], { protocol: 'UDP', streams })],
  };
  const problems: string[] = [];
  const port = new UdpPort({
    ...{ host, clock, choice, random: () => 0.5, plan: () => plan },
    problem: (reason) => problems.push(reason),
  });
  await port.bind('127.0.0.1', 0);
  const client = createSocket('udp4');
  client.bind(0, '127.0.0.1');
  await once(client, 'listening');
  closing.push(
    () => port.close(),
    () => backend.close(),
    () => client.close(),
  );
  const ask = async (): Promise<void> => {
    const answered = once(client, 'message');
    client.send('x', port.port, '127.0.0.1');
    await answered;
  };
  /** All but the one of the port. */
  return { clock, ask, endpoints, choice, problems, flows: () => open - 1 };
}

test('a flow ends when it was idle for a minute, not before', async () => {
  const { clock, ask, flows } = await startPort();
  await ask();
  expect(flows()).toBe(1);
  await clock.advance(50_000);
  await ask();
  await clock.advance(50_000);
  expect(flows()).toBe(1);
  await clock.advance(15_000);
  await vi.waitUntil(() => flows() === 0, 20_000);
  // The next datagram begins another.
  await ask();
  expect(flows()).toBe(1);
});

test('a flow whose endpoint has gone ends, and the next datagram is refused with the reason', async () => {
  const { clock, ask, endpoints, choice, flows, problems } = await startPort();
  await ask();
  endpoints.splice(0);
  choice.changed();
  await clock.advance(6000);
  await vi.waitUntil(() => flows() === 0, 20_000);
  void ask();
  await vi.waitUntil(() => problems.includes('NoEndpoints'), 20_000);
});
