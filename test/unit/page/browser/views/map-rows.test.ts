import { expect, test } from 'vitest';
import { RowStore } from '../../../../../src/page/browser/state/row-store.ts';
import { isFound, mapRows } from '../../../../../src/page/browser/views/map-rows.ts';
import { exampleRows } from '../../../../page/support/example.ts';

const made = [
  exampleRows({ name: 'cart', clusterIP: '10.96.0.1', pods: ['ready', 'ready'] }),
  exampleRows({ name: 'pay', clusterIP: '10.96.0.2', pods: ['not ready'] }),
];

function storeOf(): RowStore {
  const store = new RowStore();
  store.take({
    ...{ follow: { view: 'map' }, at: '', seq: 1, status: { loading: [], forbidden: [] } },
    cluster: { server: '', kind: 'up', version: '', clusterFlags: [] },
    rows: {
      service: made.map(({ service }) => service),
      slice: made.map(({ slice }) => slice),
      pod: made.flatMap(({ pods }) => pods),
    },
  });
  return store;
}

test('rows of which nothing has changed stay the same objects, and the others are as if made anew', () => {
  const store = storeOf();
  const before = mapRows(store);
  const [pod] = made[1]?.pods ?? [];
  const [slice] = made.map((each) => each.slice);
  if (pod === undefined || slice === undefined) throw new Error('the example has no Pods');
  const same = (a: readonly unknown[], b: readonly unknown[]) => a.map((row, index) => row === b[index]);
  expect(same(mapRows(store, before), before)).toEqual([true, true]);
  const none = { at: '', rows: {}, gone: {} };
  store.change({ ...none, seq: 2, rows: { pod: [{ ...pod, restarts: 3 }] } });
  const changed = mapRows(store, before);
  expect(changed).toEqual(mapRows(store));
  expect(same(changed, before)).toEqual([true, false]);
  store.change({ ...none, seq: 3, gone: { pod: [pod.key], slice: [slice.key] } });
  expect(mapRows(store, changed)).toEqual(mapRows(store));
});

test('a Service is found by its words and those of its Pods', () => {
  const [cart] = mapRows(storeOf());
  if (cart === undefined) throw new Error('there is no row');
  const searches = ['', '  ', 'CART 10.96', 'app=cart', 'node-', 'pay', 'cart pay'];
  expect(searches.map((search) => isFound(cart, search))).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
    false,
  ]);
});
