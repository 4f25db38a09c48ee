import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { ClusterCaches } from '../../../../src/view/caches.ts';
import { Journal } from '../../../../src/view/journal/journal.ts';
import { FixedInformers } from '../../../support/fixed-informers.ts';

const settings = { loadBalancerClass: 'servicenet.dev/load-balancer', isDefaultClass: true, compat: true };
const start = Date.UTC(2026, 10, 27, 20, 40);

/** A cluster whose time the test has. */
function clusterOf() {
  const informers = new FixedInformers();
  const caches = new ClusterCaches(informers, true);
  let nowMs = start;
  const journal = new Journal(caches, settings, () => nowMs);
  journal.begin();
  return {
    ...{ informers, caches, journal },
    /** Lets some milliseconds pass. @returns the time then. */
    pass: (milliseconds: number): number => (nowMs += milliseconds),
  };
}

/** With the members of its kind. */
type AnyObject = KubeObject & Readonly<Record<string, unknown>>;

function pod(name: string, ready: boolean, image = 'web:1'): AnyObject {
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name, labels: { app: 'web' } } },
    spec: { nodeName: 'node-1', containers: [{ name: 'web', image }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
}

function service(name: string, port: number): AnyObject {
  return {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop', name } },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.7', selector: { app: 'web' }, ports: [{ port }] },
    status: {},
  };
}

function event(name: string, about: string, reason: string, atMs: number): AnyObject {
  return {
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { namespace: 'shop', name } },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: about },
    ...{ type: 'Warning', reason, message: 'failed', lastTimestamp: new Date(atMs).toISOString() },
  };
}

/** All objects, as JSON in one order. */
function contentOf({ informers }: ClusterCaches): readonly string[] {
  return informers.flatMap(({ cache }) => [...cache.values()].map((each) => JSON.stringify(each))).toSorted();
}

