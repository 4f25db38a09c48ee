import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  annotations,
  folderProvisioner,
  areBound,
  matchingVolume,
  planClaim,
  planVolume,
  releaseOf,
  reservationOf,
} from '../../../../src/controllers/persistent-volumes/plan.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
} from '../../../../src/objects/types/core.generated.ts';

const claim = (spec: Partial<PersistentVolumeClaim['spec']> = {}): PersistentVolumeClaim => ({
  metadata: { namespace: 'n', name: 'data', uid: 'u' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } }, ...spec },
  status: { phase: 'Pending' },
});
const volume = (
  name: string,
  storage: string,
  spec: Partial<PersistentVolume['spec']> = {},
): PersistentVolume => ({
  metadata: { name, labels: { disk: name } },
  spec: { capacity: { storage }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/d' }, ...spec },
  status: { phase: 'Available' },
});
const standard = {
  metadata: { name: 'standard' },
  provisioner: folderProvisioner,
  volumeBindingMode: 'WaitForFirstConsumer',
};
const named = (name: string): unknown =>
  expect.toSatisfy(({ metadata }: PersistentVolume) => metadata.name === name);

describe('a claim', () => {
  test('gets the smallest volume that fits, by size, class, mode, access and labels', () => {
    const volumes = [volume('big', '9Gi'), volume('fits', '3Gi'), volume('small', '1Gi')];
    expect(planClaim(claim(), volumes, [])).toEqual({ kind: 'bind', volume: named('fits') });
    const selector = { matchLabels: { disk: 'big' } };
    expect(planClaim(claim({ selector }), volumes, [])).toEqual({
      kind: 'bind',
      volume: named('big'),
    });
    for (const other of [
      { volumeMode: 'Block' },
      { accessModes: ['ReadWriteMany'] },
      { storageClassName: 'fast' },
      { resources: { requests: { storage: '10Gi' } } },
    ]) {
      expect(planClaim(claim(other), volumes, []).kind).toBe('wait');
    }
  });

  test('gets the volume that is reserved for it, and none of another claim', () => {
    const claimRef = { namespace: 'n', name: 'data' };
    const volumes = [volume('fits', '3Gi'), volume('own', '9Gi', { claimRef })];
    expect(planClaim(claim(), volumes, [])).toEqual({ kind: 'bind', volume: named('own') });
    const taken = [volume('taken', '3Gi', { claimRef: { ...claimRef, uid: 'another' } })];
    expect(planClaim(claim(), taken, []).kind).toBe('wait');
    expect(planClaim(claim({ volumeName: 'taken' }), taken, []).kind).toBe('wait');
  });

  test('of a class that waits gets a folder once a node is selected', () => {
    const waiting = claim({ storageClassName: 'standard' });
    expect(planClaim(waiting, [], [standard])).toMatchObject({
      kind: 'wait',
      event: {
        ...{ type: 'Normal', reason: 'WaitForFirstConsumer' },
        message: 'waiting for first consumer to be created before binding',
      },
    });
    const waitingFor = (...pods: string[]): unknown => planClaim(waiting, [], [standard], () => pods);
    const event = { type: 'Normal', reason: 'WaitForPodScheduled' };
    const one = { ...event, message: 'waiting for pod a to be scheduled' };
    expect(waitingFor('a')).toEqual({ kind: 'wait', event: one });
    const two = { ...event, message: 'waiting for pods a,b to be scheduled' };
    expect(waitingFor('a', 'b')).toEqual({ kind: 'wait', event: two });
    const selected = {
      ...waiting,
      metadata: { ...waiting.metadata, annotations: { [annotations.selectedNode]: 'node-1' } },
    };
    expect(planClaim(selected, [], [standard])).toMatchObject({
      kind: 'provision',
      volume: { metadata: { name: 'pvc-u' }, spec: { storageClassName: 'standard', claimRef: { uid: 'u' } } },
    });
  });

  test.each([
    ['none', 'Warning ProvisioningFailed storageclass.storage.k8s.io "none" not found'],
    ['', 'Normal FailedBinding no persistent volumes available for this claim and no storage class is set'],
    ['local', 'Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner'],
    ['other', /^Normal ExternalProvisioning Waiting for a volume .*'disks.example.com' or manually/],
  ])('of the class "%s" without a volume says so', (storageClassName, said) => {
    const classes = [
      { metadata: { name: 'local' }, provisioner: 'kubernetes.io/no-provisioner' },
      { metadata: { name: 'other' }, provisioner: 'disks.example.com' },
    ];
    const plan = planClaim(claim({ storageClassName }), [], classes);
    if (plan.kind !== 'wait' || plan.event === undefined) throw new Error(plan.kind);
    expect(Object.values(plan.event).join(' ')).toMatch(said);
  });

  test.each([
    [{ volumeMode: 'Block' }, 'folders, not block devices'],
    [{ selector: {} }, 'claim Selector is not supported'],
    [{ dataSource: { kind: 'PersistentVolumeClaim', name: 'other' } }, 'begin empty'],
  ])('that asks for more than a folder says so: %o', (spec, why) => {
    const immediate = { ...standard, volumeBindingMode: 'Immediate' };
    const plan = planClaim(claim({ storageClassName: 'standard', ...spec }), [], [immediate]);
    expect(plan).toMatchObject({ kind: 'wait', event: { reason: 'ProvisioningFailed' } });
    expect(JSON.stringify(plan)).toContain(why);
  });

  test('without a class gets the default one where no volume fits', () => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    const classes = [{ ...standard, metadata: { name: 'standard', annotations } }];
    expect(planClaim(claim(), [], classes)).toEqual({ kind: 'classify', storageClassName: 'standard' });
    expect(planClaim(claim(), [volume('fits', '3Gi')], classes).kind).toBe('bind');
    expect(planClaim(claim({ storageClassName: '' }), [], classes).kind).toBe('wait');
  });

  test('that names a volume gets it only if that fits and is free', () => {
    const named = claim({ volumeName: 'v' });
    expect(planClaim(named, [], [])).toEqual({ kind: 'wait' });
    expect(planClaim(named, [volume('v', '2Gi')], [])).toMatchObject({ kind: 'bind' });
    for (const [spec, why] of [
      [{ capacity: { storage: '1Gi' } }, 'requested PV is too small'],
      [{ storageClassName: 'fast' }, 'storageClassName does not match'],
      [{ volumeMode: 'Block' }, 'incompatible volumeMode'],
      [{ accessModes: ['ReadOnlyMany'] }, 'incompatible accessMode'],
    ] as const) {
      expect(
        planClaim(
          named,
          [volume('v', '2Gi', { ...spec, accessModes: [...(spec.accessModes ?? ['ReadWriteOnce'])] })],
          [],
        ),
      ).toMatchObject({
        event: { reason: 'VolumeMismatch', message: `Cannot bind to requested volume "v": ${why}` },
      });
    }
    const claimRef = { namespace: 'n', name: 'another', uid: 'x' };
    expect(planClaim(named, [volume('v', '2Gi', { claimRef })], [])).toMatchObject({
      event: { reason: 'FailedBinding', message: 'volume "v" already bound to a different claim.' },
    });
  });

  test('once bound is lost with its volume, and takes no other', () => {
    const bound = (volumeName: string): PersistentVolumeClaim => {
      const made = claim(volumeName === '' ? {} : { volumeName });
      return { ...made, metadata: { ...made.metadata, annotations: { [annotations.bindCompleted]: 'yes' } } };
    };
    const claimRef = { namespace: 'n', name: 'another', uid: 'x' };
    const taken = volume('v', '2Gi', { claimRef });
    for (const [made, volumes, reason] of [
      [bound(''), [volume('fits', '3Gi')], 'ClaimLost'],
      [bound('v'), [volume('fits', '3Gi')], 'ClaimLost'],
      [bound('v'), [taken], 'ClaimMisbound'],
    ] as const) {
      expect(planClaim(made, volumes, [])).toMatchObject({ kind: 'lost', event: { reason } });
      expect(areBound(made, taken)).toBe(false);
    }
    const own = volume('v', '1Gi', { claimRef: { namespace: 'n', name: 'data', uid: 'u' } });
    expect(planClaim(bound('v'), [own], [])).toEqual({ kind: 'bind', volume: own });
    expect(areBound(bound('v'), own)).toBe(true);
    expect(areBound(claim({ volumeName: 'v' }), own)).toBe(false);
  });

  test('of a folder may grow once it is bound, and of another volume waits for its resizer', () => {
    const claimRef = { namespace: 'n', name: 'data', uid: 'u' };
    const made = (provisioner: string): PersistentVolume => ({
      ...volume('v', '1Gi', { claimRef }),
      metadata: { name: 'v', annotations: { [annotations.provisionedBy]: provisioner } },
    });
    const grown = {
      ...claim({ volumeName: 'v' }),
      metadata: { ...claim().metadata, annotations: { [annotations.bindCompleted]: 'yes' } },
      status: { phase: 'Bound', capacity: { storage: '1Gi' } },
    };
    const ours = made(folderProvisioner);
    expect(planClaim(grown, [ours], [])).toEqual({ kind: 'resize', volume: ours, storage: '2Gi' });
    const foreign = made('disks.example.com');
    const message = 'waiting for an external controller to expand this PVC';
    expect(planClaim(grown, [foreign], [])).toEqual({
      ...{ kind: 'bind', volume: foreign },
      event: { type: 'Normal', reason: 'ExternalExpanding', message },
    });
    const done = { ...grown, status: { phase: 'Bound', capacity: { storage: '2Gi' } } };
    expect(planClaim(done, [ours], []).kind).toBe('bind');
  });

  test('has one volume at a place that its Pod can reach', () => {
    const volumes = [volume('near', '9Gi'), volume('far', '2Gi')];
    const isReachable = ({ metadata }: PersistentVolume): boolean => metadata.name === 'near';
    expect(matchingVolume(claim(), volumes, { isReachable })?.metadata.name).toBe('near');
    const claimRef = { namespace: 'n', name: 'data' };
    const reserved = [volume('near', '9Gi'), volume('far', '2Gi', { claimRef })];
    expect(matchingVolume(claim(), reserved, { isReachable })).toBeUndefined();
  });

  test('is never bound to a volume that is too small or another claim has', () => {
    const uids = fc.constantFrom(undefined, 'u', 'another');
    const some = fc.array(fc.record({ size: fc.integer({ min: 1, max: 9 }), uid: uids }), { maxLength: 6 });
    fc.assert(
      fc.property(some, (given) => {
        const volumes = given.map(({ size, uid }, i) =>
          volume(
            `v${i}`,
            `${size}Gi`,
            uid === undefined ? {} : { claimRef: { namespace: 'n', name: 'data', uid } },
          ),
        );
        const plan = planClaim(claim(), volumes, []);
        const fits = given.filter(({ size, uid }) => size >= 2 && uid !== 'another');
        expect(plan.kind).toBe(fits.length > 0 ? 'bind' : 'wait');
        if (plan.kind !== 'bind') return;
        const chosen = given[volumes.indexOf(plan.volume)];
        expect(fits).toContain(chosen);
        if (chosen?.uid === undefined) {
          expect(chosen?.size).toBe(Math.min(...fits.map(({ size }) => size)));
        }
      }),
    );
  });
});

