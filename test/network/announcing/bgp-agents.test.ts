import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { listAt, textAt } from '../../../src/objects/json.ts';
import { blockOf } from '../../support/pages.ts';
import { call } from '../../support/test-server.ts';
import { AnnouncingCluster } from '../support/announcing.ts';
import { Bird, birdRoutes } from '../support/bird.ts';
import { missingFor, missingProgram } from '../support/gate.ts';
import { endpointSlice } from '../support/objects.ts';
import { Stopwatch } from '../../support/reference-time.ts';

const missing = [missingFor('user'), missingProgram('bird', 'bird2')]
  .filter((what) => what !== '')
  .join(', ');

const whole = blockOf('docs/bgp.md', 'router id 192.0.2.1;');
const router = whole.slice(whole.indexOf('template'));

const address = '203.0.113.1';
const both = ['192.0.2.11', '192.0.2.12'];

describe.skipIf(missing !== '')(`agents with BGP${missing === '' ? '' : ` (missing: ${missing})`}`, () => {
  let cluster: AnnouncingCluster;
  let bird: Bird;

  beforeAll(async () => {
    cluster = await AnnouncingCluster.start(2);
    const { network } = cluster.cluster;
    // A route of the test network, which has no router.
    await network.outside.machine.host.exec('ip', ['route', 'del', '203.0.113.0/24']);
    bird = await Bird.start(network.outside, router);
    await cluster.pool('routed', {
      addresses: ['203.0.113.0/24', '2001:db8:1::/112'],
      announce: { bgp: { communities: ['64512:100'] } },
    });
    const peer = {
      myASN: 64512,
      peerASN: 64513,
      peerAddress: network.outside.addresses.IPv4,
      holdTime: '3s',
    };
    await cluster.cluster.send('POST', '/apis/servicenet.dev/v1alpha1/bgppeers', {
      ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'BGPPeer', metadata: { name: 'router' }, spec: peer },
    });
    await cluster.service('web', [address, '2001:db8:1::1']);
    cluster.startAgents();
    await settled();
  });
  afterEach(async () => {
    await Promise.all(['node-1', 'node-2'].map((node) => cordon(node, false)));
    await settled();
  });
  afterAll(() => cluster.close());

  /** Where the router sends what is for an address. */
  const hops = async (to: string): Promise<readonly string[]> =>
    (await birdRoutes(cluster.cluster.network.outside)).get(to) ?? [];
  const settled = (): Promise<void> =>
    vi.waitFor(async () => expect(await hops(address)).toEqual(both), { timeout: 60_000 });
  const cordon = (node: string, unschedulable: boolean): Promise<void> =>
    cluster.cluster.send('PATCH', `/api/v1/nodes/${node}`, { spec: { unschedulable } });

  it('announce from all nodes, in both families, with the communities of the pool', async () => {
    await expect
      .poll(() => birdRoutes(cluster.cluster.network.outside, 6).then((found) => found.get('2001:db8:1::1')))
      .toEqual(['2001:db8::b', '2001:db8::c']);
    expect(await bird.birdc(`show route for ${address} all`)).toContain('BGP.community: (64512,100)');
    // What is announced by layer 2 has no route.
    await cluster.service('lan', ['192.0.2.200']);
    await cluster.owner('192.0.2.200');
    expect(await hops('192.0.2.200')).toEqual([]);
  });

  it('announce an address of externalTrafficPolicy Local from nodes with a ready endpoint', async () => {
    await cluster.service('local', ['203.0.113.2'], { externalTrafficPolicy: 'Local' });
    const slice = (ready: boolean): ReturnType<typeof endpointSlice> =>
      endpointSlice('IPv4', [{ address: '10.244.2.2', node: 'node-2', ready }], 8080, 'local');
    await cluster.cluster.slice(slice(true));
    await expect.poll(() => hops('203.0.113.2')).toEqual(['192.0.2.12']);
    await cluster.cluster.slice(slice(false));
    await expect.poll(() => hops('203.0.113.2')).toEqual([]);
  });

  it('let go of all that they announce within 0.5 s when their node is drained', async () => {
    // One look at the router and one request are no part of it.
    const looking = new Stopwatch();
    await hops(address);
    await cordon('node-1', false);
    const lookMs = looking.elapsedMs();
    const sinceDrain = new Stopwatch();
    await cordon('node-1', true);
    await expect.poll(() => hops(address)).toEqual(['192.0.2.12']);
    expect(sinceDrain.elapsedMs()).toBeLessThan(500 + 3 * lookMs);
    await cluster.agent('node-1').signal('TERM');
    await expect.poll(() => bird.birdc('show protocols all node1')).toContain('the agent of node-1 ends');
    cluster.startAgent('node-1');
  });

  it('keep it when all nodes are drained', async () => {
    await cordon('node-1', true);
    await expect.poll(() => hops(address)).toEqual(['192.0.2.12']);
    await cordon('node-2', true);
    await expect.poll(() => hops(address)).toEqual(both);
  });

  it.each(['TERM', 'KILL'] as const)('lose nothing when one starts again after SIG%s', async (signal) => {
    const seen = new Set<string>();
    const watched = new AbortController();
    const watching = (async () => {
      while (!watched.signal.aborted) seen.add(String(await hops(address)));
    })();
    await cluster.agent('node-1').signal(signal);
    await expect.poll(() => bird.birdc('show protocols node1')).not.toContain('Established');
    cluster.startAgent('node-1');
    await expect.poll(() => bird.birdc('show protocols node1')).toContain('Established');
    // All routes have come again: a second restart before that loses them (RFC 4724 §4.2).
    await expect.poll(() => bird.birdc('show protocols all node1')).not.toContain('Neighbor GR');
    watched.abort();
    await watching;
    expect([...seen]).toEqual([String(both)]);
  });

  it('take routes back while the API server is away with --on-api-loss=withdraw, and count it', async () => {
    const metrics = '127.0.0.1:10249';
    await cluster.agent('node-1').signal('TERM');
    cluster.startAgent('node-1', '--on-api-loss', 'withdraw', '--metrics-bind-address', metrics);
    const { host } = cluster.machine('node-1');
    const value = async (name: string): Promise<number> => {
      const { stdout } = await host.exec('curl', ['-s', `http://${metrics}/metrics`]);
      const line = new RegExp(`^servicenet_bgp_${name}{.*peer="router".*} (\\d+)$`, 'm');
      return Number(line.exec(stdout)?.[1]);
    };
    await settled();
    await expect.poll(() => value('session_up')).toBe(1);
    expect(await value('advertised_routes')).toBeGreaterThan(0);
    // The node that holds keeps its routes.
    for (const node of ['node-1', 'node-2']) cluster.relay(node).cut();
    await expect.poll(() => hops(address)).toEqual(['192.0.2.12']);
    expect(await value('advertised_routes')).toBe(0);
    expect(await value('session_up')).toBe(1);
    for (const node of ['node-1', 'node-2']) cluster.relay(node).mend();
    await settled();
    await bird.birdc('disable node1');
    await expect.poll(() => value('session_failures_total')).toBeGreaterThan(0);
    await expect.poll(() => value('session_up')).toBe(0);
    await bird.birdc('enable node1');
    await settled();
    await cluster.agent('node-1').signal('TERM');
    cluster.startAgent('node-1');
  });

  it('say in the status of a BGPPeer which session is established, and why not', async () => {
    const path = '/apis/servicenet.dev/v1alpha1/bgppeers';
    await cluster.cluster.send('POST', path, {
      ...{ apiVersion: 'servicenet.dev/v1alpha1', kind: 'BGPPeer', metadata: { name: 'missing' } },
      spec: { myASN: 64512, peerASN: 64513, peerAddress: '192.0.2.2', peerPort: 1179 },
    });
    const sessions = async (name: string): Promise<readonly string[]> => {
      const { body } = await call(cluster.cluster.server.client, 'GET', `${path}/${name}`);
      return listAt(body, 'status', 'sessions')
        .map((session) => `${textAt(session, 'node')} ${textAt(session, 'reason')}`)
        .toSorted();
    };
    await expect.poll(() => sessions('router')).toEqual(['node-1 Established', 'node-2 Established']);
    await expect
      .poll(() => sessions('missing'))
      .toEqual(['node-1 ConnectionRefused', 'node-2 ConnectionRefused']);
    await bird.birdc('disable node1');
    await expect
      .poll(() => sessions('router'))
      .toEqual([expect.stringMatching(/^node-1 (?!Established)/), 'node-2 Established']);
    await bird.birdc('enable node1');
    await cluster.cluster.send('PATCH', `${path}/missing`, {
      spec: { nodeSelector: { matchLabels: { no: 'node' } } },
    });
    await expect.poll(() => sessions('missing')).toEqual([]);
    await cluster.cluster.send('DELETE', `${path}/missing`);
  });

  it('open sessions from the nodes that a BGPPeer selects, and end those of one that is gone', async () => {
    const path = '/apis/servicenet.dev/v1alpha1/bgppeers/router';
    const selecting = (name: string | null): Promise<void> =>
      cluster.cluster.send('PATCH', path, {
        spec: { nodeSelector: name === null ? null : { matchLabels: { rack: name } } },
      });
    await cluster.cluster.send('PATCH', '/api/v1/nodes/node-2', { metadata: { labels: { rack: 'a' } } });
    await selecting('a');
    await expect.poll(() => hops(address)).toEqual(['192.0.2.12']);
    await selecting(null);
    await expect.poll(() => hops(address)).toEqual(both);
  });
});
