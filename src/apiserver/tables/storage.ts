import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, textAt, numberAt, scalarAt } from '../../objects/json.ts';
import {
  type TableConverter,
  ageColumn,
  ageOf,
  column,
  nameColumn,
  nameOf,
  wideColumn,
  namedTable,
} from './table.ts';

/**
 * - Tables of volumes, claims and the statuses of components.
 * - Tables of classes of Pods and volumes, and of CSI objects.
 */

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

export const persistentVolumesTable = namedTable(
  [
    column('Capacity', 'Its capacity.'),
    column('Access Modes', 'How nodes may mount it.'),
    column('Reclaim Policy', 'What happens to it when its claim is deleted.'),
    column('Status', 'Whether it is available, bound, released or failed.'),
    column('Claim', 'The claim that it is bound to.'),
    column('StorageClass', 'The class that it belongs to.'),
    column('VolumeAttributesClass', 'The class of its attributes.'),
    column('Reason', 'Why it failed.'),
    wideColumn('VolumeMode', 'A file system or a raw block device.'),
  ],
  (object) => {
    const claim = at(object, 'spec', 'claimRef');
    return [
      textAt(object, 'spec', 'capacity', 'storage') || '0',
      modesOf(listAt(object, 'spec', 'accessModes')),
      textAt(object, 'spec', 'persistentVolumeReclaimPolicy'),
      phaseOf(object),
      claim === undefined ? '' : `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}`,
      classOf(object),
      attributesClassOf(object),
      textAt(object, 'status', 'reason'),
      volumeModeOf(object),
    ];
  },
);

export const persistentVolumeClaimsTable = namedTable(
  [
    column('Status', 'Whether it is pending, bound or lost.'),
    column('Volume', 'The volume that it is bound to.'),
    column('Capacity', 'The capacity of that volume.'),
    column('Access Modes', 'How nodes may mount that volume.'),
    column('StorageClass', 'The requested class.'),
    column('VolumeAttributesClass', 'The requested class of attributes.'),
    wideColumn('VolumeMode', 'A file system or a raw block device.'),
  ],
  (object) => {
    const bound = textAt(object, 'spec', 'volumeName') !== '';
    return [
      phaseOf(object),
      textAt(object, 'spec', 'volumeName'),
      bound ? textAt(object, 'status', 'capacity', 'storage') || '0' : '',
      bound ? modesOf(listAt(object, 'status', 'accessModes')) : '',
      classOf(object),
      attributesClassOf(object),
      volumeModeOf(object),
    ];
  },
);

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

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];
const boolean = { type: 'boolean' };

function isDefault({ metadata: { annotations } }: KubeObject): boolean {
  return defaultAnnotations.some((name) => annotations?.[name] === 'true');
}

export const storageClassesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Provisioner', 'The provisioner of its volumes.'),
    column('ReclaimPolicy', 'What happens to a volume when its claim is deleted.'),
    column('VolumeBindingMode', 'When a claim gets its volume.'),
    column('AllowVolumeExpansion', 'Whether claims may grow.'),
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    textAt(object, 'provisioner'),
    textAt(object, 'reclaimPolicy') || 'Delete',
    textAt(object, 'volumeBindingMode') || 'Immediate',
    at(object, 'allowVolumeExpansion') === true,
    ageOf(object, now),
  ],
  /** Only a list knows which of several default classes counts. */
  ofList(classes) {
    const effective = effectiveDefault(classes);
    return {
      ...storageClassesTable,
      cells(object, now) {
        const [name, ...cells] = storageClassesTable.cells(object, now);
        return [object === effective ? `${nameOf(object)} (default)` : name, ...cells];
      },
    };
  },
};

