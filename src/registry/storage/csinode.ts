import type { CSINode, CSINodeDriver } from '../../objects/types/storage.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { validateCsiDriverName } from './csidriver.ts';
import { duplicate, type FieldError, invalid, required } from '../validation/field-errors.ts';
import { addEmptyParts, genericStrategy, resetMetaForStatus } from '../generic/generic.ts';
import { isQualifiedName, nameIsDNSSubdomain } from '../../objects/names.ts';
import type { Strategy } from '../generic/strategy.ts';

const maxNodeId = 256;

const rules = genericStrategy<CSINode>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  deleteReturnsObject: true,
  allowUnconditionalUpdate: false,
  hasStatus: true,
  statusResets: [['metadata']],
  prepareStatus: resetMetaForStatus,
  // CSIVolumeHealth
  disabledStatus: [[['status', 'storageHealth']]],
  setDefaults: addEmptyParts,
  validateCreate: ({ spec }) => {
    const names = new Set<string>();
    return (spec.drivers ?? []).flatMap((driver, i) => validateDriver(driver, names, `spec.drivers[${i}]`));
  },
});

/** The rules of CSINodes (`apis/storage/validation` ValidateCSINode). */
export const csiNodeStrategy: Strategy<CSINode> = {
  ...rules,
  // An update is validated as a create, without further rules of its metadata.
  validateUpdate: (node, old, context) => [
    ...rules.validateCreate(node, context),
    ...validateDriverChanges(node, old),
  ],
};

function validateDriver(driver: CSINodeDriver, names: Set<string>, path: string): FieldError[] {
  const { name, nodeID, allocatable } = driver;
  const topologyKeys = driver.topologyKeys ?? [];
  const errors = validateCsiDriverName(name, `${path}.name`);
  if (nodeID === '') errors.push(required(`${path}.nodeID`));
  if (Buffer.byteLength(nodeID) > maxNodeId) {
    errors.push(invalid(`${path}.nodeID`, nodeID, `must be ${maxNodeId} characters or less`));
  }
  const { count } = allocatable ?? {};
  if (count !== undefined && count < 0) {
    errors.push(invalid(`${path}.allocatable.count`, count, 'must be greater than or equal to 0'));
  }
  if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
  names.add(name);
  topologyKeys.forEach((key, i) => {
    if (key === '') errors.push(required(path));
    if (topologyKeys.indexOf(key) < i) errors.push(duplicate(path, key));
    for (const message of isQualifiedName(key)) errors.push(invalid(path, key, message));
  });
  return errors;
}

/** Of an existing driver only the number of volumes may change. */
function validateDriverChanges({ spec }: CSINode, old: CSINode): FieldError[] {
  return (old.spec.drivers ?? []).flatMap((before) =>
    (spec.drivers ?? [])
      .filter(({ name }) => name === before.name)
      .map(printed)
      .filter((driver) => !jsonEqual(driver, printed(before)))
      .map((driver) => invalid('spec.drivers', driver, 'field is immutable')),
  );
}

/** The driver as kube-apiserver prints it, with Go's field names. */
function printed({ name, nodeID, topologyKeys }: CSINodeDriver): object {
  return {
    Name: name,
    NodeID: nodeID,
    TopologyKeys: (topologyKeys ?? []).length === 0 ? null : topologyKeys,
    Allocatable: null,
  };
}
