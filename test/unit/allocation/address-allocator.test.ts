import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AddressAllocator } from '../../../src/allocation/address-allocator.ts';
import { parseServiceCidr } from '../../../src/allocation/address-range.ts';
import { parseAddress } from '../../../src/objects/address.ts';
import {
  AllocationError,
  AlreadyAllocatedError,
  NotCanonicalError,
  NotInRangeError,
  RangeFullError,
} from '../../../src/allocation/address-range.ts';

function allocatorOf(text: string): AddressAllocator {
  const cidr = parseServiceCidr(text);
  if (cidr === undefined) throw new Error(text);
  return new AddressAllocator(cidr);
}

/** Every usable address of a small range, by picking until it is full. */
function drain(allocator: AddressAllocator, random: () => number): string[] {
  const all: string[] = [];
  while (allocator.free > 0) all.push(allocator.allocateNext(random));
  return all;
}

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('AddressAllocator', () => {
  test.each(['10.1.0.0/24', '10.1.0.0/28', 'fd00::/120', 'fd00::/124'])(
    'picks every address of %s once, the dynamic band first',
    (text) => {
      const allocator = allocatorOf(text);
      const cidr = parseServiceCidr(text);
      const total = Number(cidr?.usable.size);
      expect(allocator.free).toBe(total);
      const all = drain(allocator, seeded(7));
      expect(new Set(all).size).toBe(total);
      expect(() => allocator.allocateNext(seeded(1))).toThrow(RangeFullError);
      expect(() => allocator.allocateNext(seeded(1))).toThrow('range is full');
      const valueOf = (address: string): bigint => parseAddress(address)?.value ?? 0n;
      const band = BigInt(cidr?.staticBand ?? 0);
      const end = (cidr?.usable.first ?? 0n) + band;
      expect(all.slice(total - Number(band)).every((address) => valueOf(address) < end)).toBe(true);
    },
  );

  test('names why it refuses an address', () => {
    const allocator = allocatorOf('10.0.0.0/24');
    allocator.allocate('10.0.0.5');
    expect(() => allocator.allocate('10.0.0.5')).toThrow(AlreadyAllocatedError);
    expect(() => allocator.allocate('10.0.0.5')).toThrow('provided IP is already allocated');
    for (const outside of ['10.0.0.0', '10.0.0.255', '10.0.1.1', 'fd00::1']) {
      expect(() => allocator.allocate(outside)).toThrow(NotInRangeError);
    }
    expect(() => allocator.allocate('1.2.3.4')).toThrow(
      'the provided IP (1.2.3.4) is not in the valid range. The range of valid IPs is 10.0.0.0/24',
    );
    for (const odd of ['010.0.0.6', '10.0.0', '::ffff:10.0.0.6', '', 'x'.repeat(500), '10.0.0.6 ']) {
      expect(() => allocator.allocate(odd)).toThrow(NotCanonicalError);
      expect(allocator.has(odd)).toBe(false);
      expect(allocator.release(odd)).toBe(false);
    }
    expect(() => allocatorOf('fd00::/112').allocate('fd00::0a')).toThrow(NotCanonicalError);
    expect(() => allocator.allocate('x')).toThrow(AllocationError);
  });

  test('serves a /64 in all its width', () => {
    const allocator = allocatorOf('fd00:1:2:3::/64');
    const far = 'fd00:1:2:3:dead:beef:cafe:1';
    allocator.allocate(far);
    expect(() => allocator.allocate(far)).toThrow(AlreadyAllocatedError);
    allocator.allocate('fd00:1:2:3:ffff:ffff:ffff:ffff');
    expect(() => allocator.allocate('fd00:1:2:3::')).toThrow(NotInRangeError);
    const random = seeded(3);
    const picked = new Set<string>();
    for (let i = 0; i < 1000; i++) picked.add(allocator.allocateNext(random));
    expect(picked.size).toBe(1000);
    expect(allocator.used).toBe(1002);
    expect(allocator.free).toBe(Number((1n << 64n) - 1003n));
    for (const address of picked) expect(allocator.release(address)).toBe(true);
    expect(allocator.has(far)).toBe(true);
    expect(allocator.release(far)).toBe(true);
    expect(allocator.release(far)).toBe(false);
    expect(allocator.used).toBe(1);
  });

  test('behaves like a set of addresses over random histories', () => {
    const host = fc.integer({ min: 0, max: 63 });
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('allocate' as const, 'release', 'has'), host }),
      fc.record({ do: fc.constant('next' as const), host }),
    );
    for (const prefix of ['192.0.2.', '2001:db8::']) {
      const v4 = prefix.includes('.');
      const text = (host: number): string =>
        v4 ? prefix + String(host) : host === 0 ? prefix : prefix + host.toString(16);
      const usable = (host: number): boolean => host > 0 && (!v4 || host < 63);
      fc.assert(
        fc.property(fc.array(step, { maxLength: 150 }), fc.integer(), (steps, seed) => {
          const allocator = allocatorOf(v4 ? '192.0.2.0/26' : '2001:db8::/122');
          const model = new Set<string>();
          const random = seeded(seed);
          for (const { do: what, host } of steps) {
            const address = text(host);
            if (what === 'next') {
              if (model.size === (v4 ? 62 : 63))
                expect(() => allocator.allocateNext(random)).toThrow(RangeFullError);
              else {
                const got = allocator.allocateNext(random);
                expect(model.has(got)).toBe(false);
                model.add(got);
              }
            } else if (what === 'has') expect(allocator.has(address)).toBe(model.has(address));
            else if (what === 'release') expect(allocator.release(address)).toBe(model.delete(address));
            else if (!usable(host)) expect(() => allocator.allocate(address)).toThrow(NotInRangeError);
            else if (model.has(address))
              expect(() => allocator.allocate(address)).toThrow(AlreadyAllocatedError);
            else {
              allocator.allocate(address);
              model.add(address);
            }
            expect(allocator.used).toBe(model.size);
          }
          const hosts = Array.from({ length: 64 }, (_, host) => text(host));
          expect(hosts.filter((address) => allocator.has(address))).toEqual(
            hosts.filter((address) => model.has(address)),
          );
        }),
        { numRuns: 200 },
      );
    }
  });
});
