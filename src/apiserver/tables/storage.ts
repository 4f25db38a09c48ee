/** Tables of volumes, claims and the statuses of components. */
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf, wideColumn } from './table.ts';

const accessModes: readonly (readonly [mode: string, short: string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];
const classAnnotation = 'volume.beta.kubernetes.io/storage-class';
const unset = '<unset>';

/** The modes in a fixed order, without repeats (`GetAccessModesAsString`). */
function modesOf(modes: readonly unknown[]): string {
  const found = accessModes.filter(([mode]) => modes.includes(mode));
  return found.map(([, short]) => short).join(',');
}

function classOf(object: KubeObject): string {
  return object.metadata.annotations?.[classAnnotation] ?? textAt(object, 'spec', 'storageClassName');
}

/** The phase; Terminating for a deleted object. */
function phaseOf(object: KubeObject): string {
  return object.metadata.deletionTimestamp === undefined ? textAt(object, 'status', 'phase') : 'Terminating';
}

function attributesClassOf(object: KubeObject): string {
  return textAt(object, 'spec', 'volumeAttributesClassName') || unset;
}

function volumeModeOf(object: KubeObject): string {
  return textAt(object, 'spec', 'volumeMode') || unset;
}

export const persistentVolumesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Capacity', 'Its capacity.'),
    column('Access Modes', 'How nodes may mount it.'),
    column('Reclaim Policy', 'What happens to it when its claim is deleted.'),
    column('Status', 'Whether it is available, bound, released or failed.'),
    column('Claim', 'The claim that it is bound to.'),
    column('StorageClass', 'The class that it belongs to.'),
    column('VolumeAttributesClass', 'The class of its attributes.'),
    column('Reason', 'Why it failed.'),
    ageColumn,
    wideColumn('VolumeMode', 'A file system or a raw block device.'),
  ],
  cells(object, now) {
    const claim = at(object, 'spec', 'claimRef');
    return [
      nameOf(object),
      textAt(object, 'spec', 'capacity', 'storage') || '0',
      modesOf(listAt(object, 'spec', 'accessModes')),
      textAt(object, 'spec', 'persistentVolumeReclaimPolicy'),
      phaseOf(object),
      claim === undefined ? '' : `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}`,
      classOf(object),
      attributesClassOf(object),
      textAt(object, 'status', 'reason'),
      ageOf(object, now),
      volumeModeOf(object),
    ];
  },
};

export const persistentVolumeClaimsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Status', 'Whether it is pending, bound or lost.'),
    column('Volume', 'The volume that it is bound to.'),
    column('Capacity', 'The capacity of that volume.'),
    column('Access Modes', 'How nodes may mount that volume.'),
    column('StorageClass', 'The requested class.'),
    column('VolumeAttributesClass', 'The requested class of attributes.'),
    ageColumn,
    wideColumn('VolumeMode', 'A file system or a raw block device.'),
  ],
  cells(object, now) {
    const bound = textAt(object, 'spec', 'volumeName') !== '';
    return [
      nameOf(object),
      phaseOf(object),
      textAt(object, 'spec', 'volumeName'),
      bound ? textAt(object, 'status', 'capacity', 'storage') || '0' : '',
      bound ? modesOf(listAt(object, 'status', 'accessModes')) : '',
      classOf(object),
      attributesClassOf(object),
      ageOf(object, now),
      volumeModeOf(object),
    ];
  },
};

export const componentStatusesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Status', 'Whether the component is healthy.'),
    column('Message', 'The message of the component.'),
    column('Error', 'Its error.'),
  ],
  cells(object) {
    const healthy = listAt(object, 'conditions').find((condition) => textAt(condition, 'type') === 'Healthy');
    const status = textAt(healthy, 'status');
    return [
      nameOf(object),
      status === 'True' ? 'Healthy' : status === 'False' ? 'Unhealthy' : 'Unknown',
      textAt(healthy, 'message'),
      textAt(healthy, 'error'),
    ];
  },
};
