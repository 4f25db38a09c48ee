import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { BGPSpeaker } from '../../../src/node/announce/bgp.ts';
import { Bird, birdRoutes } from '../support/bird.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { type Located, startNetwork, type TestNetwork } from '../support/network.ts';
import { manyRoutes, peerAt, routesTo, speakerAt, SpeakerProcess } from '../support/speaker.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const missing = [missingFor('user'), missingProgram('bird', 'bird2')]
  .filter((what) => what !== '')
  .join(', ');

/** A template of BIRD for the nodes: sessions over IPv4 for both families. */
const nodes = (options = ''): string => `
protocol bgp node1 { local as 64513; neighbor 192.0.2.11 as 64512; ${options}
  ipv4 { import all; export none; }; ipv6 { import all; export none; }; }
protocol bgp node2 { local as 64513; neighbor 192.0.2.12 as 64512; ${options}
  ipv4 { import all; export none; }; ipv6 { import all; export none; }; }`;

describe.skipIf(missing !== '')(`BGP with BIRD${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let network: TestNetwork;
  let router: Located;
  let node: Located;
  let speakers: BGPSpeaker[] = [];
  let bird: Bird | undefined;

  beforeAll(async () => {
    network = await startNetwork('user', { 'node-1': [], 'node-2': [] });
    router = network.outside;
    node = network.at('node-1');
  });
  afterEach(async () => {
    for (const speaker of speakers) speaker.sync([]);
    await Promise.all(speakers.map((speaker) => speaker.close('the test is over')));
    speakers = [];
    await bird?.stop();
    bird = undefined;
  });
  afterAll(() => network.close());

  const speak = (at = node): BGPSpeaker => {
    const speaker = speakerAt(at.machine.host);
    speakers.push(speaker);
    return speaker;
  };
  const routes = (family: 4 | 6 = 4): Promise<Record<string, readonly string[]>> =>
    birdRoutes(router, family).then((found) => Object.fromEntries(found));

  it('brings routes of both families into the kernel of the router, and withdraws them', async () => {
    bird = await Bird.start(router, nodes());
    const speaker = speak();
    const peer = peerAt(router, node);
    speaker.sync([{ peer, routes: routesTo(['203.0.113.1/32', '203.0.113.16/28', '2001:db8:1::1/128']) }]);
    await expect
      .poll(() => routes())
      .toEqual({ '203.0.113.1': ['192.0.2.11'], '203.0.113.16/28': ['192.0.2.11'] });
    await expect.poll(() => routes(6)).toEqual({ '2001:db8:1::1': ['2001:db8::b'] });
    expect(speaker.statuses).toMatchObject([{ state: 'established', reason: 'Established', advertised: 3 }]);
    speaker.sync([{ peer, routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
    await expect.poll(() => routes(6)).toEqual({});
  });

  it('reaches a router with TTL security by a route with a hop limit of 255, and not without it', async () => {
    bird = await Bird.start(router, nodes('ttl security on; error wait time 1, 10;'));
    const to = [router.addresses.IPv4, 'dev', 'eth0'];
    const speaker = speak();
    speaker.sync([{ peer: peerAt(router, node), routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => speaker.statuses).toMatchObject([{ reason: 'ConnectionClosed' }]);
    await node.machine.host.exec('ip', ['route', 'replace', ...to, 'hoplimit', '255']);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
    await node.machine.host.exec('ip', ['route', 'del', ...to]);
  });

  it('brings 10,000 routes into the kernel of the router within a second', async () => {
    bird = await Bird.start(router, nodes());
    const many = routesTo(manyRoutes(10_000));
    const sinceSync = new Stopwatch();
    speak().sync([{ peer: peerAt(router, node), routes: many }]);
    // Counted where they are: reading them all takes a part of the time.
    const count = ['-c', 'ip route show proto bird | wc -l'];
    const counted = async (): Promise<string> => (await router.machine.host.exec('sh', count)).stdout.trim();
    await expect.poll(counted).toBe('10000');
    expect(sinceSync.elapsedMs()).toBeLessThan(1000);
  });

  it('lets the router go at once at a drain, tells its operator why, and is taken back', async () => {
    bird = await Bird.start(router, nodes());
    const speaker = speak();
    const peer = peerAt(router, node, { restartSeconds: 30 });
    speaker.sync([{ peer, routes: routesTo(manyRoutes(100)) }]);
    await expect.poll(async () => (await birdRoutes(router)).size).toBe(100);
    const sinceDrain = new Stopwatch();
    speaker.sync([{ peer, routes: new Map() }]);
    await speaker.close('node-1 is drained');
    await expect.poll(() => routes()).toEqual({});
    expect(sinceDrain.elapsedMs()).toBeLessThan(500);
    const said = await bird.birdc('show protocols all node1');
    expect(said).toContain('Received: Administrative shutdown');
    expect(said).toContain('node-1 is drained');
    speak().sync([{ peer, routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
  });

  // DESIGN.md: an announced address moves within 4 s of a crash. BIRD 2.0 acts on a timer only when a message or a second
  // timer wakes it, within 3 s; the session of the other node does.
  it.each([0, 30])(
    'is given up within 4 s when its agent is stuck, restart time %d s',
    async (restartSeconds) => {
      bird = await Bird.start(router, nodes('hold time 3;'));
      const other = network.at('node-2');
      const shared = ['203.0.113.1/32'];
      const stuck = await SpeakerProcess.start(node, peerAt(router, node, { restartSeconds }), shared);
      speak(other).sync([{ peer: peerAt(router, other), routes: routesTo(shared) }]);
      await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11', '192.0.2.12'] });
      const sinceStop = new Stopwatch();
      await stuck.kill('STOP');
      await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.12'] });
      const took = sinceStop.elapsedMs();
      await stuck.kill('KILL');
      expect(took).toBeLessThan(4000);
    },
  );

  it('loses its routes at once when it is killed, without graceful restart', async () => {
    bird = await Bird.start(router, nodes());
    const speaker = await SpeakerProcess.start(node, peerAt(router, node), ['203.0.113.1/32']);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
    const sinceKill = new Stopwatch();
    await speaker.kill('KILL');
    await expect.poll(() => routes()).toEqual({});
    expect(sinceKill.elapsedMs()).toBeLessThan(1000);
  });

  it('keeps its routes over a restart with graceful restart, and loses those that are no more', async () => {
    bird = await Bird.start(router, nodes());
    const peer = peerAt(router, node, { restartSeconds: 30 });
    const killed = await SpeakerProcess.start(node, peer, ['203.0.113.1/32', '203.0.113.2/32']);
    await expect.poll(async () => (await birdRoutes(router)).size).toBe(2);
    const seen: boolean[] = [];
    const watching = new AbortController();
    const watch = (async () => {
      while (!watching.signal.aborted) seen.push((await birdRoutes(router)).has('203.0.113.1'));
    })();
    await killed.kill('KILL');
    await expect.poll(() => bird?.birdc('show protocols node1')).not.toContain('Established');
    const next = speak();
    next.sync([{ peer, routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
    // An orderly restart is the same.
    await next.close('');
    speak().sync([{ peer, routes: routesTo(['203.0.113.1/32']) }]);
    await expect.poll(() => bird?.birdc('show protocols node1')).toContain('Established');
    watching.abort();
    await watch;
    expect(seen).not.toContain(false);
  });

  it('shares an address with other nodes (ECMP)', async () => {
    bird = await Bird.start(router, nodes());
    const other = network.at('node-2');
    const shared = routesTo(['203.0.113.1/32', '2001:db8:1::1/128']);
    speak().sync([{ peer: peerAt(router, node), routes: shared }]);
    speak(other).sync([{ peer: peerAt(router, other), routes: shared }]);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11', '192.0.2.12'] });
    await expect.poll(() => routes(6)).toEqual({ '2001:db8:1::1': ['2001:db8::b', '2001:db8::c'] });
    speakers[1]?.sync([{ peer: peerAt(router, other), routes: new Map() }]);
    await expect.poll(() => routes()).toEqual({ '203.0.113.1': ['192.0.2.11'] });
  });

  it('sends its routes again when the router asks', async () => {
    bird = await Bird.start(router, nodes());
    speak().sync([{ peer: peerAt(router, node), routes: routesTo(manyRoutes(20)) }]);
    const updates = async (): Promise<number> => {
      const said = (await bird?.birdc('show protocols all node1')) ?? '';
      return Number(/Import updates: +(\d+)/.exec(said)?.[1]);
    };
    await expect.poll(updates).toBe(20);
    await bird.birdc('reload in node1');
    await expect.poll(updates).toBe(40);
  });

  it('marks routes with communities, and with a preference within its AS', async () => {
    bird = await Bird.start(router, nodes().replaceAll('local as 64513', 'local as 64512'));
    const attributes = {
      communities: [64512 * 65536 + 100],
      largeCommunities: [[64512, 1, 4_000_000_000]] as const,
    };
    const peer = peerAt(router, node, { peerAs: 64512 });
    speak().sync([{ peer, routes: routesTo(['203.0.113.1/32'], { ...attributes, localPref: 200 }) }]);
    await expect.poll(() => bird?.birdc('show route all')).toContain('203.0.113.1/32');
    const said = await bird.birdc('show route all');
    expect(said).toMatch(/BGP.local_pref: 200\n/);
    expect(said).toMatch(/BGP.community: \(64512,100\)\n/);
    expect(said).toMatch(/BGP.large_community: \(64512, 1, 4000000000\)\n/);
  });
});
