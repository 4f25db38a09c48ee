import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Changes, State } from '../../../../../src/page/messages.ts';
import { RowStore } from '../../../../../src/page/browser/state/row-store.ts';
import type { NamespaceRow } from '../../../../../src/view/rows/rows.ts';

const row = (name: string, pods: number): NamespaceRow => ({ key: name, name, services: 0, pods });

function stateOf(rows: readonly NamespaceRow[], seq: number): State {
  return {
    ...{ follow: { view: 'map' }, rows: { namespace: rows }, at: '2026-01-01T00:00:00Z', seq },
    cluster: { server: '', kind: 'up', version: '', clusterFlags: [] },
    status: { loading: [], forbidden: [] },
  };
}

test('changes lead to the rows that a fresh state has', () => {
  const step = fc.record({
    put: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.nat(9), { maxKeys: 2 }),
    gone: fc.subarray(['a', 'b', 'c'], { maxLength: 2 }),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const store = new RowStore();
      store.take(stateOf([row('a', 1)], 5));
      const model = new Map([['a', row('a', 1)]]);
      for (const [index, { put, gone }] of steps.entries()) {
        const rows = Object.entries(put).map(([name, pods]) => row(name, pods));
        for (const name of gone) model.delete(name);
        for (const each of rows) model.set(each.key, each);
        const changes: Changes = {
          rows: { namespace: rows },
          gone: { namespace: gone },
          at: '',
          seq: 6 + index,
        };
        expect(store.change(changes)).toBe(true);
        expect([...store.changed].toSorted()).toEqual(rows.map(({ key }) => key).toSorted());
      }
      const byKey = (a: NamespaceRow, b: NamespaceRow): number => (a.key < b.key ? -1 : 1);
      expect(store.all('namespace').toSorted(byKey)).toEqual([...model.values()].toSorted(byKey));
    }),
  );
});

test('a message that is missing is noticed', () => {
  const store = new RowStore();
  store.take(stateOf([row('a', 1)], 5));
  const { version } = store;
  expect(store.change({ rows: { namespace: [row('a', 2)] }, gone: {}, at: '', seq: 7 })).toBe(false);
  expect(store.version).toBe(version);
  expect(store.get('namespace', 'a')?.pods).toBe(1);
});
