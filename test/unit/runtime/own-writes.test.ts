import { describe, expect, it } from 'vitest';
import { SharedInformer } from '../../../src/client/informers/shared-informer.ts';
import { leases } from '../../../src/client/resources.ts';
import { compareResourceVersions } from '../../../src/objects/meta.ts';
import type { Lease } from '../../../src/objects/types/coordination.generated.ts';
import { OwnWrites } from '../../../src/runtime/own-writes.ts';
import { controllerContext } from '../../support/controller-context.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const lease = (resourceVersion: string, uid = 'u', more: Partial<Lease['metadata']> = {}): Lease => ({
  metadata: { name: 'l', namespace: 'n', uid, resourceVersion, ...more },
  spec: {},
});

interface Harness {
  readonly clock: FakeClock;
  readonly informer: SharedInformer<Lease>;
  readonly writes: OwnWrites<Lease>;
  /** The keys that were enqueued. */
  readonly woken: string[];
  /** For each event of the cache: whether it is the echo of an own write, and the old version too. */
  readonly echoes: boolean[];
}

function start(): Harness {
  const clock = new FakeClock();
  const context = controllerContext(clock);
  const informer = new SharedInformer({ resource: leases, clock, log: context.log });
  const woken: string[] = [];
  const writes = new OwnWrites<Lease>({ context, enqueue: (key) => woken.push(key) }, informer);
  const echoes: boolean[] = [];
  const note = (object: Lease): void => {
    echoes.push(writes.isEcho(object));
  };
  informer.addHandler({ added: note, updated: note, deleted: note });
  return { clock, informer, writes, woken, echoes };
}

describe('OwnWrites', () => {
  it('waits until the cache shows a write, or something newer', () => {
    for (const shown of ['11', '100']) {
      const { informer, writes } = start();
      informer.upsert(lease('9'), false);
      expect(writes.pendingMs('o')).toBe(0);
      writes.written('o', lease('11'));
      expect(writes.pendingMs('o')).toBe(60_000);
      expect(writes.pendingMs('other')).toBe(0);
      informer.upsert(lease('10'), false);
      expect(writes.pendingMs('o')).toBeGreaterThan(0);
      informer.upsert(lease(shown), false);
      expect(writes.pendingMs('o')).toBe(0);
    }
  });

  it('takes the deletion of an own version by another client for a change', () => {
    for (const seenFirst of [true, false]) {
      const { informer, writes, echoes } = start();
      // The event may come before the answer, or after it.
      if (seenFirst) informer.upsert(lease('11'), false);
      writes.written('o', lease('11'));
      if (!seenFirst) informer.upsert(lease('11'), false);
      informer.remove(lease('11'));
      expect(echoes.at(-1)).toBe(false);
    }
  });

  it('waits for every object of an owner', () => {
    const { informer, writes } = start();
    writes.written('o', lease('11'));
    writes.written('o', lease('12', 'v', { name: 'second' }));
    informer.upsert(lease('11'), false);
    expect(writes.pendingMs('o')).toBeGreaterThan(0);
    informer.upsert(lease('12', 'v', { name: 'second' }), false);
    expect(writes.pendingMs('o')).toBe(0);
  });

  it('does not wait for what the cache showed before the answer came', () => {
    const { informer, writes } = start();
    informer.upsert(lease('11'), false);
    writes.written('o', lease('11'));
    expect(writes.pendingMs('o')).toBe(0);
    informer.remove(lease('12'));
    writes.written('o', lease('11'));
    expect(writes.pendingMs('o')).toBe(0);
  });

  it('does not wait for an object that another client deleted', () => {
    const { informer, writes } = start();
    informer.upsert(lease('5'), false);
    writes.written('o', lease('11'));
    informer.remove(lease('12'));
    expect(writes.pendingMs('o')).toBe(0);
  });

  it('waits until a deleted object is gone, is another one, or is on its way', () => {
    const { informer, writes } = start();
    for (const end of [
      () => informer.remove(lease('9')),
      () => informer.upsert(lease('9', 'other'), false),
      () => informer.upsert(lease('9', 'u', { deletionTimestamp: '2026-01-01T00:00:00Z' }), false),
    ]) {
      informer.upsert(lease('5'), false);
      writes.deleting('o', lease('5'));
      expect(writes.pendingMs('o')).toBeGreaterThan(0);
      informer.upsert(lease('6'), false);
      expect(writes.pendingMs('o')).toBeGreaterThan(0);
      end();
      expect(writes.pendingMs('o')).toBe(0);
      informer.remove(lease('9'));
    }
    writes.deleting('o', lease('5'));
    expect(writes.pendingMs('o')).toBe(0);
  });

  it('waits for no deletion that failed', () => {
    const { informer, writes, echoes } = start();
    informer.upsert(lease('5'), false);
    writes.deleting('o', lease('5'));
    writes.notDeleted(lease('5'));
    expect(writes.pendingMs('o')).toBe(0);
    informer.remove(lease('6'));
    expect(echoes).toEqual([false, false]);
  });

  it('gives up after a minute', async () => {
    const { clock, writes } = start();
    writes.written('o', lease('11'));
    await clock.advance(59_999);
    expect(writes.pendingMs('o')).toBe(1);
    await clock.advance(1);
    expect(writes.pendingMs('o')).toBe(0);
  });

  it('wakes the owner that found the cache behind, and nobody else', () => {
    const { informer, writes, woken } = start();
    writes.written('o', lease('11'));
    informer.upsert(lease('11'), false);
    expect(woken).toEqual([]);
    writes.written('o', lease('12'));
    expect(writes.pendingMs('o')).toBeGreaterThan(0);
    informer.upsert(lease('12'), false);
    expect(woken).toEqual(['o']);
    writes.written('o', lease('13'));
    informer.upsert(lease('13'), false);
    expect(woken).toEqual(['o']);
  });

  it('tells the events of own writes from the changes of others', () => {
    const { informer, writes, echoes } = start();
    writes.written('o', lease('11'));
    for (const version of ['10', '11', '12']) informer.upsert(lease(version), false);
    // A write is not yet answered when its event comes: what was taken for a change of others is known later.
    expect(echoes).toEqual([false, true, false]);
    informer.upsert(lease('13'), false);
    const unanswered = informer.cache.get('n/l');
    writes.written('o', lease('13'));
    expect(unanswered !== undefined && writes.isEcho(unanswered)).toBe(true);
  });

  it('tells own deletions from those of others', () => {
    const { informer, writes, echoes } = start();
    informer.upsert(lease('5'), false);
    writes.deleting('o', lease('5'));
    informer.remove(lease('6'));
    informer.upsert(lease('7', 'next'), false);
    writes.written('o', lease('8', 'next'));
    informer.remove(lease('9', 'next'));
    expect(echoes).toEqual([false, true, false, false]);
  });
});

describe('compareResourceVersions', () => {
  it.each([
    ['9', '10', -1],
    ['10', '9', 1],
    ['10', '10', 0],
    ['99999999999999999999', '100000000000000000000', -1],
    ['', '1', -1],
    ['x', '', 0],
  ])('%s and %s: %d', (a, b, sign) => {
    expect(Math.sign(compareResourceVersions(a, b))).toBe(sign);
  });
});
