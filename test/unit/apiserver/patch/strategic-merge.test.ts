import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { isRecord } from '../../../../src/objects/json.ts';
import { listAt } from '../../../../src/objects/json.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { restOfPatch } from '../../../../src/apiserver/patch/strategic-merge.ts';
import { strategicMerge } from '../../../../src/apiserver/patch/strategic-merge.ts';
import { cpuMs } from '../../../support/reference-time.ts';

const service = builtinSchema('io.k8s.api.core.v1.Service');
const pod = builtinSchema('io.k8s.api.core.v1.Pod');
const deployment = builtinSchema('io.k8s.api.apps.v1.Deployment');

function live() {
  return {
    metadata: { labels: { l: '1' }, finalizers: ['a', 'b'] },
    spec: {
      ports: [
        { name: 'x', port: 80, targetPort: 80 },
        { name: 'y', port: 443 },
      ],
      selector: { app: 'a' },
      clusterIPs: ['1'],
    },
  };
}

function spec(patch: object): unknown {
  return strategicMerge(service, live(), { spec: patch })['spec'];
}

/** A fifth of what a request of 3 MiB has: once each was looked for among all, which took minutes. */
describe('very long lists', () => {
  const count = 50_000;
  const ports = (more: object = {}) => Array.from({ length: count }, (_, port) => ({ port, ...more }));
  /** Milliseconds of CPU; to look for each among all takes ten times as many, and more. */
  const enough = 2000;

  it.each([
    ['a patch', strategicMerge],
    ['the rest of a patch', restOfPatch],
  ])('are merged by %s', (_what, merge) => {
    const change = { spec: { ports: ports({ name: 'x' }) } };
    const before = { spec: { ports: ports() } };
    let items: readonly unknown[] = [];
    const taken = cpuMs(() => {
      items = listAt(merge(service, before, change), 'spec', 'ports');
    });
    expect([items.length, items.at(-1)]).toEqual([count, { port: count - 1, name: 'x' }]);
    expect(taken).toBeLessThan(enough);
  });

  it('are emptied', () => {
    const change = { spec: { ports: ports({ $patch: 'delete' }) } };
    const before = { spec: { ports: ports() } };
    let result: unknown;
    const taken = cpuMs(() => {
      result = strategicMerge(service, before, change);
    });
    expect(result).toEqual({ spec: { ports: [] } });
    expect(taken).toBeLessThan(enough);
  });
});

