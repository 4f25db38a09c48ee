import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OwnerGraph } from '../../../../src/controllers/garbage-collection/plan.ts';
import type { KubeObject, OwnerReference } from '../../../../src/objects/meta.ts';

const things = { resource: 'things.', group: '', kind: 'Thing' };

function owner(uid: string, blockOwnerDeletion = false): OwnerReference {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    name: uid,
    uid,
    ...(blockOwnerDeletion ? { blockOwnerDeletion } : {}),
  };
}

function thing(uid: string, owners: OwnerReference[] = [], finalizers?: string[]): KubeObject {
  return {
    metadata: {
      name: uid,
      namespace: 'ns',
      uid,
      ownerReferences: owners,
      ...(finalizers === undefined ? {} : { finalizers, deletionTimestamp: 'T' }),
    },
  };
}

const names = (nodes: readonly { uid: string }[]): string[] => nodes.map(({ uid }) => uid).sort();

describe('OwnerGraph', () => {
  it('asks for the dependents of what is gone, and for what comes without its owner', () => {
    const graph = new OwnerGraph();
    expect(graph.upsert(thing('owner'), things)).toEqual([]);
    expect(graph.upsert(thing('child', [owner('owner')]), things)).toEqual([]);
    expect(graph.remove('owner')).toEqual(['child']);
    expect(graph.upsert(thing('late', [owner('owner')]), things)).toEqual(['late']);
    expect(graph.suspects().sort()).toEqual(['child', 'late']);
  });

  it('asks for an owner that waits, when a dependent goes, forgets it or no longer blocks it', () => {
    const graph = new OwnerGraph();
    graph.upsert(thing('a', [owner('o', true)]), things);
    graph.upsert(thing('b', [owner('o', true)]), things);
    graph.upsert(thing('c', [owner('o', true)]), things);
    expect(graph.upsert(thing('o', [], ['foregroundDeletion']), things)).toContain('o');
    expect(graph.remove('a')).toEqual(['o']);
    expect(graph.upsert(thing('b'), things)).toEqual(['o']);
    // Its owner waits: the dependent has to go as well.
    expect(graph.upsert(thing('c', [owner('o')]), things).sort()).toEqual(['c', 'o']);
    expect(names(graph.dependentsOf('o'))).toEqual(['c']);
  });

  it('asks for all dependents of what begins to wait, also for those that do not block it', () => {
    const graph = new OwnerGraph();
    graph.upsert(thing('o'), things);
    graph.upsert(thing('blocking', [owner('o', true)]), things);
    graph.upsert(thing('other', [owner('o')]), things);
    const waiting = thing('o', [], ['foregroundDeletion']);
    expect(graph.upsert(waiting, things).sort()).toEqual(['blocking', 'o', 'other']);
    expect(graph.upsert(waiting, things)).toEqual(['o']);
  });

  const mistakes: [string, Partial<OwnerReference>, string, boolean][] = [
    ['nothing', {}, 'ns', false],
    ['another version', { apiVersion: 'v2' }, 'ns', false],
    ['another name', { name: 'x' }, 'ns', true],
    ['another kind', { kind: 'X' }, 'ns', true],
    ['another group', { apiVersion: 'x/v1' }, 'ns', true],
    ['another namespace', {}, 'elsewhere', true],
    ['no namespace', {}, '', true],
  ];
  it.each(mistakes)('asks once for what says of its owner: %s', (_, said, namespace, expected) => {
    const graph = new OwnerGraph();
    graph.upsert(thing('o'), things);
    const child = thing('child', [{ ...owner('o'), ...said }]);
    child.metadata.namespace = namespace;
    expect(graph.upsert(child, things)).toEqual(expected ? ['child'] : []);
    expect(graph.upsert(child, things), 'not again while it says the same').toEqual([]);
    expect(graph.suspects()).toEqual(expected ? ['child'] : []);
  });

  it('lets what has no namespace own objects anywhere', () => {
    const graph = new OwnerGraph();
    const cluster = thing('o');
    cluster.metadata.namespace = '';
    graph.upsert(cluster, things);
    expect(graph.upsert(thing('child', [owner('o')]), things)).toEqual([]);
  });

  it('asks for what waits for the collector', () => {
    const graph = new OwnerGraph();
    expect(graph.upsert(thing('x', [], ['orphan']), things)).toEqual(['x']);
    expect(graph.upsert(thing('y', [], ['other']), things)).toEqual([]);
  });

  it('survives owner references that no schema allows', () => {
    const graph = new OwnerGraph();
    const broken: unknown = [null, 3, { uid: 'x' }, owner('o')];
    const object = thing('x');
    Reflect.set(object.metadata, 'ownerReferences', broken);
    expect(graph.upsert(object, things)).toEqual(['x']);
    expect(graph.get('x')?.owners).toEqual([owner('o')]);
  });

  it('knows the dependents that a search of all objects finds, and leaves nothing behind', () => {
    const uid = fc.constantFrom('a', 'b', 'c', 'd');
    const step = fc.oneof(
      fc.record({ do: fc.constant('upsert' as const), uid, owners: fc.array(uid, { maxLength: 3 }) }),
      fc.record({ do: fc.constant('remove' as const), uid }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const graph = new OwnerGraph();
        const model = new Map<string, string[]>();
        for (const each of steps) {
          if (each.do === 'remove') {
            model.delete(each.uid);
            graph.remove(each.uid);
          } else {
            model.set(each.uid, each.owners);
            graph.upsert(
              thing(
                each.uid,
                each.owners.map((name) => owner(name)),
              ),
              things,
            );
          }
        }
        for (const name of ['a', 'b', 'c', 'd']) {
          const expected = [...model].filter(([, owners]) => owners.includes(name)).map(([key]) => key);
          expect(names(graph.dependentsOf(name))).toEqual(expected.sort());
        }
        for (const name of [...model.keys()]) graph.remove(name);
        expect([...graph.values()]).toEqual([]);
        expect(['a', 'b', 'c', 'd'].some((name) => graph.hasDependents(name))).toBe(false);
      }),
    );
  });
});
