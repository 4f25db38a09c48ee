import type { NotAnnouncedReason } from '../../../../src/objects/reasons.ts';
import { describe, expect, test } from 'vitest';
import {
  type AnnouncementPlan,
  type Announcer,
  type AssignedAddress,
  planAnnouncement,
} from '../../../../src/network/announcing/announcement-plan.ts';
import { decodeReport, encodeReport } from '../../../../src/network/announcing/agent-report.ts';
import { readAnnounce } from '../../../../src/network/announcing/announcement-plan.ts';
import { parseCidr } from '../../../../src/objects/address.ts';
import type { AddressPoolAnnounce } from '../../../../src/objects/types/servicenet.ts';

const lan = parseCidr('192.0.2.7/24');
if (lan === undefined) throw new Error('192.0.2.7/24 is a CIDR');

function announcer(node: string, changed: Partial<Announcer> = {}): Announcer {
  return {
    ...{ node, labels: {}, isReady: true, isCordoned: false, isAlive: true, sessions: [], refused: [] },
    interfaces: [
      { name: 'eth0', subnets: [lan ?? never()], mac: '02:00:00:00:00:01', ownMac: '02:00:00:00:00:02' },
      { name: 'eth1', subnets: [], mac: '02:00:00:00:00:03', ownMac: '02:00:00:00:00:03' },
    ],
    ...changed,
  };
}

function never(): never {
  throw new Error('unreachable');
}

function assigned(spec?: AddressPoolAnnounce, changed: Partial<AssignedAddress> = {}): AssignedAddress {
  const { announcement } = readAnnounce(spec);
  return { address: '192.0.2.200', announcement, localNodes: undefined, ...changed };
}

const conflict = { address: '192.0.2.200', reason: 'AddressConflict', holder: '02:00:00:00:00:09' } as const;

describe('layer 2', () => {
  test('is the default, on interfaces whose subnet contains the address, by one node', () => {
    const plan = planAnnouncement(assigned(), [announcer('a'), announcer('b'), announcer('c')]);
    expect(plan).toMatchObject({ layer2: { interfaces: ['eth0'] }, bgp: [], reason: undefined });
  });

  test('of named interfaces needs no subnet there', () => {
    const named = assigned({ layer2: { interfaces: ['eth1', 'wlan0'] } }, { address: '203.0.113.1' });
    expect(planAnnouncement(named, [announcer('a')]).layer2).toEqual({ node: 'a', interfaces: ['eth1'] });
  });

  test('goes to nodes with a ready endpoint where the traffic policy is Local', () => {
    const local = assigned(undefined, { localNodes: new Set(['b']) });
    const plans = ['a', 'b', 'c'].map((node) => announcer(node));
    expect(planAnnouncement(local, plans).layer2?.node).toBe('b');
  });

  test.each<
    [
      string,
      Partial<Announcer>,
      Partial<AssignedAddress>,
      AddressPoolAnnounce | undefined,
      NotAnnouncedReason,
    ]
  >([
    ['has not renewed its Lease', { isAlive: false }, {}, undefined, 'LeaseExpired'],
    ['is not ready', { isReady: false }, {}, undefined, 'NodeNotReady'],
    [
      'has the label of excluded nodes',
      { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } },
      {},
      undefined,
      'NodeExcluded',
    ],
    [
      'is not selected',
      {},
      {},
      { layer2: { nodeSelector: { matchLabels: { edge: 'true' } } } },
      'NodeNotSelected',
    ],
    ['has no such interface', {}, {}, { layer2: { interfaces: ['wlan0'] } }, 'NoInterface'],
    ['is in no subnet of the address', {}, { address: '203.0.113.1' }, undefined, 'NoInterface'],
    ['is in no subnet of its family', {}, { address: '2001:db8::1' }, undefined, 'NoInterface'],
    ['has no endpoint', {}, { localNodes: new Set(['b']) }, undefined, 'NoLocalEndpoint'],
    ['sees another machine that has it', { refused: [conflict] }, {}, undefined, 'AddressConflict'],
    ['has no session', {}, {}, { bgp: {} }, 'NoSession'],
    ['is told not to', {}, {}, {}, 'AnnouncingOff'],
  ])('is not for a node that %s', (_, changed, of, spec, reason) => {
    expect(planAnnouncement(assigned(spec, of), [announcer('a', changed)])).toEqual({
      ...{ layer2: undefined, bgp: [], reason },
    });
  });

  test('leaves a cordoned node to others, and where there are none, does not', () => {
    const plan = (...cordoned: readonly string[]): string | undefined =>
      planAnnouncement(
        assigned(),
        ['a', 'b'].map((node) => announcer(node, { isCordoned: cordoned.includes(node) })),
      ).layer2?.node;
    expect([plan('a'), plan('b')]).toEqual(['b', 'a']);
    expect(plan('a', 'b')).toBe(plan());
  });

  test('says of several reasons the one of the node that comes nearest', () => {
    const nodes = [
      announcer('a', { isAlive: false }),
      announcer('b', { refused: [conflict] }),
      announcer('c', { isReady: false }),
    ];
    expect(planAnnouncement(assigned(), nodes).reason).toBe('AddressConflict');
    expect(planAnnouncement(assigned(), []).reason).toBe('NoAgent');
  });
});

