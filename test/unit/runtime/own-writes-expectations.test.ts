import { describe, expect, it } from 'vitest';
import { Expectations } from '../../../src/runtime/own-writes.ts';
import { SharedInformer } from '../../../src/client/informers/shared-informer.ts';
import { leases } from '../../../src/client/resources.ts';
import type { Lease } from '../../../src/objects/types/coordination.generated.ts';
import { controllerContext } from '../../support/controller-context.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const lease = (resourceVersion: string, uid = 'u', more: Partial<Lease['metadata']> = {}): Lease => ({
  metadata: { name: 'l', namespace: 'n', uid, resourceVersion, ...more },
  spec: {},
});

function start(): { clock: FakeClock; informer: SharedInformer<Lease>; expectations: Expectations<Lease> } {
  const clock = new FakeClock();
  const { log } = controllerContext(clock);
  const informer = new SharedInformer({ resource: leases, clock, log });
  return { clock, informer, expectations: new Expectations(informer, clock) };
}

describe('Expectations', () => {
  it('waits until the cache shows a write, or something newer', () => {
    const { informer, expectations } = start();
    informer.upsert(lease('9'), false);
    expect(expectations.settled('o')).toBe(true);
    expectations.written('o', lease('11'));
    expect(expectations.settled('o')).toBe(false);
    expect(expectations.settled('other')).toBe(true);
    informer.upsert(lease('10'), false);
    expect(expectations.settled('o')).toBe(false);
    informer.upsert(lease('100'), false);
    expect(expectations.settled('o')).toBe(true);
  });

  it('does not wait for what the cache showed before the answer came', () => {
    const { informer, expectations } = start();
    informer.upsert(lease('11'), false);
    expectations.written('o', lease('11'));
    expect(expectations.settled('o')).toBe(true);
    informer.remove(lease('12'));
    expectations.written('o', lease('11'));
    expect(expectations.settled('o')).toBe(true);
  });

  it('does not wait for an object that another client deleted', () => {
    const { informer, expectations } = start();
    informer.upsert(lease('5'), false);
    expectations.written('o', lease('11'));
    informer.remove(lease('12'));
    expect(expectations.settled('o')).toBe(true);
  });

  it('waits until a deleted object is gone, is another one, or is on its way', () => {
    const { informer, expectations } = start();
    for (const end of [
      () => informer.remove(lease('9')),
      () => informer.upsert(lease('9', 'other'), false),
      () => informer.upsert(lease('9', 'u', { deletionTimestamp: '2026-01-01T00:00:00Z' }), false),
    ]) {
      informer.upsert(lease('5'), false);
      expectations.deleted('o', lease('5'));
      expect(expectations.settled('o')).toBe(false);
      informer.upsert(lease('6'), false);
      expect(expectations.settled('o')).toBe(false);
      end();
      expect(expectations.settled('o')).toBe(true);
      informer.remove(lease('9'));
    }
    expectations.deleted('o', lease('5'));
    expect(expectations.settled('o')).toBe(true);
  });

  it('gives up after a minute', async () => {
    const { clock, expectations } = start();
    expectations.written('o', lease('11'));
    await clock.advance(59_999);
    expect(expectations.settled('o')).toBe(false);
    await clock.advance(1);
    expect(expectations.settled('o')).toBe(true);
  });
});
