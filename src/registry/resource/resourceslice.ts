import { pushAll } from '../../objects/lists.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type {
  Counter,
  Device,
  DeviceAttribute,
  ResourceSlice,
  ResourceSliceSpec,
} from '../../objects/types/resource.generated.ts';
import { validateNodeSelector } from '../core/pod/scheduling.ts';
import type { DisabledFeature } from '../generic/disabled-fields.ts';
import { genericStrategy, isSpecChanged } from '../generic/generic.ts';
import { validateImmutableField } from '../generic/metadata.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  invalid,
  required,
  tooLong,
  tooMany,
} from '../validation/field-errors.ts';
import { validateExclusiveCapacity, validateSharedCapacity } from './capacity.ts';
import {
  declared,
  isSame,
  validateBindingConditions,
  validateDriver,
  validateLabel,
  validateMap,
  validatePool,
  validateQualifiedName,
  validateSet,
  validateSubdomain,
  validateTaint,
} from './checks.ts';

const maxDevices = 128;
/** Where a device has taints or counters. */
const maxDevicesWithMore = 64;
const maxCounterSets = 8;
const maxCounters = 32;
const maxConsumptions = 2;
const maxLabel = 63;
const maxEntries = 32;
const maxValues = 48;
const maxTaints = 16;
/** A domain, a slash and an identifier. */
const maxKey = 63 + 1 + 32;
/** In bytes. */
const maxText = 64;

/** What 1.37 has off by default (`pkg/registry/resource/resourceslice` dropDisabledFields). */
const disabledFeatures: readonly DisabledFeature[] = [
  // DRAPartitionableDevicesType
  [['spec', 'partitionTypeAttribute']],
  // DRAOptionalNodeOperations
  [['spec', 'skipNodeOperations']],
  // DRANodeAllocatableResources
  [['spec', 'devices', '*', 'nodeAllocatableResources']],
  // DRAListTypeAttributes
  ['ints', 'bools', 'strings', 'versions'].map((list) => ['spec', 'devices', '*', 'attributes', '*', list]),
  // DRADeviceCompatibilityGroups
  [['spec', 'devices', '*', 'consumesCounters', '*', 'compatibilityGroups']],
];

/** The rules of ResourceSlices (`apis/resource/validation` ValidateResourceSlice). */
export const resourceSliceStrategy = genericStrategy<ResourceSlice>({
  namespaced: false,
  nameRule: nameIsDNSSubdomain,
  generationChanges: isSpecChanged,
  disabled: disabledFeatures,
  setDefaults(slice: Partial<Pick<ResourceSlice, 'spec'>>) {
    slice.spec ??= { driver: '', pool: { name: '', generation: 0, resourceSliceCount: 0 } };
  },
  prepareForCreate({ spec }, { now }) {
    setTaintTimes(spec, now);
  },
  prepareForUpdate({ spec }, _old, { now }) {
    setTaintTimes(spec, now);
  },
  validateCreate: ({ spec }) => validateSpec(spec, undefined),
  validateUpdate: ({ spec }, old) => validateSpec(spec, old.spec),
  warningsOnCreate: ({ spec }) => driverWarnings(spec),
  warningsOnUpdate: ({ spec }) => driverWarnings(spec),
  fields: ({ spec }: Partial<Pick<ResourceSlice, 'spec'>>) => ({
    'spec.nodeName': spec?.nodeName ?? '',
    'spec.driver': spec?.driver ?? '',
    'spec.pool.name': spec?.pool.name ?? '',
  }),
});

function setTaintTimes({ devices = [] }: ResourceSliceSpec, now: string): void {
  for (const { taints = [] } of devices) for (const taint of taints) taint.timeAdded ??= now;
}

function driverWarnings({ driver }: ResourceSliceSpec): string[] {
  if (driver === driver.toLowerCase()) return [];
  const quoted = JSON.stringify(driver);
  return [`spec.driver: driver names should be lowercase; ${quoted} contains uppercase characters`];
}

const places = '`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`';

