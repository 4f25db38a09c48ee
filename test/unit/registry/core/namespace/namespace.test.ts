import { describe, expect, it } from 'vitest';
import { create, definitionOf, update } from '../../decide.ts';

const namespaces = definitionOf('Namespace');

describe('a Namespace', () => {
  it('gets a label of its name, the finalizer kubernetes and the phase Active', () => {
    const { object } = create(namespaces, {
      spec: { finalizers: ['example.com/f'] },
      status: { phase: 'Terminating' },
    });
    expect(object).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'a' } },
      spec: { finalizers: ['example.com/f', 'kubernetes'] },
      status: { phase: 'Active' },
    });
  });

  it('is refused with a finalizer of no domain', () => {
    expect(create(namespaces, { spec: { finalizers: ['bad'] } }).errors).toEqual([
      'spec.finalizers: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified',
    ]);
  });

  it('changes its finalizers through /finalize only', () => {
    const old = create(namespaces, {}).stored;
    expect(update(namespaces, old, {}).object).toMatchObject({ spec: { finalizers: ['kubernetes'] } });
    const finalized = update(namespaces, old, { status: { phase: 'Terminating' } }, 'finalize').object;
    expect(finalized).not.toHaveProperty('spec.finalizers');
    expect(finalized).toMatchObject({ status: { phase: 'Active' } });
  });

  it('is Terminating exactly while it is being deleted', () => {
    const old = create(namespaces, {}).stored;
    const going = { ...old, metadata: { ...old.metadata, deletionTimestamp: '2020-01-01T00:00:00Z' } };
    expect(update(namespaces, old, { status: { phase: 'Terminating' } }, 'status').errors).toEqual([
      'status.Phase: Invalid value: "Terminating": may only be \'Active\' if `deletionTimestamp` is empty',
    ]);
    expect(update(namespaces, going, { status: { phase: 'Terminating' } }, 'status').errors).toEqual([]);
  });
});
