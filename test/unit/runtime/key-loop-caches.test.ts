import { describe, expect, it } from 'vitest';
import type { Informer, Informers } from '../../../src/client/informers/informer.ts';
import { SharedInformer } from '../../../src/client/informers/shared-informer.ts';
import { leases, resourceName, type ResourceType, services } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { keyOf, type KubeObject } from '../../../src/objects/meta.ts';
import { notFound } from '../../../src/objects/status.ts';
import {
  type Change,
  type ControllerSpec,
  KeyLoop,
  ownKey,
  type Reconcile,
  runnableOf,
} from '../../../src/runtime/key-loop.ts';
import { controllerContext } from '../../support/controller-context.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** What a reflector calls. */
interface Feed {
  upsert(object: KubeObject, fromList: boolean): void;
  remove(object: KubeObject): void;
  listed(slices: { due: boolean; yield(): Promise<void> }): Promise<void>;
}

interface Harness {
  readonly clock: FakeClock;
  readonly context: ReturnType<typeof controllerContext>;
  readonly feed: (resource: ResourceType) => Feed;
  /** The first list of a cache has come. */
  readonly listed: (resource: ResourceType) => Promise<void>;
}

function harness(transport?: Transport): Harness {
  const clock = new FakeClock();
  const feeds = new Map<string, Feed>();
  const base = controllerContext(clock, transport);
  const informers: Informers = {
    informer<T extends KubeObject>(resource: ResourceType<T>): Informer<T> {
      const informer = new SharedInformer({ resource, clock, log: base.log });
      feeds.set(resourceName(resource), informer);
      return informer;
    },
    present: () => undefined,
  };
  const feed = (resource: ResourceType): Feed => {
    const made = feeds.get(resourceName(resource));
    if (made === undefined) throw new Error(`nobody reads ${resourceName(resource)}`);
    return made;
  };
  return {
    clock,
    context: { ...base, informers },
    feed,
    listed: (resource) => feed(resource).listed({ due: false, yield: () => Promise.resolve() }),
  };
}

const object = (name: string, resourceVersion = '1', labels: Record<string, string> = {}): KubeObject => ({
  metadata: { name, namespace: 'n', uid: name, resourceVersion, labels },
});

/** A reconcile that notes its keys. */
const noted =
  (ran: string[]): Reconcile =>
  (key) => {
    ran.push(key);
    return Promise.resolve(undefined);
  };