describe('BGP', () => {
  test('announces by every node that has a session with a peer of the pool', () => {
    const nodes = [
      announcer('c', { sessions: ['tor-2'] }),
      announcer('a', { sessions: ['tor-1'] }),
      announcer('b', { sessions: [] }),
    ];
    const by = (peers?: string[]): AnnouncementPlan =>
      planAnnouncement(assigned({ bgp: peers === undefined ? {} : { peers } }), nodes);
    expect(by()).toEqual({ layer2: undefined, bgp: ['a', 'c'], reason: undefined });
    expect(by(['tor-2'])).toMatchObject({ bgp: ['c'] });
    expect(by(['tor-3'])).toMatchObject({ bgp: [], reason: 'NoSession' });
  });

  test('and layer 2 go together', () => {
    const nodes = [announcer('a', { sessions: ['tor'] })];
    expect(planAnnouncement(assigned({ bgp: {}, layer2: {} }), nodes)).toMatchObject({
      layer2: { node: 'a' },
      bgp: ['a'],
    });
  });
});

describe('spec.announce', () => {
  test('names what does not parse, and uses the rest', () => {
    const { announcement, problems } = readAnnounce({
      bgp: {
        ...{ communities: ['64512:1', 'no-export', '64512:1:2', 'nonsense'] },
        ...{ aggregationLength: 33, aggregationLengthV6: 64, localPreference: 200 },
        nodeSelector: { matchExpressions: [{ key: 'a', operator: 'Near', values: [] }] },
      },
    });
    expect(problems).toHaveLength(3);
    expect(announcement.bgp).toEqual({
      ...{ peers: undefined, nodeSelector: 'nothing', localPref: 200 },
      ...{ communities: [64512 * 65536 + 1, 0xffff_ff01], largeCommunities: [[64512, 1, 2]] },
      prefixLengths: { IPv4: 32, IPv6: 64 },
    });
  });
});

describe('the report of an agent', () => {
  test('is read as it was written, and is the same text for what is the same', () => {
    const { interfaces } = announcer('a');
    const voters = new Map([
      ['b', '2'],
      ['a', '1'],
    ]);
    const report = {
      interfaces,
      sessions: ['b', 'a'],
      refused: [conflict],
      announced: ['192.0.2.9'],
      voters,
    };
    const text = encodeReport(report);
    expect(encodeReport({ ...report, sessions: ['a', 'b'], interfaces: interfaces.toReversed() })).toBe(text);
    expect(encodeReport(decodeReport(text))).toBe(text);
    expect(text).toContain('"192.0.2.0/24"');
  });

  test.each([
    undefined,
    '',
    '{',
    '[]',
    '{"interfaces":[7,{"name":"eth0","subnets":["x",1]}],"refused":["x",{"address":"192.0.2.1","reason":"New"}]}',
  ])('of another version is read as far as it can be: %s', (text) => {
    expect(decodeReport(text)).toMatchObject({ sessions: [], refused: [] });
  });
});