function validateSpec(spec: ResourceSliceSpec, old: ResourceSliceSpec | undefined): FieldError[] {
  const { driver, pool, nodeName, nodeSelector, allNodes, perDeviceNodeSelection, devices } = spec;
  const errors = [...validateDriver(driver, 'spec.driver'), ...validatePool(pool.name, 'spec.pool.name')];
  if (pool.resourceSliceCount <= 0) {
    errors.push(
      invalid('spec.pool.resourceSliceCount', pool.resourceSliceCount, 'must be greater than zero'),
    );
  }
  if (pool.generation < 0) {
    errors.push(invalid('spec.pool.generation', pool.generation, 'must be greater than or equal to zero'));
  }
  if (old !== undefined) {
    pushAll(
      errors,
      validateImmutableField(pool.name, old.pool.name, 'spec.pool.name'),
      validateImmutableField(driver, old.driver, 'spec.driver'),
      validateImmutableField(nodeName ?? null, old.nodeName ?? null, 'spec.nodeName'),
    );
  }
  const set: string[] = [];
  if (nodeName === '') {
    errors.push(invalid('spec.nodeName', '', 'must be either unset or set to a non-empty string'));
  } else if (nodeName !== undefined) {
    set.push('`nodeName`');
    pushAll(errors, validateSubdomain(nodeName, 'spec.nodeName'));
  }
  if (nodeSelector !== undefined) {
    set.push('`nodeSelector`');
    pushAll(errors, validateNodeSelector(nodeSelector, 'spec.nodeSelector'));
    const terms = termsOf(nodeSelector);
    if (terms?.length !== 1) {
      const detail = 'must have exactly one node selector term';
      errors.push(invalid('spec.nodeSelector.nodeSelectorTerms', terms, detail));
    }
  }
  for (const [name, value] of Object.entries({ allNodes, perDeviceNodeSelection })) {
    if (value === true) set.push(`\`${name}\``);
    if (value === false) errors.push(invalid(`spec.${name}`, false, 'must be either unset or set to true'));
  }
  if (set.length === 0) errors.push(required('spec', `exactly one of ${places} is required`));
  if (set.length > 1) {
    const detail = `exactly one of ${places} is required, but multiple fields are set`;
    errors.push(invalid('spec', `{${set.join(', ')}}`, detail));
  }
  if (spec.sharedCounters !== undefined && devices !== undefined) {
    errors.push(invalid('spec', '', 'only one of `sharedCounters` or `devices` is allowed'));
  }
  return [...errors, ...validateDevices(spec, old), ...validateCounterSets(spec)];
}

function validateDevices(
  { devices, perDeviceNodeSelection }: ResourceSliceSpec,
  old: ResourceSliceSpec | undefined,
) {
  const all = devices ?? [];
  const before = new Map((old?.devices ?? []).map((device) => [device.name, device]));
  const hasMore = all.some(
    ({ taints = [], consumesCounters = [] }) => taints.length + consumesCounters.length > 0,
  );
  const max = hasMore ? maxDevicesWithMore : maxDevices;
  const path = 'spec.devices';
  // Neither is declared at the field.
  if (all.length > max) return [tooMany(path, all.length, max)];
  const errors = all.flatMap((device, i) =>
    validateDevice(device, before.get(device.name), `${path}[${i}]`, perDeviceNodeSelection === true),
  );
  const names = new Set<string>();
  all.forEach(({ name }, i) => {
    if (names.has(name)) errors.push(duplicate(`${path}[${i}]`, name));
    names.add(name);
  });
  return errors;
}

function validateCounterSets({ sharedCounters }: ResourceSliceSpec): FieldError[] {
  return validateSet(
    sharedCounters,
    maxCounterSets,
    'spec.sharedCounters',
    ({ name, counters }, path) => [
      ...validateRequiredLabel(name, `${path}.name`),
      ...validateCounters(counters, `${path}.counters`),
    ],
    ({ name }) => name,
  );
}

function validateRequiredLabel(name: string, path: string): FieldError[] {
  return declared(name === '' ? [required(path)] : validateLabel(name, path));
}

function validateCounters(counters: Record<string, Counter> | null, path: string): FieldError[] {
  if (Object.keys(counters ?? {}).length === 0) return [declarative(required(path))];
  const key = (name: string, at: string): FieldError[] => declared(validateLabel(name, at));
  return validateMap(counters, maxCounters, maxLabel, path, key, () => []);
}

