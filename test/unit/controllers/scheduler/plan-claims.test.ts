import { describe, expect, it } from 'vitest';
import { annotations, folderProvisioner } from '../../../../src/controllers/persistent-volumes/plan.ts';
import {
  bindClaims,
  type ClaimsInput,
  ephemeralProblem,
  failedBinding,
  unusableClaim,
} from '../../../../src/controllers/scheduler/plan-claims.ts';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from '../../../../src/objects/types/core.generated.ts';
import type { StorageClass } from '../../../../src/objects/types/storage.generated.ts';
import { node, pod } from '../workloads/samples.ts';

const waiting = { volumeBindingMode: 'WaitForFirstConsumer' };
const classes: readonly StorageClass[] = [
  { metadata: { name: 'made' }, provisioner: 'disks.example.com', ...waiting },
  { metadata: { name: 'local' }, provisioner: 'kubernetes.io/no-provisioner', ...waiting },
  { metadata: { name: 'ours' }, provisioner: folderProvisioner, ...waiting },
  { metadata: { name: 'now' }, provisioner: 'disks.example.com', volumeBindingMode: 'Immediate' },
];

function claim(
  storageClassName: string,
  spec: Partial<PersistentVolumeClaim['spec']> = {},
  more: Partial<PersistentVolumeClaim> = {},
): PersistentVolumeClaim {
  const bound = spec.volumeName === undefined ? {} : { [annotations.bindCompleted]: 'yes' };
  return {
    metadata: { namespace: 'n', name: 'data', uid: 'u', annotations: bound },
    spec: {
      ...{ storageClassName, accessModes: ['ReadWriteOnce'] },
      resources: { requests: { storage: '1Gi' } },
      ...spec,
    },
    status: { phase: 'Pending' },
    ...more,
  };
}

/** A volume of a class that only one node reaches. */
function volume(name: string, at: string, storageClassName = 'local'): PersistentVolume {
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [at] }];
  return {
    metadata: { name },
    spec: {
      ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchFields }] } },
    },
    status: { phase: 'Available' },
  };
}

const input = (
  claims: readonly (PersistentVolumeClaim | undefined)[],
  volumes: readonly PersistentVolume[] = [],
  users: readonly Pod[] = [],
): ClaimsInput => ({
  claims: claims.map((each) => ({ name: 'data', claim: each, users })),
  volumes,
  classNamed: (name) => classes.find(({ metadata }) => metadata.name === name),
});

describe('unusableClaim', () => {
  const deleted = { namespace: 'n', name: 'data', deletionTimestamp: '2026-01-01T00:00:00Z' };
  const lost = claim('made', { volumeName: 'v' }, { status: { phase: 'Lost' } });
  it.each<[PersistentVolumeClaim | undefined, string | undefined]>([
    [undefined, 'persistentvolumeclaim "data" not found'],
    [claim('made', {}, { metadata: deleted }), 'persistentvolumeclaim "data" is being deleted'],
    [lost, 'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"'],
    [claim('now'), 'pod has unbound immediate PersistentVolumeClaims'],
    [claim(''), 'pod has unbound immediate PersistentVolumeClaims'],
    [claim('nosuch'), 'pod has unbound immediate PersistentVolumeClaims'],
    [claim('made'), undefined],
    [claim('local'), undefined],
    [claim('now', { volumeName: 'v' }), undefined],
  ])('%#: %s', (given, said) => {
    expect(unusableClaim(input([given]))).toBe(said);
  });
});

