import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/client/clock.ts';
import { UserspaceProxy } from '../../../src/node/userspace-proxy.ts';
import { missingFor } from '../support/gate.ts';
import {
  clusterIPs,
  externalIPs,
  families,
  ServiceNetwork,
  terminating,
  unready,
} from '../support/service-network.ts';

const missing = missingFor('user');
const [webIPs, otherIPs] = clusterIPs;
const nodePort = 30_080;
const udp = { port: 80, targetPort: 8080, protocol: 'UDP' };

/** What the nftables tests ask, as far as a process can do it. */
describe.skipIf(missing !== '')(`Services in userspace${missing && ` (missing: ${missing})`}`, () => {
  let cluster: ServiceNetwork;

  beforeAll(async () => {
    cluster = await ServiceNetwork.start(
      'user',
      { 'node-1': ['client', 'a-1'], 'node-2': ['b-2'] },
      {},
      (host) =>
        new UserspaceProxy({ host, clock: systemClock, random: Math.random, log: pino({ enabled: false }) }),
    );
  });
  afterAll(() => cluster.close());

  it.for(families)('should serve a basic endpoint from pods (%s)', async (family) => {
    await cluster.apply({ backends: ['a-1', 'b-2'] });
    for (const from of ['client', 'node-1', 'outside', 'b-2']) {
      expect(await cluster.answering(from, webIPs[family]), from).toEqual(['a-1', 'b-2']);
    }
  });

  it.for(families)(
    'shows endpoints the node as their client, which is the proxy (D18, %s)',
    async (family) => {
      await cluster.apply({ backends: ['b-2'] });
      const answer = await cluster.ask('client', webIPs[family]);
      expect(answer).toMatchObject({ name: 'b-2', client: cluster.addresses('node-1')[family] });
    },
  );

  it.for(families)('should serve endpoints on same port and different protocols (%s)', async (family) => {
    const ports = [
      { name: 'tcp', port: 80, targetPort: 8080 },
      { ...udp, name: 'udp' },
    ];
    await cluster.apply({ spec: { ports }, backends: ['a-1'] });
    expect(await cluster.answering('client', webIPs[family], { times: 5 })).toEqual(['a-1']);
    expect(await cluster.answering('client', webIPs[family], { times: 5, protocol: 'UDP' })).toEqual(['a-1']);
  });

  it.for(families)(
    'should be rejected when no endpoints exist, on ports that are none, and after its end (%s)',
    async (family) => {
      await cluster.apply({ backends: [unready('a-1')] }, { name: 'other', backends: ['b-2'] });
      expect(await cluster.ask('client', webIPs[family])).toBe('refused');
      expect(await cluster.ask('client', otherIPs[family], 81)).toBe('refused');
      expect(await cluster.answering('client', otherIPs[family])).toEqual(['b-2']);
      await cluster.apply({ backends: ['a-1'] });
      expect(await cluster.answering('client', webIPs[family])).toEqual(['a-1']);
    },
  );

  it('should be able to create a functioning NodePort service, and external IPs', async () => {
    const ports = [{ port: 80, targetPort: 8080, nodePort }];
    const spec = { type: 'NodePort', ports, externalIPs: [externalIPs.IPv4] };
    await cluster.apply({ spec, backends: ['a-1', 'b-2'] });
    expect(await cluster.answering('outside', cluster.addresses('node-1').IPv4, { port: nodePort })).toEqual([
      'a-1',
      'b-2',
    ]);
    expect(await cluster.answering('outside', cluster.addresses('node-2').IPv6, { port: nodePort })).toEqual([
      'a-1',
      'b-2',
    ]);
    expect(await cluster.answering('outside', externalIPs.IPv4)).toEqual(['a-1', 'b-2']);
  });

  it('should have session affinity work, and should fall back to terminating endpoints', async () => {
    const spec = { sessionAffinity: 'ClientIP' };
    await cluster.apply({ name: 'kept', spec, backends: ['a-1', 'b-2'] });
    const [first = ''] = await cluster.answering('client', webIPs.IPv4);
    const other = first === 'a-1' ? 'b-2' : 'a-1';
    await cluster.apply({ name: 'kept', spec, backends: [unready(first), other] });
    expect(await cluster.answering('client', webIPs.IPv4)).toEqual([other]);
    await cluster.apply({ name: 'kept', spec, backends: [terminating(first), unready(other)] });
    expect(await cluster.answering('client', webIPs.IPv4)).toEqual([first]);
  });

  it('should be able to preserve UDP traffic when server pod cycles', async () => {
    const ask = async (): Promise<unknown> =>
      cluster.ask('client', webIPs.IPv4, 80, { protocol: 'UDP', fromPort: 4000 });
    await cluster.apply({ spec: { ports: [udp] }, backends: ['a-1'] });
    expect(await ask()).toMatchObject({ name: 'a-1' });
    await cluster.apply({ spec: { ports: [udp] }, backends: ['b-2'] });
    expect(await ask()).toMatchObject({ name: 'b-2' });
  });

  describe('a connection', () => {
    /** Connects a Pod with a server in another one, through a cluster IP. */
    async function connected(): Promise<{ client: Socket; server: Socket; close: () => void }> {
      await cluster.apply({ spec: { ports: [{ port: 80, targetPort: 9000 }] }, backends: ['b-2'] });
      const accepting = createServer({ allowHalfOpen: true });
      await cluster.network.at('b-2').machine.host.listen(accepting, '0.0.0.0', 9000);
      const accepted: Promise<unknown[]> = once(accepting, 'connection');
      const client = await cluster.network.at('client').machine.host.connect(webIPs.IPv4, 80);
      client.allowHalfOpen = true;
      const server = (await accepted).find((value): value is Socket => value !== undefined);
      if (server === undefined) throw new Error('no connection came');
      for (const socket of [client, server]) socket.on('error', () => undefined);
      return { client, server, close: () => void accepting.close() };
    }

    it('passes the end of one direction through, and goes on in the other', async () => {
      const { client, server, close } = await connected();
      const ended = once(server, 'end');
      server.resume();
      client.end('question');
      await ended;
      const answer: Promise<unknown[]> = once(client, 'data');
      server.end('answer');
      expect(String((await answer)[0])).toBe('answer');
      close();
    });

    it.for(['client', 'server'] as const)('that the %s resets is reset on the other side', async (side) => {
      const { client, server, close } = await connected();
      const [from, to] = side === 'client' ? [client, server] : [server, client];
      const failed: Promise<unknown[]> = once(to, 'error').catch((error: unknown) => [error]);
      to.resume();
      from.resetAndDestroy();
      expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' });
      close();
    });

    it('that is open goes on when its Service is gone', async () => {
      const { client, server, close } = await connected();
      await cluster.apply();
      const heard: Promise<unknown[]> = once(server, 'data');
      client.write('still there');
      expect(String((await heard)[0])).toBe('still there');
      client.destroy();
      close();
    });
  });
});