function validateDevice(
  device: Device,
  old: Device | undefined,
  path: string,
  isPerDevice: boolean,
): FieldError[] {
  const { attributes = {}, capacity = {}, taints = [], consumesCounters } = device;
  const errors = validateLabel(device.name, `${path}.name`);
  const entries = Object.keys(attributes).length + Object.keys(capacity).length;
  if (entries > maxEntries) {
    const detail = `the total number of attributes and capacities must not exceed ${maxEntries}`;
    errors.push(invalid(path, entries, detail));
  }
  const values = Object.keys(attributes).length;
  if (values > maxValues) {
    const detail = `the total number of attribute values must not exceed ${maxValues}`;
    errors.push(invalid(path, values, detail));
  }
  const anyNumber = Number.POSITIVE_INFINITY;
  pushAll(
    errors,
    validateMap(
      attributes,
      anyNumber,
      maxKey,
      `${path}.attributes`,
      validateQualifiedName,
      validateAttribute,
    ),
  );
  if (old === undefined || !isSame(capacity, old.capacity)) {
    const validate =
      device.allowMultipleAllocations === true ? validateSharedCapacity : validateExclusiveCapacity;
    pushAll(
      errors,
      validateMap(capacity, anyNumber, maxKey, `${path}.capacity`, validateQualifiedName, validate),
    );
  }
  if (old === undefined || !isSame(taints, old.taints)) {
    if (taints.length > maxTaints) errors.push(tooMany(`${path}.taints`, taints.length, maxTaints));
    else
      pushAll(
        errors,
        taints.flatMap((taint, i) => validateTaint(taint, undefined, `${path}.taints[${i}]`)),
      );
  }
  pushAll(
    errors,
    validateSet(
      consumesCounters,
      maxConsumptions,
      `${path}.consumesCounters`,
      ({ counterSet, counters }, at) => [
        ...validateRequiredLabel(counterSet, `${at}.counterSet`),
        ...validateCounters(counters, `${at}.counters`),
      ],
      ({ counterSet }) => counterSet,
    ),
    validatePlace(device, path, isPerDevice),
    validateBindingConditions(device.bindingConditions ?? [], device.bindingFailureConditions ?? [], path),
  );
  return errors;
}

/** Where a device is, if not all of the slice are in one place. */
function validatePlace(
  { nodeName, nodeSelector, allNodes }: Device,
  path: string,
  isPerDevice: boolean,
): FieldError[] {
  const whenSet = 'if `perDeviceNodeSelection` is set to true in the ResourceSlice spec';
  if (!isPerDevice) {
    if (nodeName === undefined && nodeSelector === undefined && allNodes === undefined) return [];
    return [
      invalid(path, null, `\`nodeName\`, \`nodeSelector\` and \`allNodes\` can only be set ${whenSet}`),
    ];
  }
  const errors: FieldError[] = [];
  const set: string[] = [];
  if (nodeName === '') errors.push(invalid(`${path}.nodeName`, '', 'must not be empty'));
  else if (nodeName !== undefined) {
    set.push('`nodeName`');
    pushAll(errors, validateSubdomain(nodeName, `${path}.nodeName`));
  }
  if (nodeSelector !== undefined) {
    set.push('`nodeSelector`');
    pushAll(errors, validateNodeSelector(nodeSelector, `${path}.nodeSelector`));
  }
  if (allNodes === true) set.push('`allNodes`');
  if (allNodes === false) {
    errors.push(invalid(`${path}.allNodes`, false, 'must be either unset or set to true'));
  }
  const detail = `exactly one of \`nodeName\`, \`nodeSelector\`, or \`allNodes\` is required ${whenSet.replace('if', 'when')}`;
  if (set.length === 0) errors.push(required(path, detail));
  if (set.length > 1) errors.push(invalid(path, `{${set.join(', ')}}`, detail));
  return errors;
}

const semver =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$/;

function validateAttribute(attribute: DeviceAttribute, path: string): FieldError[] {
  const { string: text, version } = attribute;
  const errors: FieldError[] = [];
  const long = (value: string, at: string): FieldError[] =>
    Buffer.byteLength(value) > maxText ? [tooLong(at, maxText)] : [];
  if (text !== undefined) pushAll(errors, long(text, `${path}.string`));
  if (version !== undefined) {
    const at = `${path}.version`;
    // A long one is not matched: its parts may be read in many ways.
    if (Buffer.byteLength(version) > maxText || !semver.test(version)) {
      errors.push(invalid(at, version, 'must be a string compatible with semver.org spec 2.0.0'));
    }
    pushAll(errors, long(version, at));
  }
  const members = ['int', 'bool', 'string', 'version', 'ints', 'bools', 'strings', 'versions'] as const;
  const quoted = members.map((member) => `\`${member}\``);
  const set = members.filter((member) => attribute[member] !== undefined);
  if (set.length === 0) {
    errors.push(declarative(invalid(path, '', `must specify one of: ${quoted.join(', ')}`)));
  }
  if (set.length > 1) {
    const shown = `{${set.map((member) => `\`${member}\``).join(', ')}}`;
    errors.push(declarative(invalid(path, shown, `must specify exactly one of: ${quoted.join(', ')}`)));
  }
  return errors;
}

/** They may be null in what a client sends. */
function termsOf(selector: { nodeSelectorTerms?: readonly unknown[] | null }): readonly unknown[] | null {
  return selector.nodeSelectorTerms ?? null;
}
