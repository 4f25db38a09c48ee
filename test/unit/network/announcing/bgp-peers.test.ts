import { describe, expect, test } from 'vitest';
import { peersOf } from '../../../../src/network/announcing/bgp.ts';
import type { Node } from '../../../../src/objects/types/core.generated.ts';
import type { BGPPeer, BGPPeerSpec } from '../../../../src/objects/types/servicenet.ts';

function node(addresses: readonly string[], labels: Record<string, string> = {}): Node {
  return {
    metadata: { name: 'node-1', labels },
    spec: {},
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
  };
}

function peer(name: string, changed: Partial<BGPPeerSpec> = {}): BGPPeer {
  return {
    metadata: { name },
    spec: { myASN: 64512, peerASN: 64513, peerAddress: '192.0.2.2', ...changed },
  };
}

const dual = node(['2001:db8::b', '192.0.2.11'], { rack: 'a' });

describe('peers', () => {
  test('have what their BGPPeer says, and defaults', () => {
    const whole = {
      ...{ peerAddress: '2001:DB8::2', peerPort: 1179, sourceAddress: '2001:db8::b', routerID: '192.0.2.99' },
      ...{ holdTime: '2m', gracefulRestart: false },
    };
    expect(peersOf([peer('b', whole), peer('a')], dual, true)).toEqual({
      peers: [
        {
          ...{ name: 'a', address: '192.0.2.2', port: 179, peerAs: 64513, localAs: 64512 },
          ...{ routerId: '192.0.2.11', sourceAddress: undefined, holdSeconds: 9, restartSeconds: 30 },
        },
        {
          ...{ name: 'b', address: '2001:db8::2', port: 1179, peerAs: 64513, localAs: 64512 },
          ...{ routerId: '192.0.2.99', sourceAddress: '2001:db8::b', holdSeconds: 120, restartSeconds: 0 },
        },
      ],
      problems: [],
    });
  });

  test('are those whose selector the node matches', () => {
    const selecting = (rack: string): BGPPeer => peer(rack, { nodeSelector: { matchLabels: { rack } } });
    expect(peersOf([selecting('a'), selecting('b')], dual, true).peers.map(({ name }) => name)).toEqual([
      'a',
    ]);
  });

  test('keep no routes over a restart where the agent itself forwards', () => {
    expect(peersOf([peer('a')], dual, false).peers).toMatchObject([{ restartSeconds: 0 }]);
  });

  test('know a node without an IPv4 address by an identifier of its own', () => {
    const ids = ['node-1', 'node-2'].map((name) => {
      const onlyIPv6 = { ...node(['2001:db8::b']), metadata: { name } };
      return peersOf([peer('a')], onlyIPv6, true).peers[0]?.routerId;
    });
    expect(ids[0]).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(ids[0]).not.toBe(ids[1]);
  });

  test.each<[string, Partial<BGPPeerSpec>]>([
    ['no address', { peerAddress: 'router' }],
    ['a link-local address', { peerAddress: 'fe80::1' }],
    ['a source of another family', { sourceAddress: '2001:db8::b' }],
    ['a hold time of less than 3 s', { holdTime: '2s' }],
    ['a selector that is none', { nodeSelector: { matchLabels: { 'no label': 'x' } } }],
  ])('of another schema are left out by their reason: %s', (_, changed) => {
    const { peers, problems } = peersOf([peer('bad', changed), peer('good')], dual, true);
    expect(peers.map(({ name }) => name)).toEqual(['good']);
    expect(problems).toMatchObject([{ peer: 'bad', reason: 'InvalidPeer' }]);
  });
});
