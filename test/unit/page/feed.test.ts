import { expect, test } from 'vitest';
import { Feed } from '../../../src/page/feed.ts';
import { type Follow, mostPods } from '../../../src/page/messages.ts';
import { recordAt } from '../../../src/objects/json.ts';
import { contentOf, servicesOf } from '../commands/top/rows-of-top.ts';

const info = { server: '', kind: 'up', version: '', clusterFlags: [] } as const;

function followedOf(pods: number, isLoading: boolean) {
  const { tables, detailOf } = contentOf({
    ...servicesOf({ name: 'cart', clusterIP: '10.96.0.1', pods: ['ready'] }),
    namespace: [
      { key: 'shop', name: 'shop', services: 1, pods: 1 },
      { key: 'crowd', name: 'crowd', services: 0, pods: pods - 1 },
    ],
  });
  const loading = isLoading ? [{ kind: 'Pod', read: 1 }] : [];
  return { status: { loading, forbidden: [] }, tables: { rows: tables, detailOf } };
}

/** How many rows of each kind a message has. */
function countsIn(message: string): Record<string, number> {
  const rows = Object.entries(recordAt(recordAt(JSON.parse(message))['rows']));
  return Object.fromEntries(
    rows.flatMap(([kind, list]) => (Array.isArray(list) && list.length > 0 ? [[kind, list.length]] : [])),
  );
}

/** What a tab gets first. */
async function sentTo(follow: Follow, pods: number): Promise<Record<string, number>> {
  return countsIn(await new Feed(follow, followedOf(pods, false), info, 0, () => 0).state());
}

const everything = { service: 1, pod: 1, namespace: 2 };

test('the Map of a crowded cluster gets its namespaces alone, until one is chosen, or all', async () => {
  expect(await sentTo({ view: 'map' }, mostPods + 1)).toEqual({ namespace: 2 });
  expect(await sentTo({ view: 'map' }, mostPods)).toEqual(everything);
  expect(await sentTo({ view: 'map', namespace: 'shop' }, mostPods + 1)).toEqual(everything);
  expect(await sentTo({ view: 'map', all: true }, mostPods + 1)).toEqual(everything);
});

test('the form of a way gets no Pods of a crowded cluster, until a namespace is chosen', async () => {
  expect(await sentTo({ view: 'way' }, mostPods + 1)).toEqual({ service: 1, namespace: 2 });
  expect(await sentTo({ view: 'way' }, mostPods)).toEqual(everything);
  expect(await sentTo({ view: 'way', namespace: 'shop' }, mostPods + 1)).toEqual(everything);
});

const changed = {
  ...{ service: new Map(), slice: new Map(), pod: new Map(), workload: new Map(), node: new Map() },
  ...{ policy: new Map(), namespace: new Map(), httpRule: new Map(), pool: new Map(), address: new Map() },
  ...{ waiting: new Map(), announcer: new Map(), egressAddress: new Map(), event: new Map() },
  problem: new Map(),
};

test('while Pods are read it gets none, and then the decision', async () => {
  for (const [pods, first, then, gone] of [
    [10, { service: 1, namespace: 2 }, { pod: 1 }, {}],
    [mostPods + 1, { service: 1, namespace: 2 }, {}, { service: ['shop/cart'] }],
  ] as const) {
    const followed = followedOf(pods, true);
    const feed = new Feed({ view: 'map' }, followed, info, 0, () => 0);
    expect(countsIn(await feed.state())).toEqual(first);
    expect(feed.changedMeanwhile()).toEqual([]);
    followed.status.loading = [];
    const message = feed.changes(changed) ?? '';
    expect(countsIn(message)).toEqual(then);
    expect(recordAt(JSON.parse(message))['gone']).toEqual(gone);
    // Decided.
    expect(feed.changes(changed)).toBeUndefined();
  }
});

test('a tab that sees what was hears that the cluster cannot be reached, and nothing else of it', () => {
  const past = new Feed({ view: 'map', at: '2026-11-27T20:41:05Z' }, followedOf(1, false), info, 0, () => 0);
  const present = new Feed({ view: 'map' }, followedOf(1, false), info, 0, () => 0);
  const disconnected = { message: 'nothing listens', since: '2026-11-27T20:50:00Z' };
  const status = { loading: [{ kind: 'Pod', read: 1 }], forbidden: [], disconnected };
  expect(past.statusAfter(status)).toEqual({ loading: [], forbidden: [], disconnected });
  expect(present.statusAfter(status)).toEqual(status);
});

test('what changes while the state of a tab is made comes behind it', async () => {
  const followed = followedOf(1, false);
  const [pod = ''] = followed.tables.rows.pod.keys();
  const feed = new Feed({ view: 'map' }, followed, info, 0, () => 0);
  const made = feed.state();
  const gone = { ...changed, pod: new Map([[pod, undefined]]) };
  expect(feed.changes(gone)).toBeUndefined();
  expect(feed.journal({ key: 'journal', buckets: [] })).toBeUndefined();
  const { seq } = recordAt(JSON.parse(await made));
  const [first, ...others] = feed.changedMeanwhile();
  expect([first, others]).toEqual([gone, []]);
  const message = recordAt(JSON.parse(feed.changes(gone) ?? ''));
  expect(message['gone']).toEqual({ pod: [pod] });
  expect(message['seq']).toBe(Number(seq) + 1);
});
