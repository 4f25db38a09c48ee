import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assignEgressIPs, type EgressAllocation } from '../../../../src/network/egress/egress-ips.ts';
import { assignableLabel, type EgressNode, egressNodeOf } from '../../../../src/network/egress/egress-ips.ts';
import type { EgressIPItem } from '../../../../src/objects/types/openshift.ts';

interface Made {
  readonly primary?: object;
  readonly networks?: readonly string[];
  readonly label?: string | null;
  readonly ready?: boolean;
}

function node(name: string, { primary, networks, label = '', ready = true }: Made = {}): EgressNode {
  return egressNodeOf({
    metadata: {
      name,
      labels: label === null ? {} : { [assignableLabel]: label },
      annotations: {
        'k8s.ovn.org/node-primary-ifaddr': JSON.stringify(primary ?? { ipv4: `10.0.0.${name.slice(1)}/24` }),
        ...(networks === undefined ? {} : { 'k8s.ovn.org/host-cidrs': JSON.stringify(networks) }),
      },
    },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });
}

function assign(
  egressIPs: readonly string[],
  nodes: readonly EgressNode[],
  items: readonly EgressIPItem[] = [],
  others: Readonly<Record<string, EgressAllocation>> = {},
) {
  const allocations = new Map(Object.entries(others));
  for (const { egressIP, node: on } of items) allocations.set(egressIP, { object: 'a', node: on });
  const { items: found, events } = assignEgressIPs(
    'a',
    egressIPs,
    items,
    new Map(nodes.map((each) => [each.name, each])),
    allocations,
  );
  return {
    items: found?.map(({ egressIP, node: on }) => `${egressIP} ${on}`),
    events: events.map(({ reason }) => reason),
  };
}

const item = (egressIP: string, on: string): EgressIPItem => ({ egressIP, node: on });

