/**
 * The cases of OVN-Kubernetes' egressip_controller_test.go (pkg/clustermanager) as passes over one EgressIP, with
 * addresses of our own. Its cases about probes of nodes, and about CloudPrivateIPConfigs, say nothing here.
 */
import { describe, expect, test } from 'vitest';
import { assignEgressIPs, type EgressAllocation } from '../../../../src/network/egress/egress-ips.ts';
import { assignableLabel, type EgressNode, egressNodeOf } from '../../../../src/network/egress/egress-ips.ts';
import { parseAddress } from '../../../../src/objects/address.ts';
import { jsonEqual } from '../../../../src/objects/json.ts';
import type { EgressIPItem } from '../../../../src/objects/types/openshift.ts';

function made(name: string, annotations: Readonly<Record<string, string>>, isLabelled = true): EgressNode {
  return egressNodeOf({
    metadata: { name, labels: isLabelled ? { [assignableLabel]: '' } : {}, annotations },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
}

/** @param primary by family; one that the node has not is "", as OVN-Kubernetes writes it. */
function node(
  name: string,
  primary: { readonly ipv4?: string; readonly ipv6?: string },
  networks: readonly string[] = [],
  isLabelled = true,
): EgressNode {
  const own = { ipv4: '', ipv6: '', ...primary };
  const all = [...Object.values(own).filter((text) => text !== ''), ...networks];
  return made(
    name,
    { 'k8s.ovn.org/node-primary-ifaddr': JSON.stringify(own), 'k8s.ovn.org/host-cidrs': JSON.stringify(all) },
    isLabelled,
  );
}

function machine(name: string, capacity: object): EgressNode {
  const ifaddr = { ipv4: '10.0.0.0/24', ipv6: '2001:db8::/64' };
  const config = JSON.stringify([{ interface: 'eni', ifaddr, capacity }]);
  return made(name, { 'cloud.network.openshift.io/egress-ipconfig': config });
}

const n1 = node('n1', { ipv4: '10.0.0.1/24' });
const n2 = node('n2', { ipv4: '10.0.0.2/24' });
const six1 = node('n1', { ipv6: '2001:db8::1/64' }, ['2001:db8:1::1/64']);
const six2 = node('n2', { ipv6: '2001:db8::2/64' }, ['2001:db8:1::2/64']);
/** n1 has more than n2. */
const busy = ['10.0.0.50 n1', '10.0.0.51 n1', '10.0.0.52 n2'];
const busySix = ['2001:db8::50 n1', '2001:db8::51 n1', '2001:db8::52 n2'];

interface Case {
  readonly nodes: readonly EgressNode[];
  readonly spec: readonly string[];
  /** The status before, each `address node`. */
  readonly items?: readonly string[];
  /** What another EgressIP has, each `address node`. */
  readonly others?: readonly string[];
}

const itemOf = (text: string): EgressIPItem => {
  const [egressIP = '', on = ''] = text.split(' ');
  return { egressIP, node: on };
};

/** The status after each pass, until one changes nothing, and the Events of that one. */
function passesOf({ nodes, spec, items = [], others = [] }: Case) {
  let present: readonly EgressIPItem[] = items.map(itemOf);
  const passes: string[][] = [];
  for (;;) {
    const allocations = new Map<string, EgressAllocation>();
    const allocate = (object: string, { egressIP, node: on }: EgressIPItem): void => {
      const address = parseAddress(egressIP);
      if (address !== undefined) allocations.set(address.canonical, { object, node: on });
    };
    for (const item of present) allocate('web', item);
    for (const text of others) allocate('other', itemOf(text));
    const known = new Map(nodes.map((each) => [each.name, each]));
    const { items: next, events } = assignEgressIPs('web', spec, present, known, allocations);
    if (next === undefined || jsonEqual(next, present)) {
      return { passes, events: events.map(({ reason }) => reason) };
    }
    passes.push(next.map(({ egressIP, node: on }) => `${egressIP} ${on}`));
    expect(passes.length).toBeLessThan(5);
    present = next;
  }
}

type Row = [rule: string, given: Case, passes: readonly (readonly string[])[], events?: readonly string[]];

const none = ['NoMatchingNodeFound'];

describe.each([
  ['the primary network', '10.0.0.10'],
  ['a secondary network', '10.1.0.10'],
  ['a wide secondary network', '10.2.0.10'],
  ['a wide secondary network, far from the node', '10.2.200.10'],
])('an address of %s', (_, address) => {
  const networks = (host: number): string[] => [`10.1.0.${host}/24`, `10.2.0.${host}/16`];
  const one = (isLabelled: boolean): EgressNode =>
    node('n1', { ipv4: '10.0.0.1/24' }, networks(1), isLabelled);
  const two = (isLabelled: boolean): EgressNode =>
    node('n2', { ipv4: '10.0.0.2/24' }, [...networks(2), '10.3.0.2/16'], isLabelled);
  const items = [`${address} n1`];
  test.each<Row>([
    ['comes to the node with the label', { nodes: [one(true), two(false)], spec: [address] }, [items]],
    [
      'moves in one pass when the label does',
      { nodes: [one(false), two(true)], spec: [address], items },
      [[`${address} n2`]],
    ],
    [
      'moves in one pass when its node is gone',
      { nodes: [two(true)], spec: [address], items },
      [[`${address} n2`]],
    ],
    ['stays when a second node comes', { nodes: [one(true), two(true)], spec: [address], items }, []],
    ['goes with the last label', { nodes: [one(false), two(false)], spec: [address], items }, [[]], none],
  ])('%s', (_rule, given, passes, events = []) => {
    expect(passesOf(given)).toEqual({ passes, events });
  });
});

describe('an EgressIP', () => {
  const bare = node('n2', { ipv4: '10.0.0.2/24' }, [], false);
  test.each<Row>([
    [
      'has one address on one node; the second waits',
      { nodes: [n1, bare], spec: ['10.0.0.10', '10.0.0.11'], others: ['10.0.0.50 n1'] },
      [['10.0.0.10 n1']],
      ['UnassignedRequest'],
    ],
    [
      'has the second when another node is labelled',
      { nodes: [n1, n2], spec: ['10.0.0.10', '10.0.0.11'], items: ['10.0.0.10 n1'] },
      [['10.0.0.10 n1', '10.0.0.11 n2']],
    ],
    [
      'is on no node of which one address cannot be read, whatever the other family',
      { nodes: [node('n1', { ipv4: '10.0.0.510/24', ipv6: '2001:db8::1/64' })], spec: ['2001:db8::10'] },
      [],
      none,
    ],
    [
      'is on the node with the fewest addresses',
      { nodes: [n1, n2], spec: ['10.0.0.10'], others: busy },
      [['10.0.0.10 n2']],
    ],
    [
      'is on the node with the fewest addresses, of IPv6 too',
      { nodes: [six1, six2], spec: ['2001:db8::10'], others: busySix },
      [['2001:db8::10 n2']],
    ],
    [
      'has two addresses on two nodes, the first on the one with the fewest',
      { nodes: [six1, six2], spec: ['2001:db8::10', '2001:db8::11'], others: busySix },
      [['2001:db8::10 n2', '2001:db8::11 n1']],
    ],
    [
      'has two addresses of a secondary network on two nodes',
      { nodes: [six1, six2], spec: ['2001:db8:1::10', '2001:db8:1::11'], others: busySix },
      [['2001:db8:1::10 n2', '2001:db8:1::11 n1']],
    ],
    [
      'has addresses of both networks on two nodes that are in both',
      { nodes: [six1, six2], spec: ['2001:db8:1::10', '2001:db8::11'], others: busySix },
      [['2001:db8:1::10 n2', '2001:db8::11 n1']],
    ],
    [
      'has two of three addresses on two nodes',
      {
        nodes: [six1, six2],
        spec: ['2001:db8::10', '2001:db8::11', '2001:db8::12'],
        others: busySix,
      },
      [['2001:db8::10 n2', '2001:db8::11 n1']],
      ['UnassignedRequest'],
    ],
    [
      'has the first two of five addresses, of whatever network the others are',
      {
        nodes: [six1, six2],
        spec: ['2001:db8:1::10', '2001:db8:1::11', '2001:db8:1::12', '2001:db8::13', '2001:db8::14'],
        others: busySix,
      },
      [['2001:db8:1::10 n2', '2001:db8:1::11 n1']],
      ['UnassignedRequest'],
    ],
    [
      'has IPv4 on the node that is in its network, though it has more',
      {
        nodes: [six1, n2],
        spec: ['10.0.0.10'],
        others: ['2001:db8::50 n1', '10.0.0.50 n2', '10.0.0.51 n2'],
      },
      [['10.0.0.10 n2']],
    ],
    [
      'has each family on the node that has it',
      { nodes: [six1, n2], spec: ['10.0.0.10', '2001:db8::10'] },
      [['10.0.0.10 n2', '2001:db8::10 n1']],
    ],
    [
      'of both families stays as it is',
      {
        nodes: [six1, n2],
        spec: ['10.0.0.10', '2001:DB8::10'],
        items: ['10.0.0.10 n2', '2001:db8::10 n1'],
        others: ['10.0.0.50 n2'],
      },
      [],
    ],
    ['of IPv4 is on no node of IPv6', { nodes: [six1, six2], spec: ['10.0.0.10'] }, [], none],
  ])('%s', (_, given, passes, events = []) => {
    expect(passesOf(given)).toEqual({ passes, events });
  });
});

describe('an address', () => {
  const conflict = ['EgressIPConflict', 'NoMatchingNodeFound'];
  const taken = ['UnsupportedRequest', 'NoMatchingNodeFound'];
  test.each<Row>([
    ['of a node is refused', { nodes: [six1, six2], spec: ['2001:db8::1'] }, [], conflict],
    ['of a node on a secondary network is refused', { nodes: [six1], spec: ['2001:db8:1::1'] }, [], conflict],
    [
      'of a node without the label is refused',
      { nodes: [n1, node('n9', { ipv4: '10.0.0.9/24' }, [], false)], spec: ['10.0.0.9'] },
      [],
      conflict,
    ],
    [
      'of another EgressIP is refused, in whatever way it is written',
      { nodes: [six1, six2], spec: ['2001:db8:0:0:0:0:0:50'], others: busySix },
      [],
      taken,
    ],
    [
      'of another EgressIP is refused in upper case',
      { nodes: [six1, six2], spec: ['2001:DB8::5A'], others: ['2001:db8::5a n1'] },
      [],
      taken,
    ],
    [
      'in upper case that is free is assigned in lower case',
      { nodes: [six1, six2], spec: ['2001:DB8::AB'], others: busySix },
      [['2001:db8::ab n2']],
    ],
    ['of nine groups is none', { nodes: [six1], spec: ['2001:db8:0:0:0:0:0:5:6'] }, [], ['InvalidEgressIP']],
    ['with a prefix length is none', { nodes: [n1], spec: ['10.0.0.10/32'] }, [], ['InvalidEgressIP']],
  ])('%s', (_, given, passes, events = []) => {
    expect(passesOf(given)).toEqual({ passes, events });
  });
});

describe('a status that does not hold', () => {
  test.each<Row>([
    [
      'with an address that is none: it goes, then the right one comes',
      { nodes: [n1, n2], spec: ['10.0.0.10'], items: ['10.0.0.1000 n1'], others: busy },
      [[], ['10.0.0.10 n2']],
    ],
    [
      'with an address of another network',
      { nodes: [n1, n2], spec: ['10.0.0.10'], items: ['10.9.0.10 n1'], others: busy },
      [[], ['10.0.0.10 n2']],
    ],
    [
      'with a node that is not there',
      { nodes: [n1, n2], spec: ['10.0.0.10'], items: ['10.0.0.10 gone'], others: busy },
      [['10.0.0.10 n2']],
    ],
    [
      'with two addresses on one node: both are assigned anew in one pass',
      {
        nodes: [n1, n2],
        spec: ['10.0.0.10', '10.0.0.11'],
        items: ['10.0.0.10 n1', '10.0.0.11 n1'],
        others: ['10.0.0.52 n2'],
      },
      [['10.0.0.10 n1', '10.0.0.11 n2']],
    ],
    [
      'with an address that the spec has no more: the new one comes with the next pass',
      { nodes: [n1, n2], spec: ['10.0.0.20'], items: ['10.0.0.10 n2'], others: busy },
      [[], ['10.0.0.20 n2']],
    ],
    [
      'with one of two addresses that the spec has no more: the other stays',
      {
        nodes: [n1, n2],
        spec: ['10.0.0.11', '10.0.0.12'],
        items: ['10.0.0.10 n1', '10.0.0.11 n2'],
      },
      [['10.0.0.11 n2'], ['10.0.0.11 n2', '10.0.0.12 n1']],
    ],
  ])('%s', (_, given, passes, events = []) => {
    expect(passesOf(given)).toEqual({ passes, events });
  });
});

describe('a machine of a cloud', () => {
  test.each<Row>([
    [
      'without figures takes any number',
      { nodes: [machine('n1', {})], spec: ['10.0.0.10'], others: busy },
      [['10.0.0.10 n1']],
    ],
    [
      'that has as many as it may takes none, of whatever family',
      { nodes: [machine('n1', { ip: 2 })], spec: ['2001:db8::10'], others: busy },
      [],
      none,
    ],
    [
      'that has as many of a family as it may takes none of it',
      { nodes: [machine('n1', { ipv4: 2, ipv6: 1 })], spec: ['10.0.0.10'], others: busy },
      [],
      none,
    ],
    [
      'that has as many of a family as it may takes the other',
      { nodes: [machine('n1', { ipv4: 2, ipv6: 1 })], spec: ['2001:db8::10'], others: busy },
      [['2001:db8::10 n1']],
    ],
    [
      'with room goes before one that is full, though it has more',
      {
        nodes: [machine('n1', { ip: 3 }), machine('n2', { ip: 1 })],
        spec: ['10.0.0.10'],
        others: busy,
      },
      [['10.0.0.10 n1']],
    ],
    [
      'keeps what it has when it may have less',
      { nodes: [machine('n1', { ip: 0 })], spec: ['10.0.0.10'], items: ['10.0.0.10 n1'] },
      [],
    ],
  ])('%s', (_, given, passes, events = []) => {
    expect(passesOf(given)).toEqual({ passes, events });
  });
});