describe('strategicMerge', () => {
  it('keeps the nulls of a new list, and drops those of new maps', () => {
    const change = { spec: { externalIPs: [null], selector: { a: null, b: 'c' } } };
    expect(strategicMerge(service, { spec: {} }, change)).toEqual({
      spec: { externalIPs: [null], selector: { b: 'c' } },
    });
  });

  it('merges lists by their key, new items in front', () => {
    expect(spec({ ports: [{ port: 443, name: 'z' }, { port: 22 }] })).toMatchObject({
      ports: [{ port: 80, name: 'x', targetPort: 80 }, { port: 443, name: 'z' }, { port: 22 }],
    });
    expect(spec({ ports: [{ port: 22 }] })).toMatchObject({
      ports: [{ port: 22 }, { port: 80 }, { port: 443 }],
    });
  });

  it('puts new items where deleted ones stood, as the merge in place of Go does', () => {
    const named = (...names: string[]): object[] => names.map((name) => ({ name }));
    const merged = (before: string[], deleted: string[], order: string[], added: string[]): unknown => {
      const containers = [...named(...added), ...deleted.map((name) => ({ name, $patch: 'delete' }))];
      const patch = { spec: { containers, '$setElementOrder/containers': named(...order) } };
      return strategicMerge(pod, { spec: { containers: named(...before) } }, patch)['spec'];
    };
    expect(merged(['a', 'b', 'x'], ['a'], ['b', 'c'], ['c'])).toEqual({ containers: named('b', 'x', 'c') });
    expect(merged(['a', 'x'], ['a'], ['b', 'c'], ['b', 'c'])).toEqual({ containers: named('x', 'b', 'c') });
    expect(merged(['a', 'x'], [], ['a', 'c'], ['c'])).toEqual({ containers: named('a', 'c', 'x') });
    expect(merged(['a', 'x'], ['z'], ['a', 'c'], ['c'])).toEqual({ containers: named('a', 'c', 'x') });
  });

  it('replaces lists without a merge strategy', () => {
    expect(spec({ clusterIPs: ['2', '3'] })).toMatchObject({ clusterIPs: ['2', '3'] });
  });

  it.each([
    [
      'delete an item',
      { ports: [{ port: 443, $patch: 'delete' }] },
      { ports: [{ name: 'x', port: 80, targetPort: 80 }] },
    ],
    ['delete what is not there', { ports: [{ port: 1, $patch: 'delete' }] }, { ports: live().spec.ports }],
    ['replace a list', { ports: [{ $patch: 'replace' }, { port: 1 }] }, { ports: [{ port: 1 }] }],
    ['replace a map', { selector: { $patch: 'replace', b: '2' } }, { selector: { b: '2' } }],
    ['delete a map', { selector: { $patch: 'delete' } }, { selector: {} }],
    ['remove by null', { selector: { app: null }, ports: null }, { selector: {} }],
    [
      'set an order',
      { '$setElementOrder/ports': [{ port: 443 }, { port: 80 }] },
      { ports: live().spec.ports.toReversed() },
    ],
    [
      'set an order with a new item',
      { ports: [{ port: 1 }], '$setElementOrder/ports': [{ port: 443 }, { port: 1 }, { port: 80 }] },
      { ports: [{ name: 'y', port: 443 }, { port: 1 }, { name: 'x', port: 80, targetPort: 80 }] },
    ],
  ])('%s', (_name, patch, result) => {
    const { ports, selector, clusterIPs } = live().spec;
    const base =
      'ports' in patch && patch.ports === null ? { selector, clusterIPs } : { ports, selector, clusterIPs };
    expect(spec(patch)).toEqual({ ...base, ...result });
  });

  it('handles lists of scalars', () => {
    const merge = (metadata: object) => strategicMerge(service, live(), { metadata })['metadata'];
    expect(merge({ finalizers: ['c'] })).toMatchObject({ finalizers: ['c', 'a', 'b'] });
    expect(merge({ '$deleteFromPrimitiveList/finalizers': ['a'] })).toMatchObject({ finalizers: ['b'] });
    expect(merge({ finalizers: ['c'], '$deleteFromPrimitiveList/finalizers': ['a'] })).toMatchObject({
      finalizers: ['c', 'b'],
    });
    expect(merge({ finalizers: ['b', 'a'], '$setElementOrder/finalizers': ['b', 'a'] })).toMatchObject({
      finalizers: ['b', 'a'],
    });
  });

  it('keeps only what $retainKeys names', () => {
    const before = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } };
    const patch = { spec: { strategy: { type: 'Recreate', $retainKeys: ['type'] } } };
    expect(strategicMerge(deployment, before, patch)).toEqual({ spec: { strategy: { type: 'Recreate' } } });
  });

  it('takes directives and nulls out of what is new', () => {
    expect(
      strategicMerge(
        service,
        {},
        {
          spec: {
            ports: [
              { port: 1, $patch: 'delete' },
              { port: 2, name: null },
            ],
          },
          a: { $patch: 'nope' },
        },
      ),
    ).toEqual({ spec: { ports: [{ port: 2 }] } });
  });

  it.each([
    [{ ports: [{ name: 'z' }] }, 'map: map[name:z] does not contain declared merge key: port'],
    [
      { ports: [{ port: 80, $patch: 'explode' }] },
      'unknown patch type: explode in map: map[$patch:explode port:80]',
    ],
    [{ ports: [{ $patch: 'merge' }] }, 'merging lists cannot yet be specified in the patch'],
    [{ selector: { $patch: 'explode' } }, 'unknown patch type: explode in map: map[$patch:explode]'],
    [
      { ports: [{ port: 82, name: 'z' }], '$setElementOrder/ports': [{ port: 80 }] },
      "The order in patch list:\n[map[name:z port:82]]\n doesn't match $setElementOrder list:\n[map[port:80]]\n",
    ],
    [{ '$setElementOrder/ports': 'x' }, 'expected a []interface {}, but received a string'],
    [{ $setElementOrder: [] }, 'invalid patch format of setElementOrder list'],
    [{ $deleteFromPrimitiveList: [] }, 'invalid patch format of primitive list'],
    [{ $retainKeys: ['a'], b: 1 }, 'invalid patch format of retainKeys'],
    [
      { ports: [[1]] },
      'list element types are not identical: [[map[name:x port:80 targetPort:80] map[name:y port:443]] [[1]]]',
    ],
    [
      { '$deleteFromPrimitiveList/ports': ['a'] },
      'list element types are not identical: [[map[name:x port:80 targetPort:80] map[name:y port:443]] [a]]',
    ],
    [
      { '$setElementOrder/nope': [1] },
      'unable to find api field in struct ServiceSpec for the json field "nope"',
    ],
    [{ selector: { $patch: 1 } }, 'unknown patch type: %!s(int64=1) in map: map[$patch:1]'],
    [
      { ports: ['a'] },
      'list element types are not identical: [[map[name:x port:80 targetPort:80] map[name:y port:443]] [a]]',
    ],
  ])('refuses %j', (patch, message) => {
    expect(() => spec(patch)).toThrow(expect.objectContaining({ message }));
  });

  it('merges containers as a map by name would be', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd');
    const container = fc.record(
      { name, image: fc.constantFrom('1', '2'), tty: fc.boolean() },
      { requiredKeys: ['name'] },
    );
    const list = fc.uniqueArray(container, { selector: ({ name: key }) => key });
    fc.assert(
      fc.property(list, list, fc.uniqueArray(name), (before, changes, deleted) => {
        const gone = deleted.filter((key) => !changes.some((item) => item.name === key));
        const model = new Map(before.map((item) => [item.name, item]));
        for (const key of gone) model.delete(key);
        for (const item of changes) model.set(item.name, { ...model.get(item.name), ...item });
        const patch = [...changes, ...gone.map((key) => ({ name: key, $patch: 'delete' }))];
        const untouched = JSON.stringify(before);
        const merged = strategicMerge(pod, { spec: { containers: before } }, { spec: { containers: patch } });
        const containers = containersOf(merged['spec']);
        expect([...containers].sort((x, y) => (x.name < y.name ? -1 : 1))).toEqual(
          [...model.values()].sort((x, y) => (x.name < y.name ? -1 : 1)),
        );
        expect(JSON.stringify(before)).toBe(untouched);
        // Live items keep their order among themselves, and so do those of the patch.
        const orderOf = (keys: string[]) =>
          containers.map((item) => item.name).filter((key) => keys.includes(key));
        const changed = changes.map((item) => item.name);
        expect(orderOf(changed)).toEqual(changed);
        const kept = before
          .map((item) => item.name)
          .filter((key) => model.has(key) && !changed.includes(key));
        expect(orderOf(kept)).toEqual(kept);
      }),
    );
  });
});

function containersOf(value: unknown): { name: string }[] {
  const list: unknown = isRecord(value) ? value['containers'] : undefined;
  return (Array.isArray(list) ? list : []).filter(
    (item): item is { name: string } => isRecord(item) && typeof item['name'] === 'string',
  );
}