describe('an EgressIP', () => {
  test('has each address on another node, of those with the fewest addresses the first by name', () => {
    const nodes = [node('n1'), node('n2'), node('n3')];
    expect(assign(['10.0.0.10', '10.0.0.11'], nodes).items).toEqual(['10.0.0.10 n1', '10.0.0.11 n2']);
    const others = { '10.0.0.50': { object: 'b', node: 'n1' } };
    expect(assign(['10.0.0.10'], nodes, [], others)).toEqual({ items: ['10.0.0.10 n2'], events: [] });
  });

  test('is on nodes that are labelled, whatever the value, ready, and in its network', () => {
    const nodes = [
      node('n1', { label: null }),
      node('n2', { ready: false }),
      node('n3', { primary: { ipv4: '10.9.0.3/24' } }),
      node('n4', { primary: {} }),
      node('n5', { label: 'false' }),
    ];
    expect(assign(['10.0.0.10'], nodes)).toEqual({ items: ['10.0.0.10 n5'], events: [] });
    expect(assign(['10.0.0.10'], nodes.slice(0, 2))).toEqual({ items: [], events: ['NoMatchingNodeFound'] });
    expect(assign(['10.0.0.10'], nodes.slice(0, 3))).toEqual({ items: [], events: ['NoMatchingNodeFound'] });
    expect(assign(['10.0.0.10', '10.0.0.11'], nodes)).toEqual({
      items: ['10.0.0.10 n5'],
      events: ['UnassignedRequest'],
    });
  });

  test('stays as it is with an address that is none', () => {
    for (const text of ['10.0.0.10/32', 'here', '10.0.0.300', '']) {
      expect(assign(['10.0.0.11', text], [node('n1')], [item('10.0.0.12', 'n1')])).toEqual({
        items: undefined,
        events: ['InvalidEgressIP'],
      });
    }
  });

  test('compares addresses, not texts', () => {
    const nodes = [
      node('n1', { primary: { ipv6: '2001:db8::1/64' } }),
      node('n2', { primary: { ipv6: '2001:db8::2/64' } }),
    ];
    expect(assign(['2001:DB8:0::A', '2001:db8::a'], nodes).items).toEqual(['2001:db8::a n1']);
    expect(assign(['2001:db8::00a'], nodes, [item('2001:DB8::A', 'n2')]).items).toEqual(['2001:db8::a n2']);
  });

  test('takes no address of a node, and none of another EgressIP; those behind it wait', () => {
    const nodes = [node('n1'), node('n2'), node('n9', { label: null })];
    expect(assign(['10.0.0.10', '10.0.0.9', '10.0.0.11'], nodes)).toEqual({
      items: ['10.0.0.10 n1'],
      events: ['EgressIPConflict', 'UnassignedRequest'],
    });
    const others = { '10.0.0.10': { object: 'b', node: 'n1' } };
    expect(assign(['10.0.0.10', '10.0.0.11'], nodes, [], others)).toEqual({
      items: [],
      events: ['UnsupportedRequest', 'NoMatchingNodeFound'],
    });
  });

  test('is on a secondary network where one has it by the longer prefix', () => {
    const nodes = [
      node('n1'),
      node('n2', { networks: ['10.0.0.2/24', '10.1.0.2/24'] }),
      node('n3', { primary: { ipv4: '10.0.0.3/8' }, networks: ['10.1.0.3/24'] }),
    ];
    expect(assign(['10.1.0.10'], nodes).items).toEqual(['10.1.0.10 n2']);
    expect(assign(['10.1.0.10', '10.1.0.11'], nodes).items).toEqual(['10.1.0.10 n2', '10.1.0.11 n3']);
    // The restriction to nodes of the secondary network holds for the addresses that follow.
    expect(assign(['10.1.0.10', '10.0.0.10', '10.0.0.11'], nodes).items).toEqual([
      '10.1.0.10 n2',
      '10.0.0.10 n3',
    ]);
  });

  test('moves from a node that is gone, and is not balanced when one comes', () => {
    const nodes = [node('n1'), node('n2'), node('n3')];
    const items = [item('10.0.0.10', 'n3'), item('10.0.0.11', 'n2')];
    expect(assign(['10.0.0.10', '10.0.0.11'], nodes, items).items).toEqual(['10.0.0.10 n3', '10.0.0.11 n2']);
    expect(assign(['10.0.0.10', '10.0.0.11'], nodes.slice(0, 2), items).items).toEqual([
      '10.0.0.11 n2',
      '10.0.0.10 n1',
    ]);
  });

  test('takes away before it adds: a new address waits for the next pass', () => {
    const nodes = [node('n1'), node('n2')];
    expect(assign(['10.0.0.20'], nodes, [item('10.0.0.10', 'n1')]).items).toEqual([]);
    expect(assign(['10.0.0.20'], nodes).items).toEqual(['10.0.0.20 n1']);
  });

  test('loses both addresses of one node', () => {
    const items = [item('10.0.0.10', 'n1'), item('10.0.0.11', 'n1')];
    expect(assign(['10.0.0.10', '10.0.0.11'], [node('n1'), node('n2')], items).items).toEqual([
      '10.0.0.10 n1',
      '10.0.0.11 n2',
    ]);
  });
});

test('no address is on two nodes, and none of an object twice on one, however nodes come and go', () => {
  const names = ['n1', 'n2', 'n3', 'n4'];
  const specs = [['10.0.0.10', '10.0.0.11'], ['10.0.0.11', '10.0.0.12', '10.0.0.13'], ['10.0.0.20']];
  const step = fc.record({ up: fc.subarray(names), object: fc.nat(2), wanted: fc.subarray(specs.flat()) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const objects = specs.map((egressIPs, index) => ({
        name: `e${index}`,
        egressIPs,
        items: [] as readonly EgressIPItem[],
      }));
      for (const { up, object: changed, wanted } of steps) {
        const spec = objects[changed];
        if (spec !== undefined && wanted.length > 0) spec.egressIPs = wanted;
        const nodes = new Map(up.map((name) => [name, node(name)]));
        const allocations = new Map<string, EgressAllocation>();
        for (const { name, items } of objects) {
          for (const { egressIP, node: on } of items) {
            if (!allocations.has(egressIP)) allocations.set(egressIP, { object: name, node: on });
          }
        }
        for (const object of objects) {
          const { items } = assignEgressIPs(object.name, object.egressIPs, object.items, nodes, allocations);
          object.items = items ?? object.items;
          for (const { egressIP, node: on } of object.items)
            allocations.set(egressIP, { object: object.name, node: on });
          const on = object.items.map((each) => each.node);
          expect(new Set(on).size).toBe(on.length);
          for (const name of on) expect(up).toContain(name);
        }
        const addresses = objects.flatMap(({ items }) => items.map(({ egressIP }) => egressIP));
        expect(new Set(addresses).size).toBe(addresses.length);
      }
    }),
  );
});
