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

/** The modes in their fixed order, each once (`GetAccessModesAsString`). */
function modesOf(modes: readonly unknown[]): string {
  const found = accessModes.filter(([mode]) => modes.includes(mode));
  return found.map(([, short]) => short).join(',');
}

function classOf(object: KubeObject): string {
  return object.metadata.annotations?.[classAnnotation] ?? textAt(object, 'spec', 'storageClassName');
}

/** The phase, or that the object goes. */
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
    column('Capacity', 'How much it holds.'),
    column('Access Modes', 'How nodes may mount it.'),
    column('Reclaim Policy', 'What becomes of it when its claim has gone.'),
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
    column('Capacity', 'How much that volume holds.'),
    column('Access Modes', 'How nodes may mount that volume.'),
    column('StorageClass', 'The class that it asks for.'),
    column('VolumeAttributesClass', 'The class of attributes that it asks for.'),
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
    column('Message', 'What the component says.'),
    column('Error', 'What is wrong with it.'),
  ],
  cells(object) {
    const [healthy] = listAt(object, 'conditions').filter(
      (condition) => textAt(condition, 'type') === 'Healthy',
    );
    const words = new Map([
      ['True', 'Healthy'],
      ['False', 'Unhealthy'],
    ]);
    return [
      nameOf(object),
      words.get(textAt(healthy, 'status')) ?? 'Unknown',
      textAt(healthy, 'message'),
      textAt(healthy, 'error'),
    ];
  },
};
