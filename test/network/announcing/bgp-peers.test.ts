import { createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encodeOpen, encodeUpdates, keepalive } from '../../../src/network/bgp/encode.ts';
import type { Peer } from '../../../src/network/bgp/route.ts';
import type { BGPSessionStatus } from '../../../src/node/announce/bgp-session.ts';
import type { BGPSpeaker } from '../../../src/node/announce/bgp.ts';
import { Bird } from '../support/bird.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { type Located, startNetwork, type TestNetwork } from '../support/network.ts';
import { manyRoutes, peerAt, routesTo, speakerAt } from '../support/speaker.ts';

const missing = [missingFor('user'), missingProgram('bird', 'bird2')]
  .filter((what) => what !== '')
  .join(', ');

/** What a router says that is configured for the session. */
const open = encodeOpen({
  ...{ type: 'open', as: 64513, holdSeconds: 90, routerId: '192.0.2.2' },
  capabilities: {
    families: ['IPv4', 'IPv6'],
    routeRefresh: true,
    fourByteAs: true,
    gracefulRestart: undefined,
  },
});
const refresh = Buffer.concat([Buffer.alloc(16, 0xff), Buffer.from('00170500010001', 'hex')]);
const routes = routesTo(['203.0.113.1/32', '2001:db8:1::1/128']);

