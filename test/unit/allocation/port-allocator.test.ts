import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AlreadyAllocatedError,
  NotInRangeError,
  RangeFullError,
} from '../../../src/allocation/address-range.ts';
import { parsePortRange, PortAllocator } from '../../../src/allocation/port-allocator.ts';

describe('PortAllocator', () => {
  test('keeps 30000 to 30085 of the default range for explicit ports', () => {
    const ports = new PortAllocator({ first: 30000, last: 32767 });
    expect(ports.allocateNext(() => 0)).toBe(30086);
    expect(ports.allocateNext(() => 0.9999999)).toBe(32767);
    expect(ports.allocateNext(() => 0.9999999)).toBe(30087);
    while (ports.free > 86) ports.allocateNext(() => 0.3);
    const low: number[] = [];
    while (ports.free > 0) low.push(ports.allocateNext(() => 0));
    expect(low).toEqual(Array.from({ length: 86 }, (_, i) => 30000 + i));
    expect(() => ports.allocateNext(() => 0)).toThrow(RangeFullError);
  });

  test('names why it refuses a port', () => {
    const ports = new PortAllocator({ first: 30000, last: 32767 });
    ports.allocate(30007);
    expect(() => ports.allocate(30007)).toThrow(AlreadyAllocatedError);
    expect(() => ports.allocate(30007)).toThrow('provided port is already allocated');
    for (const port of [29999, 32768, -1, 0, 70000, 30000.5, NaN]) {
      expect(() => ports.allocate(port)).toThrow(NotInRangeError);
      expect(ports.has(port)).toBe(false);
      expect(ports.release(port)).toBe(false);
    }
    expect(() => ports.allocate(80)).toThrow(
      'provided port is not in the valid range. The range of valid ports is 30000-32767',
    );
  });

  test('a dry run checks explicit ports against the bitmap only and counts up from 32769', () => {
    const ports = new PortAllocator({ first: 30000, last: 32767 });
    ports.allocate(30001);
    const dry = ports.dryRun();
    expect(() => dry.allocate(30001)).toThrow(AlreadyAllocatedError);
    expect([dry.allocateNext(Math.random), dry.allocateNext(Math.random)]).toEqual([32769, 32770]);
    dry.allocate(40000);
    expect(dry.allocateNext(Math.random)).toBe(40001);
    expect(() => dry.allocate(40001)).toThrow(AlreadyAllocatedError);
    const other = ports.dryRun();
    other.allocate(80);
    expect(other.allocateNext(Math.random)).toBe(81);
    expect([ports.used, ports.has(30001)]).toEqual([1, true]);
  });

  test('behaves like a set of ports over random histories', () => {
    const port = fc.integer({ min: 98, max: 142 });
    const step = fc.tuple(fc.constantFrom('allocate', 'release', 'next', 'has'), port);
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), fc.double({ min: 0, max: 0.999 }), (steps, random) => {
        const ports = new PortAllocator({ first: 100, last: 140 });
        const model = new Set<number>();
        for (const [what, port] of steps) {
          const inside = port >= 100 && port <= 140;
          if (what === 'has') expect(ports.has(port)).toBe(model.has(port));
          else if (what === 'release') expect(ports.release(port)).toBe(model.delete(port));
          else if (what === 'next') {
            if (model.size === 41) expect(() => ports.allocateNext(() => random)).toThrow(RangeFullError);
            else model.add(ports.allocateNext(() => random));
          } else if (!inside) expect(() => ports.allocate(port)).toThrow(NotInRangeError);
          else if (model.has(port)) expect(() => ports.allocate(port)).toThrow(AlreadyAllocatedError);
          else {
            ports.allocate(port);
            model.add(port);
          }
          expect(ports.used).toBe(model.size);
        }
        const copy = new PortAllocator({ first: 100, last: 140 });
        copy.restore([...model, 99, 141]);
        expect(copy.used).toBe(model.size);
        for (const port of model) expect([ports.has(port), copy.has(port)]).toEqual([true, true]);
      }),
    );
  });
});

describe('parsePortRange', () => {
  test.each([
    ['30000-32767', { first: 30000, last: 32767 }],
    ['30000+100', { first: 30000, last: 30100 }],
    ['8080', { first: 8080, last: 8080 }],
    [' 1-2 ', { first: 1, last: 2 }],
  ])('%j', (text, range) => {
    expect(parsePortRange(text)).toEqual(range);
  });

  test.each(['', 'x', '2-1', '1-65536', '65536', '1-', '-1', '1-2-3', '65000+1000', '1.5'])(
    'refuses %j',
    (text) => {
      expect(parsePortRange(text)).toBeUndefined();
    },
  );
});