describe('bindClaims', () => {
  it('leaves a volume to the provisioner of the class, or finds one that the node reaches', () => {
    const made = claim('made');
    expect(bindClaims(input([made]), node('a'))).toEqual([{ claim: made, volume: undefined }]);
    const near = volume('v', 'a');
    const local = claim('local');
    expect(bindClaims(input([local], [volume('w', 'b'), near]), node('a'))).toEqual([
      { claim: local, volume: near },
    ]);
    const none = { reasons: ["node(s) didn't find available persistent volumes to bind"], isLasting: true };
    expect(bindClaims(input([local], [near]), node('b'))).toEqual(none);
    // One volume is not for two claims of a Pod.
    expect(bindClaims(input([local, claim('local')], [near]), node('a'))).toEqual(none);
  });

  it('keeps a Pod at the nodes that its bound volumes reach', () => {
    const bound = claim('local', { volumeName: 'v' });
    expect(bindClaims(input([bound], [volume('v', 'a')]), node('a'))).toEqual([]);
    const far = "node(s) didn't match PersistentVolume's node affinity";
    expect(bindClaims(input([bound], [volume('v', 'a')]), node('b'))).toEqual({
      ...{ reasons: [far], isLasting: true },
    });
    const gone = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)';
    expect(bindClaims(input([bound]), node('a'))).toEqual({ reasons: [gone], isLasting: true });
    // Of two claims, each reason is given.
    const both = input([bound, claim('local')], [volume('v', 'a')]);
    expect(bindClaims(both, node('b'))).toMatchObject({ reasons: [far, expect.stringMatching(/to bind$/)] });
  });

  it('gives a claim for one Pod to no second one', () => {
    const exclusive = claim('made', { accessModes: ['ReadWriteOncePod'], volumeName: 'v' });
    const volumes = [volume('v', 'a', 'made')];
    const user = pod('user', { spec: { nodeName: 'a', priority: 1 } });
    const taken = {
      reasons: [
        'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
      ],
      isLasting: false,
    };
    expect(bindClaims(input([exclusive], volumes, [user]), node('a'))).toEqual(taken);
    expect(bindClaims(input([exclusive], volumes), node('a'))).toEqual([]);
    const shared = claim('made', { volumeName: 'v' });
    expect(bindClaims(input([shared], volumes, [user]), node('a'))).toEqual([]);
    // Of that Pod's node, a Pod of a higher priority could have the claim.
    expect(bindClaims(input([exclusive], volumes, [user]), node('a'), 1)).toEqual(taken);
    expect(bindClaims(input([exclusive], volumes, [user]), node('a'), 2)).toEqual([]);
    expect(bindClaims(input([exclusive], volumes, [user]), node('b'), 2)).toEqual(taken);
  });
});

describe('failedBinding', () => {
  const of = (given: PersistentVolumeClaim, on: readonly PersistentVolume[] = []): unknown => {
    const all = input([given], on);
    const bindings = bindClaims(all, node('a'));
    return 'reasons' in bindings ? bindings : failedBinding(bindings, all);
  };

  it('names the claim that no volume can be made for', () => {
    const block = { volumeMode: 'Block' };
    expect(of(claim('ours', block))).toBe(
      'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data": volumes of this class are folders, not block devices',
    );
    expect(of(claim('ours'))).toBeUndefined();
    // Another provisioner may have one.
    expect(of(claim('made', block))).toBeUndefined();
    const device = volume('v', 'a', 'ours');
    expect(of(claim('ours', block), [{ ...device, spec: { ...device.spec, ...block } }])).toBeUndefined();
  });
});

describe('the claim of an ephemeral volume', () => {
  const owner = { metadata: { namespace: 'n', name: 'p', uid: 'pod-uid' }, spec: {}, status: {} };
  const ownedBy = (uid: string): PersistentVolumeClaim => ({
    ...claim('made'),
    metadata: {
      ...{ namespace: 'n', name: 'p-v' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true }],
    },
  });
  it.each([
    [undefined, 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'],
    [ownedBy('another'), 'PVC n/p-v was not created for pod n/p (pod is not owner)'],
    [ownedBy('pod-uid'), undefined],
  ])('%# keeps a Pod waiting', (present, message) => {
    const problem = ephemeralProblem(owner, 'p-v', present);
    const named = { name: 'p-v', claim: present, users: [], ...(problem !== undefined && { problem }) };
    expect(unusableClaim({ ...input([]), claims: [named] })).toBe(message);
  });
});