describe.skipIf(missing !== '')(`BGP peers${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  let router: Located;
  let node: Located;
  let bird: Bird;
  let speaker: BGPSpeaker;

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [] });
    router = network.outside;
    node = network.at('node-1');
    // Other addresses of the machines, which are not on the LAN.
    await router.machine.host.exec('ip', ['address', 'add', '198.51.100.2/32', 'dev', 'lo']);
    await node.machine.host.exec('ip', ['address', 'add', '198.51.100.11/32', 'dev', 'lo']);
    await router.machine.host.exec('ip', ['route', 'add', '198.51.100.11/32', 'via', '192.0.2.11']);
    await node.machine.host.exec('ip', ['route', 'add', '198.51.100.2/32', 'via', '192.0.2.2']);
    bird = await Bird.start(
      router,
      `template bgp node { local as 64513; ipv4 { import all; export all; }; ipv6 { import all; export all; }; }
       protocol bgp good from node { neighbor 192.0.2.11 as 64512; }
       protocol bgp six from node { neighbor 2001:db8::b as 64512; }
       protocol bgp far from node {
         local 198.51.100.2 as 64513; neighbor 198.51.100.11 as 64512; multihop 2;
         ipv4 { import all; export none; gateway recursive; };
       }
       protocol static { ipv4; route 10.1.0.0/16 blackhole; route 10.2.0.0/16 blackhole; }`,
    );
  });
  afterEach(async () => {
    speaker.sync([]);
    await speaker.close('the test is over');
  });
  afterAll(() => network.close());

  const good = (): Peer => peerAt(router, node, { name: 'good' });
  const status = (peer: string): BGPSessionStatus | undefined =>
    speaker.statuses.find((each) => each.peer === peer);
  /** Opens a session with a peer, beside one that stays established all the time. */
  const speakTo = async (peer: Peer): Promise<void> => {
    speaker = speakerAt(node.machine.host);
    speaker.sync([{ peer: good(), routes }]);
    await expect.poll(() => status('good')?.reason).toBe('Established');
    const since = status('good')?.sinceMs;
    speaker.sync([
      { peer: good(), routes },
      { peer, routes },
    ]);
    expect(status('good')?.sinceMs).toBe(since);
  };
  /** A machine that listens where the node expects a router. */
  const serve = async (port: number, accept: (socket: Socket) => void): Promise<() => void> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      accept(socket);
    });
    await router.machine.host.listen(server, router.addresses.IPv4, port);
    return () => server.close();
  };
  const bad = (port: number): Peer => peerAt(router, node, { name: 'bad', port });

  it('over IPv6 take routes of both families', async () => {
    await speakTo(peerAt(router, node, { name: 'six', address: router.addresses.IPv6 }));
    await expect.poll(() => bird.birdc('show route protocol six all')).toContain('2001:db8:1::1/128');
    const said = await bird.birdc('show route protocol six all');
    expect(said).toContain('BGP.next_hop: 192.0.2.11');
    expect(said).toContain('BGP.next_hop: 2001:db8::b');
  });

  it('some hops away are spoken to from the source address', async () => {
    const far = { name: 'far', address: '198.51.100.2', sourceAddress: '198.51.100.11' };
    await speakTo(peerAt(router, node, far));
    await expect.poll(() => status('far')).toMatchObject({ reason: 'Established', warnings: ['NoNextHop'] });
    await expect
      .poll(() => bird.birdc('show route protocol far all'))
      .toContain('BGP.next_hop: 198.51.100.11');
  });

  it('announce routes, which are counted and ignored', async () => {
    await speakTo(bad(1));
    // Two networks of the router, which are not taken over.
    await expect.poll(() => status('good')).toMatchObject({ routesReceived: 2, ownRoutesReceived: 0 });
    const { stdout } = await node.machine.host.exec('ip', ['route', 'show', '10.1.0.0/16']);
    expect(stdout).toBe('');
  });

  it.each<[string, (socket: Socket) => void, string]>([
    ['close connections', (socket) => socket.destroy(), 'ConnectionClosed'],
    ['send garbage', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), 'InvalidMessage'],
    ['are of another AS', (socket) => socket.write(withAs(64999)), 'WrongPeerAS'],
    ['send routes before they open', (socket) => socket.write(keepalive), 'InvalidMessage'],
    [
      'refuse by a NOTIFICATION',
      (socket) => socket.write(Buffer.from(`${'ff'.repeat(16)}0015030205`, 'hex')),
      'NotificationReceived',
    ],
  ])('that %s have the reason in their status, and disturb no other', async (_, accept, reason) => {
    const close = await serve(1790, accept);
    await speakTo(bad(1790));
    await expect.poll(() => status('bad')).toMatchObject({ reason, advertised: 0 });
    expect(status('good')?.reason).toBe('Established');
    close();
  });

  it.each<[string, Partial<Peer>, string]>([
    ['where nothing listens', { port: 1 }, 'ConnectionRefused'],
    ['without a route', { address: '203.0.113.250' }, 'PeerUnreachable'],
    ['from an address that the node does not have', { sourceAddress: '192.0.2.99' }, 'NoSourceAddress'],
  ])('%s have the reason in their status', async (_, changed, reason) => {
    await node.machine.host.exec('ip', ['route', 'add', 'unreachable', '203.0.113.250/32']);
    await speakTo({ ...bad(179), ...changed });
    await expect.poll(() => status('bad')?.reason).toBe(reason);
    expect(status('good')?.reason).toBe('Established');
  });

  it('that announce our own routes back are counted, and nothing else happens', async () => {
    const close = await serve(1791, (socket) => {
      socket.write(Buffer.concat([open, keepalive]));
      socket.once('data', () => {
        const dialect = { localAs: 64513, isInternal: false, fourByteAs: true };
        const announced = [...routes.values()].map((route) => ({
          ...route,
          nextHop: route.prefix.family === 'IPv4' ? '192.0.2.2' : '2001:db8::2',
        }));
        // Once the session is established at the other end.
        setTimeout(() => {
          for (const bytes of encodeUpdates({ withdrawn: [], announced }, dialect)) socket.write(bytes);
        }, 100);
      });
    });
    await speakTo(bad(1791));
    await expect
      .poll(() => status('bad'))
      .toMatchObject({ reason: 'Established', routesReceived: 2, warnings: ['OwnRoutesReceived'] });
    close();
  });

  it('that only ask, and read nothing, cost no memory', async () => {
    const close = await serve(1792, (socket) => {
      socket.pause();
      socket.write(Buffer.concat([open, keepalive]));
      const asking = Buffer.concat(Array.from({ length: 1000 }, () => refresh));
      const ask = (): void => {
        while (!socket.destroyed && socket.write(asking)) continue;
      };
      socket.on('drain', ask);
      ask();
    });
    speaker = speakerAt(node.machine.host);
    speaker.sync([{ peer: bad(1792), routes: routesTo(manyRoutes(10_000)) }]);
    await expect.poll(() => status('bad')?.reason).toBe('Established');
    const before = process.memoryUsage.rss();
    await expect.poll(() => status('bad')?.reason).toBe('SendHoldTimerExpired');
    // The answers to all that was asked would be gigabytes. Both ends of the connection are in this process.
    expect(process.memoryUsage.rss() - before).toBeLessThan(400 * 2 ** 20);
    close();
  });

  it('that come later are found', async () => {
    await speakTo(bad(1793));
    await expect.poll(() => status('bad')?.reason).toBe('ConnectionRefused');
    const close = await serve(1793, (socket) => socket.write(Buffer.concat([open, keepalive])));
    await expect.poll(() => status('bad')?.reason).toBe('Established');
    close();
  });
});

function withAs(as: number): Uint8Array {
  return encodeOpen({
    ...{ type: 'open', as, holdSeconds: 90, routerId: '192.0.2.2' },
    capabilities: { families: ['IPv4'], routeRefresh: false, fourByteAs: true, gracefulRestart: undefined },
  });
}
