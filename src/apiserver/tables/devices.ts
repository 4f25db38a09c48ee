import { at, listAt, textAt } from '../../objects/json.ts';
import { ageColumn, ageOf, column, nameColumn, nameOf, type TableConverter, timeSince } from './table.ts';

/** Tables of resource.k8s.io. */

/** Of DeviceClasses and ResourceClaimTemplates. */
export const namesAndAgesTable: TableConverter = {
  columns: [nameColumn, ageColumn],
  cells: (object, now) => [nameOf(object), ageOf(object, now)],
};

export const resourceClaimsTable: TableConverter = {
  columns: [nameColumn, column('State', 'Whether devices are allocated, and reserved for Pods.'), ageColumn],
  cells(object, now) {
    const isDeleted = object.metadata.deletionTimestamp !== undefined;
    const isAllocated = at(object, 'status', 'allocation') !== undefined;
    const states = [
      ...(isDeleted ? ['deleted'] : []),
      ...(isAllocated ? ['allocated'] : isDeleted ? [] : ['pending']),
      ...(isAllocated && listAt(object, 'status', 'reservedFor').length > 0 ? ['reserved'] : []),
    ];
    return [nameOf(object), states.join(','), ageOf(object, now)];
  },
};

export const resourceSlicesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Node', 'The node whose devices these are.'),
    column('Driver', 'The driver that published them.'),
    column('Pool', 'The pool that they belong to.'),
    ageColumn,
  ],
  cells: (object, now) => [
    nameOf(object),
    textAt(object, 'spec', 'nodeName'),
    textAt(object, 'spec', 'driver'),
    textAt(object, 'spec', 'pool', 'name'),
    ageOf(object, now),
  ],
};

export const deviceTaintRulesTable: TableConverter = {
  columns: [
    nameColumn,
    column('Key', 'The key of the taint.'),
    column('Value', 'The value of the taint.'),
    column('Effect', 'What happens to claims and Pods that do not tolerate it.'),
    column('TimeAdded', 'The time since the taint was added.'),
    ageColumn,
  ],
  cells(object, now) {
    const added = textAt(object, 'spec', 'taint', 'timeAdded');
    return [
      nameOf(object),
      ...['key', 'value', 'effect'].map((member) => textAt(object, 'spec', 'taint', member)),
      added === '' ? '' : timeSince(added, now),
      ageOf(object, now),
    ];
  },
};