/** The newest of the default classes, of those the first by name (`getEffectiveDefaultStorageClass`). */
function effectiveDefault(classes: readonly KubeObject[]): KubeObject | undefined {
  const [first] = classes.filter(isDefault).toSorted((a, b) => {
    const [left = '', right = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
    if (left !== right) return left < right ? 1 : -1;
    return nameOf(a) < nameOf(b) ? -1 : 1;
  });
  return first;
}

export const volumeAttributesClassesTable = namedTable(
  [column('DriverName', 'The driver of its volumes.')],
  (object) => [textAt(object, 'driverName')],
);

export const volumeAttachmentsTable = namedTable(
  [
    column('Attacher', 'The driver that attaches the volume.'),
    column('PV', 'The volume.'),
    column('Node', 'The node that it is attached to.'),
    column('Attached', 'Whether it is attached.', boolean),
  ],
  (object) => [
    textAt(object, 'spec', 'attacher'),
    textAt(object, 'spec', 'source', 'persistentVolumeName'),
    textAt(object, 'spec', 'nodeName'),
    at(object, 'status', 'attached') === true,
  ],
);

export const csiDriversTable = namedTable(
  [
    column('AttachRequired', 'Whether volumes are attached before they are mounted.', boolean),
    column('PodInfoOnMount', 'Whether the driver gets information about the Pod.', boolean),
    column('StorageCapacity', 'Whether Pods are placed by the capacity that the driver publishes.', boolean),
    column('TokenRequests', 'Audiences of the tokens that the driver gets.'),
    column('RequiresRepublish', 'Whether the driver is called periodically.', boolean),
    column('Modes', 'The lifecycle modes of its volumes.'),
  ],
  (object) => {
    const flag = (name: string) => at(object, 'spec', name) === true;
    const requests = at(object, 'spec', 'tokenRequests');
    const audiences = listAt(object, 'spec', 'tokenRequests').map((request) => textAt(request, 'audience'));
    const modes = listAt(object, 'spec', 'volumeLifecycleModes').map(String);
    return [
      at(object, 'spec', 'attachRequired') !== false,
      flag('podInfoOnMount'),
      flag('storageCapacity'),
      requests === undefined ? unset : audiences.join(','),
      flag('requiresRepublish'),
      modes.length === 0 ? '<none>' : modes.join(','),
    ];
  },
);

export const csiNodesTable = namedTable(
  [column('Drivers', 'The number of drivers on the node.', { type: 'integer' })],
  (object) => [listAt(object, 'spec', 'drivers').length],
);

export const csiStorageCapacitiesTable: TableConverter = {
  columns: [
    nameColumn,
    column('StorageClassName', 'The class of the volumes.'),
    column('Capacity', 'The available capacity.'),
  ],
  cells: (object) => [
    nameOf(object),
    textAt(object, 'storageClassName'),
    scalarAt(object, 'capacity') ?? unset,
  ],
};

export const priorityClassesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Value', 'The priority; higher values go first.', { type: 'integer' }),
    column('Global-Default', 'Whether it is the class of Pods without a class.', boolean),
    ageColumn,
    column('PreemptionPolicy', 'Whether its Pods may preempt others.'),
  ],
  cells: (object, now) => [
    nameOf(object),
    numberAt(object, 'value'),
    at(object, 'globalDefault') === true,
    ageOf(object, now),
    textAt(object, 'preemptionPolicy'),
  ],
};

export const runtimeClassesTable = namedTable(
  [column('Handler', 'The configuration of the container runtime.')],
  (object) => [textAt(object, 'handler')],
);

export const storageVersionMigrationsTable: TableConverter = {
  columns: [
    // Without the format of other columns of names.
    column('Name', 'Name of the object.'),
    column('Resource', 'The resource whose objects are rewritten.'),
    column('Status', 'Running, Succeeded or Failed.'),
  ],
  cells(object) {
    const resource = textAt(object, 'spec', 'resource', 'resource');
    const group = textAt(object, 'spec', 'resource', 'group');
    const state = listAt(object, 'status', 'conditions').findLast(
      (condition) =>
        textAt(condition, 'status') === 'True' &&
        ['Running', 'Failed', 'Succeeded'].includes(textAt(condition, 'type')),
    );
    return [
      nameOf(object),
      group === '' ? resource : `${resource}.${group}`,
      state === undefined ? 'Unknown' : textAt(state, 'type'),
    ];
  },
};
