import { describe, expect, it } from 'vitest';
import {
  finalized,
  isEmptied,
  type Pass,
  planConditions,
} from '../../../../src/controllers/namespaces/plan.ts';

const then = '2026-01-02T03:04:05Z';
const now = '2026-01-02T04:00:00Z';

function pass(part: Partial<Pass> = {}): Pass {
  return { discoveryFailures: [], contentErrors: [], remaining: new Map(), finalizers: new Map(), ...part };
}

describe('planConditions', () => {
  it('says five times that all is well, and then nothing more', () => {
    const first = planConditions(undefined, pass(), then);
    expect(first?.map(({ type, status, reason }) => [type, status, reason])).toEqual([
      ['NamespaceDeletionDiscoveryFailure', 'False', 'ResourcesDiscovered'],
      ['NamespaceDeletionGroupVersionParsingFailure', 'False', 'ParsedGroupVersions'],
      ['NamespaceDeletionContentFailure', 'False', 'ContentDeleted'],
      ['NamespaceContentRemaining', 'False', 'ContentRemoved'],
      ['NamespaceFinalizersRemaining', 'False', 'ContentRemoved'],
    ]);
    expect(planConditions(first, pass(), now)).toBeUndefined();
  });

  it('tells what remains and who holds it, and moves the time only with the status', () => {
    const remaining = pass({
      remaining: new Map([
        ['pods.', 2],
        ['endpointslices.discovery.k8s.io', 1],
      ]),
      finalizers: new Map([['example.com/hold', 3]]),
    });
    const first = planConditions(planConditions(undefined, pass(), then), remaining, now) ?? [];
    expect(first.find(({ type }) => type === 'NamespaceContentRemaining')).toEqual({
      type: 'NamespaceContentRemaining',
      status: 'True',
      lastTransitionTime: now,
      reason: 'SomeResourcesRemain',
      message:
        'Some resources are remaining: endpointslices.discovery.k8s.io has 1 resource instances, pods. has 2 resource instances',
    });
    expect(first.find(({ type }) => type === 'NamespaceFinalizersRemaining')?.message).toBe(
      'Some content in the namespace has finalizers remaining: example.com/hold in 3 resource instances',
    );
    expect(first.find(({ type }) => type === 'NamespaceDeletionContentFailure')?.lastTransitionTime).toBe(
      then,
    );
    const fewer =
      planConditions(first, pass({ remaining: new Map([['pods.', 1]]) }), '2026-01-02T05:00:00Z') ?? [];
    expect(fewer.find(({ type }) => type === 'NamespaceContentRemaining')?.lastTransitionTime).toBe(now);
  });

  it('tells failures of discovery and of deletions', () => {
    const conditions = planConditions(
      undefined,
      pass({ discoveryFailures: ['a/v1: down'], contentErrors: ['y', 'x'] }),
      now,
    );
    expect(conditions?.map(({ status }) => status)).toEqual(['True', 'False', 'True', 'False', 'False']);
    expect(conditions?.[2]?.message).toBe('Failed to delete all resource types, 2 remaining: x, y');
  });
});

describe('isEmptied', () => {
  it.each([
    ['nothing', {}, true],
    ['objects', { remaining: new Map([['pods.', 1]]) }, false],
    ['errors', { contentErrors: ['x'] }, false],
    ['undiscovered groups', { discoveryFailures: ['x'] }, false],
  ])('with %s left', (_name, part, expected) => {
    expect(isEmptied(pass(part))).toBe(expected);
  });
});

describe('finalized', () => {
  it('takes away only the finalizer of the controller', () => {
    const namespace = { metadata: { name: 'x' }, spec: { finalizers: ['kubernetes', 'mine'] }, status: {} };
    expect(finalized(namespace).spec.finalizers).toEqual(['mine']);
  });
});
