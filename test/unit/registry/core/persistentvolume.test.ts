import { describe, expect, test } from 'vitest';
import { contextOf, create, definitionOf, now, update } from '../decide.ts';

const kind = definitionOf('PersistentVolume');
const spec = {
  capacity: { storage: '1Gi' },
  accessModes: ['ReadWriteOnce'],
  hostPath: { path: '/mnt/data' },
};

describe('a PersistentVolume', () => {
  test('has defaults and is Pending, whatever the client says', () => {
    const { object, errors } = create(kind, { spec, status: { phase: 'Bound' } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      spec: {
        persistentVolumeReclaimPolicy: 'Retain',
        volumeMode: 'Filesystem',
        hostPath: { path: '/mnt/data', type: '' },
      },
      status: { phase: 'Pending', lastPhaseTransitionTime: now },
    });
  });

  test('says since when it has its phase', () => {
    const { stored } = create(kind, { spec });
    const later = { ...contextOf(), now: '2020-01-02T00:00:00Z' };
    const to = (status: object) => update(kind, stored, { spec, status }, 'status', later).object;
    const since = { lastPhaseTransitionTime: now };
    expect(to({ phase: 'Available', ...since })).toMatchObject({
      status: { phase: 'Available', lastPhaseTransitionTime: later.now },
    });
    expect(to({ phase: 'Pending', ...since })).toMatchObject({ status: since });
    const said = { phase: 'Bound', lastPhaseTransitionTime: '2020-01-03T00:00:00Z' };
    expect(to(said)).toMatchObject({ status: said });
  });

  const plain = { capacity: spec.capacity, accessModes: spec.accessModes };
  test.each([
    { nfs: { server: 'files.example', path: '/' } },
    { iscsi: { targetPortal: '10.0.0.1', iqn: 'iqn.2001-04.com.example:disk', lun: 0 } },
    {
      csi: {
        driver: 'disks.example.com',
        volumeHandle: 'v',
        nodeStageSecretRef: { name: 's', namespace: 'n' },
      },
    },
    { fc: { targetWWNs: ['500a0982991b8dc5'], lun: 2 } },
    { rbd: { monitors: ['10.0.0.1'], image: 'i', secretRef: { name: 's', namespace: 'n' } } },
    { cephfs: { monitors: ['10.0.0.1'] } },
    { glusterfs: { endpoints: 'e', path: 'p', endpointsNamespace: 'n' } },
    { azureFile: { secretName: 's', shareName: 'f', secretNamespace: 'n' } },
    { azureDisk: { diskName: 'd', diskURI: 'u' } },
    { scaleIO: { gateway: 'g', system: 's', volumeName: 'v', secretRef: { name: 's' } } },
    { storageos: { volumeName: 'v', volumeNamespace: 'n', secretRef: { name: 's' } } },
    { gcePersistentDisk: { pdName: 'd' } },
    { vsphereVolume: { volumePath: 'v' } },
    {
      local: { path: '/disks/one' },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'Exists' }] }] },
      },
    },
  ])('may be %j', (source) => {
    const { object, errors } = create(kind, { spec: { ...plain, ...source } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ spec: source });
  });

  test.each([
    [
      { hostPath: spec.hostPath, accessModes: [] },
      [
        'spec.accessModes: Required value',
        'spec.capacity: Required value',
        'spec.capacity: Unsupported value: null: supported values: "storage"',
      ],
    ],
    [plain, ['spec: Required value: must specify a volume type']],
    [
      { ...spec, nfs: { server: 's', path: '/' } },
      ['spec.nfs: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      { ...plain, local: { path: '' } },
      [
        'spec.local.path: Required value',
        'spec.nodeAffinity: Required value: Local volume requires node affinity',
      ],
    ],
    [
      { ...plain, iscsi: { targetPortal: '', iqn: 'x', lun: 256, chapAuthSession: true } },
      [
        'spec.iscsi.targetPortal: Required value',
        'spec.iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa',
        'spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
        'spec.iscsi.secretRef: Required value',
      ],
    ],
    [
      { ...spec, hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle', volumeMode: 'Tape' },
      [
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
        'spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
      ],
    ],
  ])('with %j is refused', (given, errors) => {
    expect(create(kind, { spec: given }).errors).toEqual(errors);
  });

  test('keeps its source and its mode', () => {
    const { stored } = create(kind, { spec });
    const changed = { ...spec, hostPath: { path: '/mnt/other' }, volumeMode: 'Block' };
    expect(update(kind, stored, { spec: changed }).errors).toEqual([
      'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
      'volumeMode: Invalid value: "Block": field is immutable',
    ]);
    const bigger = { ...spec, capacity: { storage: '2Gi' }, persistentVolumeReclaimPolicy: 'Delete' };
    expect(update(kind, stored, { spec: bigger }).errors).toEqual([]);
  });
});

test.each([
  [
    { csi: { driver: 'a.b', volumeHandle: 'x' }, volumeAttributesClassName: '' },
    ['spec.volumeAttributesClassName: Required value: an empty string is disallowed'],
  ],
  [
    { nfs: { server: 'a', path: '/' }, volumeAttributesClassName: 'gold' },
    ['spec.csi: Required value: has to be specified when using volumeAttributesClassName'],
  ],
  [
    { azureFile: { secretName: 's', shareName: 't', secretNamespace: '' } },
    ['spec.azureFile.secretNamespace: Required value'],
  ],
])('a PersistentVolume with %j says what is empty', (source, expected) => {
  const { hostPath: _, ...rest } = spec;
  expect(create(kind, { spec: { ...rest, ...source } }).errors).toEqual(expected);
});
