import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseWhereaboutsAddress,
  type PoolEntry,
  readEntries,
} from '../../../src/allocation/whereabouts.ts';
import { offsetKey, readWhereaboutsRange } from '../../../src/allocation/whereabouts.ts';
import { formatAddress } from '../../../src/objects/address.ts';
import '../../support/fast-check.ts';

const range = readWhereaboutsRange({ range: '192.168.0.1-192.168.0.6/28' });

type Written = readonly [id: string, podref: string, ifname?: string];

function entries(allocations: Readonly<Record<string, Written>>): readonly PoolEntry[] {
  const objects: Record<string, { id: string; podref: string; ifname?: string }> = {};
  for (const [key, [id, podref, ifname]] of Object.entries(allocations)) {
    objects[key] = { id, podref, ...(ifname === undefined ? {} : { ifname }) };
  }
  return readEntries(range.network, objects);
}

function chosen(
  of: readonly PoolEntry[],
  podref: string,
  ifname: string,
  isElsewhere?: (value: bigint) => boolean,
): string {
  return formatAddress('IPv4', chooseWhereaboutsAddress(range, of, { podref, ifname }, isElsewhere).value);
}

describe('the address of an owner', () => {
  it('is the lowest free one', () => {
    expect(chosen(entries({}), 'default/a', 'net1')).toBe('192.168.0.1');
    const pod1 = { 1: ['x', 'default/b', 'net1'], 2: ['x', 'default/c', 'net1'] } as const;
    expect(chosen(entries({ ...pod1, 3: ['x', 'default/d'] }), 'default/a', 'net1')).toBe('192.168.0.4');
    expect(chosen(entries({ ...pod1, 5: ['x', 'default/d'] }), 'default/a', 'net1')).toBe('192.168.0.3');
  });

  it('is what its Pod has for the interface, whatever the container', () => {
    const present = entries({ 4: ['old', 'default/a', 'net1'], 5: ['old', 'default/a', 'net2'] });
    const choice = chooseWhereaboutsAddress(range, present, { podref: 'default/a', ifname: 'net2' });
    expect(formatAddress('IPv4', choice.value)).toBe('192.168.0.5');
    expect(choice.present?.id).toBe('old');
    // Another interface, and another Pod, are others.
    expect(chosen(present, 'default/a', 'net3')).toBe('192.168.0.1');
    expect(chosen(present, 'other/a', 'net1')).toBe('192.168.0.1');
  });

  it('is none that another range has given, were it its own', () => {
    const own = entries({ 1: ['x', 'default/a', 'net1'] });
    const isElsewhere = (value: bigint): boolean => value === range.usable.first;
    expect(chosen(own, 'default/a', 'net1', isElsewhere)).toBe('192.168.0.2');
  });

  it('is missing with the words of whereabouts', () => {
    const six = [1, 2, 3, 4, 5, 6].map((key): [number, Written] => [key, ['x', `default/${key}`, 'net1']]);
    const all = entries(Object.fromEntries(six));
    expect(() => chosen(all, 'default/a', 'net1')).toThrow(
      'Could not allocate IP in range: ip: 192.168.0.1 / - 192.168.0.6 / range: 192.168.0.0/28 / excludeRanges: []',
    );
  });

  it('does not fail for keys that are no offsets', () => {
    const odd = entries({
      x: ['x', 'default/b'],
      '-1': ['x', 'default/b'],
      999: ['x', 'default/b'],
      '1e0': ['x', 'b'],
    });
    expect(odd).toEqual([]);
    expect(chosen(odd, 'default/a', 'net1')).toBe('192.168.0.1');
  });
});

describe('pools of overlapping ranges', () => {
  const written = ['10.0.0.0/27', '10.0.0.8/29', '10.0.0.4-10.0.0.20/24', '10.0.0.16/28'];
  const ranges = written.map((text) => readWhereaboutsRange({ range: text, exclude: ['10.0.0.18/31'] }));

  /** As the controller does it: a pool each, and one reservation an address. */
  class Model {
    readonly pools = ranges.map((): Record<string, { id: string; podref: string; ifname: string }> => ({}));
    readonly reservations = new Map<bigint, string>();

    allocate(index: number, podref: string): bigint | undefined {
      const of = ranges[index];
      const pool = this.pools[index];
      if (of === undefined || pool === undefined) return undefined;
      const isElsewhere = (value: bigint): boolean => (this.reservations.get(value) ?? podref) !== podref;
      const entries = readEntries(of.network, pool);
      const { value } = chooseWhereaboutsAddress(of, entries, { podref, ifname: 'net1' }, isElsewhere);
      pool[offsetKey(of.network, value)] = { id: podref, podref, ifname: 'net1' };
      this.reservations.set(value, podref);
      return value;
    }
  }

  it('give no address twice, none that is excluded, and the same one when asked again', () => {
    const command = fc.tuple(fc.nat(ranges.length - 1), fc.nat(30));
    const property = fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const model = new Model();
      const given = new Map<string, bigint>();
      for (const [index, pod] of commands) {
        const owner = `default/pod-${index}-${pod}`;
        let value: bigint | undefined;
        try {
          value = model.allocate(index, owner);
        } catch {
          continue;
        }
        if (value === undefined) continue;
        if (given.has(owner)) expect(given.get(owner)).toBe(value);
        else expect([...given.values()]).not.toContain(value);
        given.set(owner, value);
        expect(value & 0xfffffffen).not.toBe(0x0a000012n);
        expect(ranges[index]?.usable.contains('IPv4', value)).toBe(true);
      }
    });
    fc.assert(property);
  });
});
