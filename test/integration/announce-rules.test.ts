import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { bgpPeers } from '../../src/client/resources.ts';
import { applyObjects } from '../../src/commands/apply.ts';
import definitions from '../../src/commands/definitions.generated.json' with { type: 'json' };
import { readAnnounce } from '../../src/network/announcing/announcement-plan.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import type { AddressPoolAnnounce } from '../../src/objects/types/servicenet.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { call } from '../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startApiServer({});
  await applyObjects(server.client, definitions);
  const peer = {
    metadata: { name: 'first' },
    spec: { myASN: 64512, peerASN: 64513, peerAddress: '192.0.2.1' },
  };
  // A new kind is served shortly after its definition is stored.
  await vi.waitFor(() => new ResourceClient(server.client, bgpPeers).create(peer), { timeout: 60_000 });
});
afterAll(async () => server.stop());

/** Status, and for each cause its field and message. */
async function answerTo(kind: 'AddressPool' | 'BGPPeer', spec: object): Promise<[number, string[]]> {
  const plural = kind === 'AddressPool' ? 'addresspools' : 'bgppeers';
  const { status, body } = await call(server.client, 'POST', `/apis/servicenet.dev/v1alpha1/${plural}`, {
    body: { apiVersion: 'servicenet.dev/v1alpha1', kind, metadata: { name: 'a' }, spec },
    query: { dryRun: 'All' },
  });
  const causes = listAt(body, 'details', 'causes');
  return [status, causes.map((cause) => `${textAt(cause, 'field')}: ${textAt(cause, 'message')}`)];
}

describe('spec.announce of an AddressPool', () => {
  const answer = (announce: object): Promise<[number, string[]]> =>
    answerTo('AddressPool', { addresses: ['192.0.2.1'], announce });

  test.each<[string, AddressPoolAnnounce]>([
    ['nothing', {}],
    ['layer 2', { layer2: {} }],
    [
      'layer 2 on an interface of some nodes',
      { layer2: { interfaces: ['eth0.100'], nodeSelector: { matchLabels: { a: 'b' } } } },
    ],
    [
      'BGP',
      {
        bgp: {
          peers: ['tor'],
          communities: ['64512:100', '4294967295:1:2', 'no-export'],
          localPreference: 4294967295,
        },
      },
    ],
    ['aggregates', { bgp: { aggregationLength: 24, aggregationLengthV6: 64 } }],
  ])('%s is taken, and read without a problem', async (_, announce) => {
    expect(await answer(announce)).toEqual([201, []]);
    expect(readAnnounce(announce).problems).toEqual([]);
  });

  test.each<[string, object]>([
    ['bgp.communities[0]', { bgp: { communities: ['64512'] } }],
    ['bgp.communities[0]', { bgp: { communities: ['64512:65536'] } }],
    ['bgp.communities[0]', { bgp: { communities: ['1:2:4294967296'] } }],
    ['bgp.communities[0]', { bgp: { communities: ['no-such'] } }],
    ['bgp.localPreference', { bgp: { localPreference: -1 } }],
    ['bgp.aggregationLength', { bgp: { aggregationLength: 33 } }],
    ['bgp.aggregationLengthV6', { bgp: { aggregationLengthV6: 0 } }],
    ['layer2.interfaces[0]', { layer2: { interfaces: ['a/b'] } }],
    ['layer2.interfaces[0]', { layer2: { interfaces: ['sixteen-letters-'] } }],
  ])('%s is refused where it cannot work: %j', async (field, announce) => {
    const [status, causes] = await answer(announce);
    expect([status, causes.join()]).toEqual([422, expect.stringContaining(`spec.announce.${field}: `)]);
  });
});

describe('a BGPPeer', () => {
  const peer = { myASN: 64512, peerASN: 4200000000, peerAddress: '2001:db8::1' };

  test.each([
    {},
    { holdTime: '3s', peerPort: 1179, gracefulRestart: false },
    { routerID: '192.0.2.1', sourceAddress: '2001:db8::2' },
  ])('is taken with %j', async (more) =>
    expect(await answerTo('BGPPeer', { ...peer, ...more })).toEqual([201, []]),
  );

  test.each<[string, object, string]>([
    ['myASN', { myASN: 0 }, 'greater than or equal to 1'],
    ['peerASN', { peerASN: 23456 }, 'reserved'],
    ['peerAddress', { peerAddress: 'router' }, 'must be the address of another machine'],
    ['peerAddress', { peerAddress: '127.0.0.1' }, 'must be the address of another machine'],
    ['sourceAddress', { sourceAddress: 'fe80::1%eth0' }, 'must be an address'],
    ['routerID', { routerID: '2001:db8::1' }, 'must be an IPv4 address'],
    ['holdTime', { holdTime: '2s' }, 'from 3s to 65535s'],
    ['holdTime', { holdTime: '9' }, 'from 3s to 65535s'],
    ['password', { password: 'x' }, 'TCPMD5NotSupported'],
    ['passwordSecret', { passwordSecret: { name: 'x' } }, 'TCPMD5NotSupported'],
    ['bfdProfile', { bfdProfile: 'fast' }, 'BFDNotSupported'],
  ])('is refused with a wrong %s: %j', async (field, more, why) => {
    const [status, causes] = await answerTo('BGPPeer', { ...peer, ...more });
    expect([status, causes.join()]).toEqual([
      422,
      expect.stringMatching(new RegExp(`spec.${field}: .*${why}`)),
    ]);
  });

  test('is refused with a source address of another family', async () => {
    expect(await answerTo('BGPPeer', { ...peer, sourceAddress: '192.0.2.1' })).toEqual([
      422,
      [expect.stringContaining('sourceAddress must have the family of peerAddress')],
    ]);
  });
});
