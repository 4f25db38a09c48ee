/** Tables of classes of Pods and volumes, and of CSI objects. */
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, numberAt, scalarAt, textAt } from '../../objects/read.ts';
import { type TableConverter, ageColumn, ageOf, column, nameColumn, nameOf } from './table.ts';

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];
const unset = '<unset>';
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
    isDefault(object) ? `${nameOf(object)} (default)` : nameOf(object),
    textAt(object, 'provisioner'),
    textAt(object, 'reclaimPolicy') || 'Delete',
    textAt(object, 'volumeBindingMode') || 'Immediate',
    at(object, 'allowVolumeExpansion') === true,
    ageOf(object, now),
  ],
};

export const volumeAttributesClassesTable: TableConverter = {
  columns: [nameColumn, column('DriverName', 'The driver of its volumes.'), ageColumn],
  cells: (object, now) => [nameOf(object), textAt(object, 'driverName'), ageOf(object, now)],
};

export const volumeAttachmentsTable: TableConverter = {
  columns: [
    nameColumn,
    column('Attacher', 'The driver that attaches the volume.'),
    column('PV', 'The volume.'),
    column('Node', 'The node that it is attached to.'),
    column('Attached', 'Whether it is attached.', boolean),
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    textAt(object, 'spec', 'attacher'),
    textAt(object, 'spec', 'source', 'persistentVolumeName'),
    textAt(object, 'spec', 'nodeName'),
    at(object, 'status', 'attached') === true,
    ageOf(object, now),
  ],
};

export const csiDriversTable: TableConverter = {
  columns: [
    nameColumn,
    column('AttachRequired', 'Whether volumes are attached before they are mounted.', boolean),
    column('PodInfoOnMount', 'Whether the driver gets information about the Pod.', boolean),
    column('StorageCapacity', 'Whether Pods are placed by the capacity that the driver publishes.', boolean),
    column('TokenRequests', 'Audiences of the tokens that the driver gets.'),
    column('RequiresRepublish', 'Whether the driver is called periodically.', boolean),
    column('Modes', 'The lifecycle modes of its volumes.'),
    ageColumn,
  ],
  cells(object, now) {
    const flag = (name: string) => at(object, 'spec', name) === true;
    const requests = at(object, 'spec', 'tokenRequests');
    const audiences = listAt(object, 'spec', 'tokenRequests').map((request) => textAt(request, 'audience'));
    const modes = listAt(object, 'spec', 'volumeLifecycleModes').map(String);
    return [
      nameOf(object),
      at(object, 'spec', 'attachRequired') !== false,
      flag('podInfoOnMount'),
      flag('storageCapacity'),
      requests === undefined ? unset : audiences.join(','),
      flag('requiresRepublish'),
      modes.length === 0 ? '<none>' : modes.join(','),
      ageOf(object, now),
    ];
  },
};

export const csiNodesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Drivers', 'The number of drivers on the node.', { type: 'integer' }),
    ageColumn,
  ],
  cells: (object, now) => [nameOf(object), listAt(object, 'spec', 'drivers').length, ageOf(object, now)],
};

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

export const runtimeClassesTable: TableConverter = {
  columns: [nameColumn, column('Handler', 'The configuration of the container runtime.'), ageColumn],
  cells: (object, now) => [nameOf(object), textAt(object, 'handler'), ageOf(object, now)],
};
