import { at, listAt, textAt } from '../../objects/json.ts';
import { column, timeSince, namedTable } from './table.ts';

/** Tables of resource.k8s.io. */

/** Of DeviceClasses and ResourceClaimTemplates. */
export const namesAndAgesTable = namedTable([], () => []);

export const resourceClaimsTable = namedTable(
  [column('State', 'Whether devices are allocated, and reserved for Pods.')],
  (object) => {
    const isDeleted = object.metadata.deletionTimestamp !== undefined;
    const isAllocated = at(object, 'status', 'allocation') !== undefined;
    const states = [
      ...(isDeleted ? ['deleted'] : []),
      ...(isAllocated ? ['allocated'] : isDeleted ? [] : ['pending']),
      ...(isAllocated && listAt(object, 'status', 'reservedFor').length > 0 ? ['reserved'] : []),
    ];
    return [states.join(',')];
  },
);

export const resourceSlicesTable = namedTable(
  [
    column('Node', 'The node whose devices these are.'),
    column('Driver', 'The driver that published them.'),
    column('Pool', 'The pool that they belong to.'),
  ],
  (object) => [
    textAt(object, 'spec', 'nodeName'),
    textAt(object, 'spec', 'driver'),
    textAt(object, 'spec', 'pool', 'name'),
  ],
);

export const deviceTaintRulesTable = namedTable(
  [
    column('Key', 'The key of the taint.'),
    column('Value', 'The value of the taint.'),
    column('Effect', 'What happens to claims and Pods that do not tolerate it.'),
    column('TimeAdded', 'The time since the taint was added.'),
  ],
  (object, now) => {
    const added = textAt(object, 'spec', 'taint', 'timeAdded');
    return [
      ...['key', 'value', 'effect'].map((member) => textAt(object, 'spec', 'taint', member)),
      added === '' ? '' : timeSince(added, now),
    ];
  },
);