describe('KeyLoop', () => {
  it('reconciles nothing before every cache has synced', async () => {
    const { clock, context, listed } = harness();
    const ran: string[] = [];
    const loop = new KeyLoop(context, 'test', {}, (own) => {
      own.cache(leases);
      own.cache(services);
      return noted(ran);
    });
    const stop = new AbortController();
    const ended = loop.run(stop.signal);
    loop.enqueue('a');
    await listed(leases);
    await clock.advance(0);
    expect(ran).toEqual([]);
    await listed(services);
    await clock.advance(0);
    expect(ran).toEqual(['a']);
    stop.abort();
    await ended;
  });

  it('enqueues the keys of a change, and those of the first list after the others', async () => {
    const { clock, context, feed, listed } = harness();
    const ran: string[] = [];
    const changes: Change<KubeObject>[] = [];
    const loop = new KeyLoop(context, 'test', { workers: 1 }, (own) => {
      own.on(own.cache(leases), (change) => {
        changes.push(change);
        return [keyOf(change.object), 'all'];
      });
      return noted(ran);
    });
    const stop = new AbortController();
    const ended = loop.run(stop.signal);
    feed(leases).upsert(object('old'), true);
    await listed(leases);
    feed(leases).upsert(object('new'), false);
    await clock.advance(0);
    expect(ran).toEqual(['all', 'n/new', 'n/old']);
    feed(leases).upsert(object('new', '2'), false);
    feed(leases).remove(object('old'));
    await clock.advance(0);
    expect(ran.slice(3)).toEqual(['n/new', 'all', 'n/old']);
    expect(changes).toMatchObject([
      { kind: 'added', object: object('old'), initial: true },
      { kind: 'added', object: object('new'), initial: false },
      { kind: 'updated', object: object('new', '2'), old: object('new') },
      { kind: 'deleted', object: object('old') },
    ]);
    stop.abort();
    await ended;
  });

  it('gives a cache its indexes', () => {
    const { context, feed } = harness();
    const found: string[] = [];
    new KeyLoop(context, 'test', {}, (own) => {
      const cache = own.cache(leases, {
        indexes: { app: ({ metadata }) => [metadata.labels?.['app'] ?? ''] },
      });
      own.on(cache, () => {
        found.push(...cache.cache.byIndex('app', 'web').map(keyOf));
        return [];
      });
      return noted([]);
    });
    feed(leases).upsert(object('a', '1', { app: 'db' }), false);
    expect(found).toEqual([]);
    feed(leases).upsert(object('b', '1', { app: 'web' }), false);
    expect(found).toEqual(['n/b']);
  });

  it('runs a second queue beside its own, with caches and workers of its own', async () => {
    const { clock, context, feed, listed } = harness();
    const ran: string[] = [];
    const aside: string[] = [];
    const loop = new KeyLoop(context, 'first', {}, (own) => {
      own.cache(leases);
      own.beside('second', { workers: 1 }, (second) => {
        second.on(second.cache(services), ownKey);
        return (key) => {
          aside.push(key);
          own.enqueue(`from ${key}`);
          return Promise.resolve(undefined);
        };
      });
      return noted(ran);
    });
    const stop = new AbortController();
    const ended = loop.run(stop.signal);
    await listed(services);
    feed(services).upsert(object('web'), false);
    await clock.advance(0);
    expect([ran, aside]).toEqual([[], ['n/web']]);
    await listed(leases);
    await clock.advance(0);
    expect(ran).toEqual(['from n/web']);
    const { values } = await context.metrics.reconciles.get();
    expect(values.map(({ labels }) => labels.controller).sort()).toEqual(['first', 'second']);
    stop.abort();
    await ended;
  });

  it('retries a key with the priority that it came with', async () => {
    const { clock, context, feed, listed } = harness();
    const ran: string[] = [];
    let unblock: () => void = () => undefined;
    const loop = new KeyLoop(context, 'test', { workers: 1 }, (own) => {
      own.on(own.cache(leases), ownKey);
      return (key) => {
        ran.push(key);
        if (key === 'busy') return new Promise((resolve) => (unblock = () => resolve(undefined)));
        return ran.length === 1 ? Promise.reject(new Error('no')) : Promise.resolve(undefined);
      };
    });
    const stop = new AbortController();
    const ended = loop.run(stop.signal);
    feed(leases).upsert(object('old'), true);
    await listed(leases);
    await clock.advance(0);
    loop.enqueue('busy');
    // Its retry is due while the worker is busy, and the change comes after it.
    await clock.advance(1000);
    loop.enqueue('changed');
    unblock();
    await clock.advance(0);
    expect(ran).toEqual(['n/old', 'busy', 'changed', 'n/old']);
    stop.abort();
    await ended;
  });
});

describe('runnableOf', () => {
  it('starts a controller of a kind when the server serves it', async () => {
    let isServed = false;
    const transport: Transport = {
      server: 'https://test',
      request: () => {
        if (!isServed) return Promise.reject(notFound({ group: '', resource: 'leases' }, ''));
        const json = (): unknown => ({ kind: 'List', apiVersion: 'v1', metadata: {}, items: [] });
        return Promise.resolve({ status: 200, headers: {}, bytes: Buffer.alloc(0), json });
      },
      stream: () => Promise.reject(new Error('no watches')),
      close: () => Promise.resolve(),
    };
    const { clock, context } = harness(transport);
    const ran: string[] = [];
    const spec: ControllerSpec = {
      name: 'test-controller',
      eventSource: 'test',
      queue: 'test',
      where: { serves: leases, work: 'egress QoS' },
      build(loop) {
        loop.enqueue('a');
        return noted(ran);
      },
    };
    const stop = new AbortController();
    const ended = runnableOf(spec, context).run(stop.signal);
    await clock.advance(100_000);
    expect(ran).toEqual([]);
    isServed = true;
    await clock.advance(15_000);
    expect(ran).toEqual(['a']);
    stop.abort();
    await ended;
  });
});
