import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostLocalAddresses } from '../../../../src/platforms/cni/addresses.ts';
import { readIpam, type HostLocalRange } from '../../../../src/network/attachments/ipam.ts';
import '../../../support/fast-check.ts';

function setsOf(ipam: object): readonly (readonly HostLocalRange[])[] {
  const read = readIpam({ ipam: { type: 'host-local', ...ipam } });
  if (read.type !== 'host-local') throw new Error(read.type);
  return read.sets;
}

const small = setsOf({ subnet: '10.1.0.0/29' });
const holder = (uid: string, name = 'net1'): { uid: string; interface: string } => ({ uid, interface: name });

describe('host-local', () => {
  it('gives the next address after the last, then from the start, and never the gateway', () => {
    const addresses = new HostLocalAddresses();
    const give = (uid: string): readonly string[] => addresses.assign('n/lan', small, [], holder(uid));
    expect(give('a')).toEqual(['10.1.0.2']);
    expect(give('b')).toEqual(['10.1.0.3']);
    expect(give('a')).toEqual(['10.1.0.2']);
    addresses.release('a');
    // The one that was given back waits for its turn.
    expect(['c', 'd', 'e', 'f'].map((uid) => give(uid)[0])).toEqual([
      '10.1.0.4',
      '10.1.0.5',
      '10.1.0.6',
      '10.1.0.2',
    ]);
    expect(() => give('g')).toThrow(
      'failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.6',
    );
    addresses.release('d');
    expect(give('g')).toEqual(['10.1.0.5']);
  });

  it('gives one of each set, on each node by itself, and what is asked for', () => {
    const addresses = new HostLocalAddresses();
    const both = setsOf({ ranges: [[{ subnet: '10.1.0.0/24' }], [{ subnet: 'fd00::/64' }]] });
    expect(addresses.assign('n/lan', both, ['10.1.0.9/24'], holder('a'))).toEqual(['10.1.0.9', 'fd00::2']);
    expect(addresses.assign('m/lan', both, ['10.1.0.9'], holder('b'))).toEqual(['10.1.0.9', 'fd00::2']);
    expect(addresses.assign('n/lan', both, [], holder('a', 'net2'))).toEqual(['10.1.0.2', 'fd00::3']);
    expect(() => addresses.assign('n/lan', both, ['10.1.0.9'], holder('c'))).toThrow(
      'requested IP address 10.1.0.9',
    );
    expect(() => addresses.assign('n/lan', both, ['10.9.0.9'], holder('c'))).toThrow(
      'failed to allocate all requested IPs: 10.9.0.9',
    );
  });

  it('goes on behind the last address in the ranges of a set', () => {
    const addresses = new HostLocalAddresses();
    const set = setsOf({
      ranges: [
        [
          { subnet: '10.1.0.0/24', rangeEnd: '10.1.0.2' },
          { subnet: '10.2.0.0/24', rangeEnd: '10.2.0.3' },
        ],
      ],
    });
    const given = ['a', 'b', 'c'].map((uid) => addresses.assign('n/lan', set, [], holder(uid))[0]);
    expect(given).toEqual(['10.1.0.2', '10.2.0.2', '10.2.0.3']);
  });

  it('gives no address twice on a node, whatever comes and goes', () => {
    const step = fc.tuple(fc.boolean(), fc.nat(9).map(String));
    const property = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const addresses = new HostLocalAddresses();
      const held = new Map<string, string>();
      for (const [comes, uid] of steps) {
        if (!comes) {
          addresses.release(uid);
          held.delete(uid);
          continue;
        }
        if (held.size === 5 && !held.has(uid)) {
          expect(() => addresses.assign('n/lan', small, [], holder(uid))).toThrow(
            'no IP addresses available',
          );
          continue;
        }
        const [address = ''] = addresses.assign('n/lan', small, [], holder(uid));
        expect(held.get(uid) ?? address).toBe(address);
        held.delete(uid);
        expect([...held.values()]).not.toContain(address);
        held.set(uid, address);
      }
    });
    fc.assert(property);
  });
});
