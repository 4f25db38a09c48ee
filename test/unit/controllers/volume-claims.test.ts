import { expect, test } from 'vitest';
import { isWaiting, protection, unusedCondition, uses } from '../../../src/controllers/volume-claims.ts';
import type { KubeObject } from '../../../src/objects/meta.ts';
import type { PersistentVolumeClaim, Pod } from '../../../src/objects/types/core.generated.ts';

const claim = (metadata: KubeObject['metadata'] = {}): KubeObject => ({
  metadata: { namespace: 'n', name: 'data', finalizers: [protection], ...metadata },
});
const pod = (spec: Partial<Pod['spec']>, metadata: KubeObject['metadata'] = {}): Pod => ({
  metadata: { namespace: 'n', name: 'p', uid: 'u', ...metadata },
  spec: { nodeName: 'node-1', ...spec },
  status: {},
});
const deletionTimestamp = '2026-01-01T00:00:00Z';

test('a claim waits when it is being deleted with the finalizer', () => {
  expect(isWaiting(claim())).toBe(false);
  expect(isWaiting(claim({ deletionTimestamp }))).toBe(true);
  expect(isWaiting(claim({ deletionTimestamp, finalizers: ['example.com/other'] }))).toBe(false);
});

test('a Pod on a node uses what it names, whatever its phase', () => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }];
  expect(uses(pod({ volumes }), claim())).toBe(true);
  expect(uses({ ...pod({ volumes }), status: { phase: 'Succeeded' } }, claim())).toBe(true);
  expect(uses(pod({ volumes, nodeName: '' }), claim())).toBe(false);
  expect(uses(pod({ volumes }), claim({ name: 'other' }))).toBe(false);
  expect(uses(pod({}), claim())).toBe(false);
});

test('a Pod uses the claim of its own ephemeral volume until it is shut down', () => {
  const volumes = [{ name: 'scratch', ephemeral: {} }];
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u', controller: true }];
  const own = claim({ name: 'p-scratch', ownerReferences });
  expect(uses(pod({ volumes }), own)).toBe(true);
  expect(uses(pod({ volumes }), claim({ name: 'p-scratch' }))).toBe(false);
  expect(uses(pod({ volumes }, { deletionTimestamp, deletionGracePeriodSeconds: 30 }), own)).toBe(true);
  expect(uses(pod({ volumes }, { deletionTimestamp, deletionGracePeriodSeconds: 0 }), own)).toBe(false);
});

test('a bound claim says since when no Pod that has not ended names it', () => {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }];
  const of = (unused?: 'True' | 'False', phase = 'Bound', metadata = {}): PersistentVolumeClaim => ({
    ...claim(metadata),
    spec: {},
    status: { phase, ...(unused === undefined ? {} : { conditions: [{ type: 'Unused', status: unused }] }) },
  });
  const waiting = pod({ volumes, nodeName: '' });
  const ended: Pod = { ...pod({ volumes }), status: { phase: 'Failed' } };
  const statusOf = (object: PersistentVolumeClaim, ...pods: Pod[]) =>
    unusedCondition(object, pods, 0)?.status;
  expect(unusedCondition(of(), [ended], 0)).toEqual({
    type: 'Unused',
    status: 'True',
    lastTransitionTime: '1970-01-01T00:00:00Z',
    reason: 'NoPodsUsingPVC',
    message: 'No pods are currently referencing this PVC',
  });
  expect(unusedCondition(of('True'), [ended, waiting], 0)).toMatchObject({
    status: 'False',
    reason: 'PodUsingPVC',
    message: 'A pod is currently referencing this PVC',
  });
  expect(statusOf(of('False'))).toBe('True');
  // Nothing changes: in use from the start, still unused, still in use, not bound, being deleted.
  expect(statusOf(of(), waiting)).toBeUndefined();
  expect(statusOf(of('True'))).toBeUndefined();
  expect(statusOf(of('False'), waiting)).toBeUndefined();
  expect(statusOf(of(undefined, 'Pending'))).toBeUndefined();
  expect(statusOf(of(undefined, 'Bound', { deletionTimestamp }))).toBeUndefined();
});
