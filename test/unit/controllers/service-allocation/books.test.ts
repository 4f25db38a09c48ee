import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Books } from '../../../../src/controllers/service-allocation/books.ts';
import { specValues, viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import { Waiters } from '../../../../src/controllers/service-allocation/waiters.ts';
import type { Service } from '../../../../src/objects/service.ts';
import { service } from './samples.ts';

const range = { first: 30_000, last: 30_009 };
const cidr = { text: '10.0.0.0/28', ready: true };

function used(books: Books): [number, number] {
  const [addresses, ports] = [...books.ranges()].map((each) => each.used);
  return [addresses ?? -1, ports ?? -1];
}

describe('Books', () => {
  it('know a value as long as anybody has it, in any order of events', () => {
    const freed: string[] = [];
    const books = new Books(range, (value) => freed.push(value));
    const a = service('a', {
      clusterIP: '10.0.0.2',
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 30_001 }],
    });
    const b = service('b', { clusterIP: '10.0.0.2' });
    books.set(viewOf(a), '1');
    expect([...books.set(viewOf(b), '2')]).toEqual(['default/a']);
    books.block('10.0.0.2');
    books.setCidrs([cidr]);
    expect(used(books)).toEqual([1, 1]);
    expect([...books.delete('default/a')]).toEqual(['default/b']);
    books.delete('default/b');
    expect(freed).toEqual(['30001']);
    expect(used(books)).toEqual([1, 0]);
    books.unblock('10.0.0.2');
    expect(freed).toEqual(['30001', '10.0.0.2']);
    expect(used(books)).toEqual([0, 0]);
  });

  it('keep what was picked until it is put back', () => {
    const books = new Books(range);
    books.setCidrs([cidr]);
    const picked = Array.from({ length: 14 }, () => books.pickAddress('default/a', 'IPv4', () => 0));
    expect(new Set(picked).size).toBe(14);
    expect(() => books.pickAddress('default/b', 'IPv4', () => 0)).toThrow('range is full');
    expect(books.hasFree('IPv4')).toBe(false);
    books.putBack('default/a');
    expect(books.hasFree('IPv4')).toBe(true);
  });

  it('give nothing of a range that is not ready, and nothing of another family', () => {
    const books = new Books(range);
    books.setCidrs([{ ...cidr, ready: false }]);
    expect(() => books.pickAddress('default/a', 'IPv4', () => 0)).toThrow('range is full');
    expect(books.inRange('10.0.0.3')).toBe(true);
    books.setCidrs([cidr]);
    expect(() => books.pickAddress('default/a', 'IPv6', () => 0)).toThrow('range is full');
    expect(books.pickAddress('default/a', 'IPv4', () => 0)).toBe('10.0.0.1');
  });

  it('show exactly what Services have, after any history', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const step = fc.record({
      name,
      address: fc.nat({ max: 5 }),
      port: fc.nat({ max: 5 }),
      gone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const books = new Books(range);
        books.setCidrs([cidr]);
        const present = new Map<string, Service>();
        for (const { name: each, address, port, gone } of steps) {
          const key = `default/${each}`;
          if (gone) {
            present.delete(key);
            books.delete(key);
            continue;
          }
          const spec = {
            clusterIP: `10.0.0.${address + 1}`,
            type: 'NodePort',
            ports: [{ port: 80, nodePort: 30_000 + port }],
          };
          present.set(key, service(each, spec));
          books.set(viewOf(service(each, spec)), '1');
        }
        const values = new Set([...present.values()].flatMap((each) => [...specValues(viewOf(each))]));
        const ports = [...values].filter((value) => /^\d+$/.test(value)).length;
        expect(used(books)).toEqual([values.size - ports, ports]);
      }),
    );
  });
});

describe('Waiters', () => {
  it('let each try once for all that was freed', () => {
    const waiters = new Waiters();
    waiters.wait('port', 'a');
    waiters.wait('port', 'b');
    expect(waiters.next('port')).toBeUndefined();
    waiters.freed('port');
    expect([waiters.next('port'), waiters.next('port'), waiters.next('port')]).toEqual(['a', 'b', undefined]);
    waiters.wait('port', 'a');
    expect(waiters.next('port')).toBeUndefined();
    waiters.freed('port');
    waiters.leave('b');
    expect([waiters.next('port'), waiters.next('port')]).toEqual(['a', undefined]);
  });

  it('keep a Service in one line', () => {
    const waiters = new Waiters();
    waiters.wait('port', 'a');
    waiters.wait('IPv4', 'a');
    waiters.freed('port');
    expect(waiters.next('port')).toBeUndefined();
    expect([...waiters.pools()]).toEqual(['IPv4']);
  });
});