describe('a cluster as it was', () => {
  const step = fc.record({
    object: fc.oneof(
      fc.record({ name: fc.constantFrom('a', 'b', 'c'), ready: fc.boolean() }),
      fc.record({ name: fc.constantFrom('x', 'y'), port: fc.constantFrom(80, 81) }),
    ),
    isDeleted: fc.boolean(),
    waitMs: fc.constantFrom(0, 1, 400, 5000),
  });

  test('is what was there then, whatever has changed since', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { informers, caches, journal, pass } = clusterOf();
        const seen = new Map<number, readonly string[]>([[pass(0), contentOf(caches)]]);
        for (const { object, isDeleted, waitMs } of steps) {
          const atMs = pass(waitMs);
          const made = 'port' in object ? service(object.name, object.port) : pod(object.name, object.ready);
          if (isDeleted) informers.delete(made);
          else informers.set([made]);
          // All that happens in one millisecond is one step.
          seen.set(atMs, contentOf(caches));
        }
        for (const [atMs, content] of seen) {
          const past = await journal.past(atMs);
          expect(contentOf(past.caches)).toEqual(content);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('has rows of then', async () => {
    const { informers, journal, pass } = clusterOf();
    informers.set([service('web', 80), pod('web-1', true)]);
    const before = pass(1000);
    pass(1000);
    informers.delete(service('web', 80));
    informers.set([pod('web-1', false)]);
    const { tables } = await journal.past(before);
    expect(tables.rows.service.get('shop/web')?.row).toMatchObject({ ports: '80/TCP' });
    expect(tables.rows.pod.get('shop/web-1')?.row.state).toBe('ready');
    const { tables: present } = await journal.past(pass(0));
    expect(present.rows.service.size).toBe(0);
    expect(present.rows.pod.get('shop/web-1')?.row.state).toBe('not ready');
  });
});

describe('changes', () => {
  test('are told near a time, with what they changed and an Event of then, but Events are not', () => {
    const { informers, journal, pass } = clusterOf();
    informers.set([pod('web-1', true)]);
    const failedMs = pass(60_500);
    informers.set([pod('web-1', false), event('e1', 'web-1', 'Unhealthy', failedMs - 500)]);
    pass(60_000);
    informers.set([pod('web-1', false, 'web:2')]);
    const added = { time: '2026-11-27T20:40:00.000Z', change: 'added', text: '' };
    const failed = {
      ...{ time: '2026-11-27T20:41:00.500Z', change: 'modified', text: 'not ready' },
      cause: { reason: 'Unhealthy', message: 'failed' },
    };
    const modified = { time: '2026-11-27T20:42:00.500Z', change: 'modified', text: 'spec.containers' };
    const name = { kind: 'Pod', namespace: 'shop', name: 'web-1' };
    const withName = (change: object): object => ({ ...name, ...change });
    expect(journal.near(Infinity, 'before', 10)).toEqual([modified, failed, added].map(withName));
    expect(journal.near(failedMs, 'before', 1)).toEqual([withName(failed)]);
    expect(journal.near(failedMs - 1, 'after', 1)).toEqual([withName(failed)]);
    expect(journal.near(failedMs, 'after', 10)).toEqual([withName(modified)]);
    expect(journal.row.buckets).toEqual([
      { time: '2026-11-27T20:40:00Z', changes: 1, warnings: 0 },
      { time: '2026-11-27T20:41:00Z', changes: 1, warnings: 1 },
      { time: '2026-11-27T20:42:00Z', changes: 1, warnings: 0 },
    ]);
  });

  test('are none where a node or an agent says that it is alive', () => {
    const { informers, journal, pass } = clusterOf();
    const lease = (atMs: number): AnyObject => ({
      ...{
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { namespace: 'kube-system', name: 'a' },
      },
      spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: new Date(atMs).toISOString() },
    });
    const node = (heartbeat: string): AnyObject => ({
      ...{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, spec: {} },
      status: { conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: heartbeat }] },
    });
    informers.set([lease(start), node('2026-11-27T20:40:00Z')]);
    const before = journal.near(Infinity, 'before', 10);
    expect(before).toHaveLength(2);
    for (let i = 0; i < 5; i++) informers.set([lease(pass(10_000)), node(`2026-11-27T20:41:0${i}Z`)]);
    expect(journal.near(Infinity, 'before', 10)).toEqual(before);
    // It was dead between.
    informers.set([lease(pass(120_000))]);
    expect(journal.near(Infinity, 'before', 1)).toMatchObject([{ kind: 'Lease', text: 'spec.renewTime' }]);
  });
});

describe('what is kept', () => {
  test('is an hour', () => {
    const { informers, journal, pass } = clusterOf();
    informers.set([pod('web-1', true)]);
    pass(30 * 60_000);
    informers.set([pod('web-1', false)]);
    const hourLater = pass(31 * 60_000);
    expect(journal.beginMs).toBe(hourLater - 3_600_000);
    expect(journal.near(Infinity, 'before', 10)).toMatchObject([{ text: 'not ready' }]);
    expect(journal.row.buckets).toHaveLength(1);
  });

  test('is 32 MiB of objects that were replaced; before, nothing is known', async () => {
    const { informers, caches, journal, pass } = clusterOf();
    const large = (n: number): AnyObject => {
      const { metadata, ...rest } = service(`web-${n % 10}`, 80 + n);
      return { ...rest, metadata: { ...metadata, annotations: { text: 'x'.repeat(100_000) } } };
    };
    const seen = new Map<number, readonly string[]>();
    for (let n = 0; n < 1000; n++) {
      informers.set([large(n)]);
      if (n % 100 === 0) seen.set(pass(0), contentOf(caches));
      pass(1000);
    }
    const known = journal.beginMs ?? Infinity;
    expect(known).toBeGreaterThan(start + 500_000);
    expect(known).toBeLessThan(start + 800_000);
    for (const [atMs, content] of seen) {
      if (atMs < known) continue;
      const past = await journal.past(atMs);
      expect(contentOf(past.caches)).toEqual(content);
    }
  });
});