describe('a volume', () => {
  const claimRef = { namespace: 'n', name: 'data', uid: 'u' };
  const provisioned = (phase: string): PersistentVolume => ({
    ...volume('v', '2Gi', { claimRef, persistentVolumeReclaimPolicy: 'Delete' }),
    metadata: { name: 'v', annotations: { [annotations.provisionedBy]: folderProvisioner } },
    status: { phase },
  });

  test('is available without a claim, and bound once the claim names it', () => {
    expect(planVolume(volume('v', '2Gi'), undefined)).toEqual({ phase: 'Available' });
    const prebound = volume('v', '2Gi', { claimRef: { namespace: 'n', name: 'data' } });
    expect(planVolume(prebound, claim())).toEqual({ phase: 'Available' });
    expect(planVolume(volume('v', '2Gi', { claimRef }), claim())).toBeUndefined();
    expect(planVolume(volume('v', '2Gi', { claimRef }), claim({ volumeName: 'v' }))).toEqual({
      phase: 'Bound',
    });
  });

  test('is released when its claim is gone, and goes if it was made for it', () => {
    const kept = volume('v', '2Gi', { claimRef, persistentVolumeReclaimPolicy: 'Retain' });
    expect(planVolume(kept, undefined)).toEqual({ phase: 'Released' });
    expect(planVolume({ ...kept, status: { phase: 'Released' } }, undefined)).toBeUndefined();
    expect(planVolume(provisioned('Bound'), undefined)).toEqual({ phase: 'Released' });
    expect(planVolume(provisioned('Released'), undefined)).toBe('delete');
    const another = { ...claim({ volumeName: 'v' }), metadata: { namespace: 'n', name: 'data', uid: 'new' } };
    expect(planVolume(provisioned('Released'), another)).toBe('delete');
  });

  test.each([
    ['Delete', 'VolumeFailedDelete'],
    ['Recycle', 'VolumeFailedRecycle'],
  ])('that was made by hand fails with the policy %s', (persistentVolumeReclaimPolicy, reason) => {
    const made = volume('v', '2Gi', { claimRef, persistentVolumeReclaimPolicy });
    const released = { ...made, status: { phase: 'Released' } };
    expect(planVolume(released, undefined)).toMatchObject({ phase: 'Failed', reason });
    expect(planVolume({ ...made, status: { phase: 'Failed' } }, undefined)).toBeUndefined();
  });

  test('of another provisioner stays until that deletes it', () => {
    const { metadata, ...rest } = provisioned('Released');
    const theirs = { ...metadata, annotations: { [annotations.provisionedBy]: 'disks.example.com' } };
    expect(planVolume({ ...rest, metadata: theirs }, undefined)).toBeUndefined();
  });

  test('is taken from a claim that has another, and stays reserved where its user said so', () => {
    const other = claim({ volumeName: 'other' });
    expect(planVolume(volume('v', '2Gi', { claimRef }), other)).toBe('unbind');
    expect(planVolume(provisioned('Bound'), other)).toEqual({ phase: 'Released' });
    const ours = { [annotations.boundByController]: 'yes' };
    const found = { ...volume('v', '2Gi', { claimRef }), metadata: { name: 'v', annotations: ours } };
    expect(releaseOf(found)).toMatchObject({ spec: { claimRef: null } });
    expect(releaseOf(volume('v', '2Gi', { claimRef }))).toMatchObject({ spec: { claimRef: { uid: null } } });
  });

  test('is reserved once, with the version that was looked at', () => {
    expect(reservationOf(volume('v', '2Gi', { claimRef }), claim())).toBeUndefined();
    const free = { ...volume('v', '2Gi'), metadata: { name: 'v', resourceVersion: '7' } };
    expect(reservationOf(free, claim())).toMatchObject({
      metadata: { resourceVersion: '7', annotations: { [annotations.boundByController]: 'yes' } },
      spec: { claimRef: { kind: 'PersistentVolumeClaim', namespace: 'n', name: 'data', uid: 'u' } },
    });
  });
});
