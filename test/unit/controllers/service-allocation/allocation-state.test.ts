import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AllocationState,
  RangeQueues,
} from '../../../../src/controllers/service-allocation/allocation-state.ts';
import { specValues, viewOf } from '../../../../src/controllers/service-allocation/plan-view.ts';
import type { Service } from '../../../../src/objects/types/core.generated.ts';
import { service } from './samples.ts';

const range = { first: 30_000, last: 30_009 };
const cidr = { text: '10.0.0.0/28', ready: true };

function used(allocations: AllocationState): [number, number] {
  const [addresses, ports] = [...allocations.ranges()].map((each) => each.used);
  return [addresses ?? -1, ports ?? -1];
}

describe('AllocationState', () => {
  it('has a value in use as long as any object has it, in any order of events', () => {
    const freed: string[] = [];
    const allocations = new AllocationState(range, (value) => freed.push(value));
    const a = service('a', {
      clusterIP: '10.0.0.2',
      type: 'NodePort',
      ports: [{ port: 80, nodePort: 30_001 }],
    });
    const b = service('b', { clusterIP: '10.0.0.2' });
    allocations.set(viewOf(a), '1');
    expect([...allocations.set(viewOf(b), '2')]).toEqual(['default/a']);
    allocations.addIPAddress('10.0.0.2');
    allocations.setCidrs([cidr]);
    expect(used(allocations)).toEqual([1, 1]);
    expect([...allocations.delete('default/a')]).toEqual(['default/b']);
    allocations.delete('default/b');
    expect(freed).toEqual(['30001']);
    expect(used(allocations)).toEqual([1, 0]);
    allocations.deleteIPAddress('10.0.0.2');
    expect(freed).toEqual(['30001', '10.0.0.2']);
    expect(used(allocations)).toEqual([0, 0]);
  });

  it('keeps reserved values until they are released', () => {
    const allocations = new AllocationState(range);
    allocations.setCidrs([cidr]);
    const reserved = Array.from({ length: 14 }, () =>
      allocations.reserveAddress('default/a', 'IPv4', () => 0),
    );
    expect(new Set(reserved).size).toBe(14);
    expect(() => allocations.reserveAddress('default/b', 'IPv4', () => 0)).toThrow('range is full');
    expect(allocations.hasFree('IPv4')).toBe(false);
    allocations.releaseReserved('default/a');
    expect(allocations.hasFree('IPv4')).toBe(true);
  });

  it('reserves no address of a range that is not ready, or of another family', () => {
    const allocations = new AllocationState(range);
    allocations.setCidrs([{ ...cidr, ready: false }]);
    expect(() => allocations.reserveAddress('default/a', 'IPv4', () => 0)).toThrow('range is full');
    expect(allocations.inRange('10.0.0.3')).toBe(true);
    allocations.setCidrs([cidr]);
    expect(() => allocations.reserveAddress('default/a', 'IPv6', () => 0)).toThrow('range is full');
    expect(allocations.reserveAddress('default/a', 'IPv4', () => 0)).toBe('10.0.0.1');
  });

  it('has exactly the values of the Services in use, after any history', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const step = fc.record({
      name,
      address: fc.nat({ max: 5 }),
      port: fc.nat({ max: 5 }),
      gone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const allocations = new AllocationState(range);
        allocations.setCidrs([cidr]);
        const present = new Map<string, Service>();
        for (const { name: each, address, port, gone } of steps) {
          const key = `default/${each}`;
          if (gone) {
            present.delete(key);
            allocations.delete(key);
            continue;
          }
          const spec = {
            clusterIP: `10.0.0.${address + 1}`,
            type: 'NodePort',
            ports: [{ port: 80, nodePort: 30_000 + port }],
          };
          present.set(key, service(each, spec));
          allocations.set(viewOf(service(each, spec)), '1');
        }
        const values = new Set([...present.values()].flatMap((each) => [...specValues(viewOf(each))]));
        const ports = [...values].filter((value) => /^\d+$/.test(value)).length;
        expect(used(allocations)).toEqual([values.size - ports, ports]);
      }),
    );
  });
});

describe('RangeQueues', () => {
  it('return each Service once per freed value', () => {
    const queues = new RangeQueues();
    queues.add('port', 'a');
    queues.add('port', 'b');
    expect(queues.next('port')).toBeUndefined();
    queues.freed('port');
    expect([queues.next('port'), queues.next('port'), queues.next('port')]).toEqual(['a', 'b', undefined]);
    queues.add('port', 'a');
    expect(queues.next('port')).toBeUndefined();
    queues.freed('port');
    queues.delete('b');
    expect([queues.next('port'), queues.next('port')]).toEqual(['a', undefined]);
  });

  it('keep a Service in one queue', () => {
    const queues = new RangeQueues();
    queues.add('port', 'a');
    queues.add('IPv4', 'a');
    queues.freed('port');
    expect(queues.next('port')).toBeUndefined();
    expect([...queues.ranges()]).toEqual(['IPv4']);
  });
});
