import { jsonEqual } from '../../objects/json.ts';
import { nameIsDNSSubdomain } from '../../objects/names.ts';
import type {
  AllocatedDeviceStatus,
  AllocationResult,
  DeviceRequestAllocationResult,
  NetworkDeviceData,
  ResourceClaim,
  ResourceClaimConsumerReference,
  ResourceClaimStatus,
} from '../../objects/types/resource.generated.ts';
import { validateNodeSelector } from '../core/pod/scheduling.ts';
import { genericStrategy, resetMetaForStatus } from '../generic/generic.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../generic/metadata.ts';
import type { Strategy, StrategyContext, UserInfo } from '../generic/strategy.ts';
import { validateConditions } from '../validation/conditions.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
  tooLong,
  tooMany,
} from '../validation/field-errors.ts';
import {
  validateBindingConditions,
  validateDeclaredDriver,
  validateDeclaredPool,
  validateDriver,
  validateInterfaceAddress,
  validateLabel,
  validateList,
  validatePool,
  validateRawObject,
  validateSet,
  validateToleration,
  validateUuid,
} from './checks.ts';
import {
  adminErrors,
  adminRequestErrors,
  disabledClaimFeatures,
  emptyClaimSpec,
  maxConfig,
  maxRequests,
  requestNamesOf,
  type RequestNames,
  selectorsOf,
  setClaimDefaults,
  validateClaimSpec,
  validateConfiguration,
  validateReference,
  validateReferences,
} from './device-claim.ts';
import { compileSelectors } from './device-expressions.ts';

/** A permission of resource.k8s.io that a write of a status needs. */
interface ClaimAccess {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

/** Why a user may not do something; undefined: it is allowed. */
export type RefusalOf = (user: UserInfo, access: ClaimAccess) => string | undefined;

const maxReservations = 256;
const maxConditions = 8;
/** In bytes. */
const maxData = 10 * 1024;
const maxAddresses = 16;
const maxInterfaceName = 256;
const maxHardwareAddress = 128;

/**
 * The rules of ResourceClaims (`apis/resource/validation`, `pkg/registry/resource/resourceclaim`).
 *
 * @param refusalOf undefined: everybody may write the status.
 */
export function resourceClaimStrategy(refusalOf: RefusalOf | undefined): Strategy<ResourceClaim> {
  const rules = genericStrategy<ResourceClaim>({
    namespaced: true,
    nameRule: nameIsDNSSubdomain,
    hasStatus: true,
    disabled: disabledClaimFeatures('spec'),
    // DRAOptionalNodeOperations
    disabledStatus: [[['status', 'allocation', 'devices', 'results', '*', 'skipNodeOperations']]],
    statusResets: [['metadata']],
    prepareStatus(claim, old) {
      resetMetaForStatus(claim, old);
      dropDeallocated(claim.status, old.status);
    },
    setDefaults(claim: Partial<Pick<ResourceClaim, 'spec' | 'status'>>) {
      claim.spec ??= emptyClaimSpec();
      claim.status ??= {};
      setClaimDefaults(claim.spec);
      for (const result of claim.status.allocation?.devices?.results ?? []) {
        for (const toleration of result.tolerations ?? []) toleration.operator ||= 'Equal';
      }
    },
    declaredImmutable: ['spec'],
  });
  if (rules.status === undefined) return rules;
  return {
    ...rules,
    prepareValidation: (claim) => compileSelectors(claim, selectorsOf(claim.spec)),
    validateCreate: (claim, context) => [
      ...adminRequestErrors(claim.spec, claim.metadata.namespace ?? '', context),
      ...validateObjectMeta(claim.metadata, { namespaced: true, nameRule: nameIsDNSSubdomain }),
      ...validateClaimSpec(claim.spec, 'spec', claim),
    ],
    status: {
      ...rules.status,
      validateUpdate: (claim, old, context) => [
        ...adminStatusErrors(claim, old, context),
        ...(refusalOf === undefined ? [] : permissionErrors(claim, old, context, refusalOf)),
        ...validateObjectMetaUpdate(claim.metadata, old.metadata),
        ...validateStatus(claim, old.status),
      ],
    },
  };
}

interface DeviceId {
  readonly driver: string;
  readonly pool: string;
  readonly device: string;
  readonly shareID?: string;
}

function keyOf({ driver, pool, device, shareID = '' }: DeviceId): string {
  return [driver, pool, device, shareID].join(' ');
}

function resultsOf({ allocation }: ResourceClaimStatus): readonly DeviceRequestAllocationResult[] {
  return allocation?.devices?.results ?? [];
}

/** The status of devices goes with their allocation (`dropDeallocatedStatusDevices`). */
function dropDeallocated(status: ResourceClaimStatus, old: ResourceClaimStatus): void {
  const gone = new Set(resultsOf(old).map(keyOf));
  for (const result of resultsOf(status)) gone.delete(keyOf(result));
  const devices = (status.devices ?? []).filter((device) => !gone.has(keyOf(device)));
  if (devices.length > 0) status.devices = devices;
  else delete status.devices;
}

function adminStatusErrors(
  { metadata, status }: ResourceClaim,
  old: ResourceClaim,
  context: StrategyContext,
): FieldError[] {
  const at = resultsOf(status).findIndex(({ adminAccess }) => adminAccess === true);
  if (at < 0 || resultsOf(old.status).some(({ adminAccess }) => adminAccess === true)) return [];
  const path = `status.allocation.devices.results[${at}].adminAccess`;
  return adminErrors(path, metadata.namespace ?? '', context);
}

/** Allocating, reserving and reporting are permissions of their own (`pkg/registry/resource/utils.go`). */
function permissionErrors(
  { metadata, status }: ResourceClaim,
  { status: old }: ResourceClaim,
  { user, verb = 'update' }: StrategyContext,
  refusalOf: RefusalOf,
): FieldError[] {
  if (user === undefined) return [];
  const access = { group: 'resource.k8s.io', resource: 'resourceclaims' };
  const errors: FieldError[] = [];
  const isBinding =
    !jsonEqual(status.allocation ?? null, old.allocation ?? null) ||
    !jsonEqual(status.reservedFor ?? [], old.reservedFor ?? []);
  if (isBinding) {
    const refusal = refusalOf(user, { ...access, verb, subresource: 'binding', namespace: '', name: '' });
    const needs = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission`;
    if (refusal !== undefined) errors.push(forbiddenField('status.allocation', `${needs}: ${refusal}`));
  }
  if (status.allocation === undefined) return errors;
  const node = allocatedNode(status.allocation);
  const isOnNode = node !== '' && isServiceAccountOn(user, node);
  const verbs = [...(isOnNode ? [`associated-node:${verb}`] : []), `arbitrary-node:${verb}`];
  for (const driver of changedDrivers(status, old)) {
    const { namespace = '' } = metadata;
    const refusals = verbs.map((each) =>
      refusalOf(user, { ...access, verb: each, subresource: 'driver', namespace, name: driver }),
    );
    if (refusals.includes(undefined)) continue;
    const needs = `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission`;
    errors.push(forbiddenField('status.devices', `${needs}: ${refusals[0] ?? ''}`));
  }
  return errors;
}

/** The drivers whose devices have another status, sorted. */
function changedDrivers(status: ResourceClaimStatus, old: ResourceClaimStatus): string[] {
  const before = new Map((old.devices ?? []).map((device) => [keyOf(device), device]));
  const drivers = new Set<string>();
  for (const device of status.devices ?? []) {
    if (!jsonEqual(device, before.get(keyOf(device)))) drivers.add(device.driver);
    before.delete(keyOf(device));
  }
  for (const { driver } of before.values()) drivers.add(driver);
  return [...drivers].sort();
}

/** The node of an allocation that names one alone; "" of others. */
function allocatedNode({ nodeSelector }: AllocationResult): string {
  const [term, ...terms] = nodeSelector?.nodeSelectorTerms ?? [];
  const [field, ...fields] = term?.matchFields ?? [];
  if (term === undefined || terms.length + fields.length > 0 || (term.matchExpressions ?? []).length > 0) {
    return '';
  }
  const [value = '', ...values] = field?.values ?? [];
  const isName = field?.key === 'metadata.name' && field.operator === 'In' && values.length === 0;
  return isName ? value : '';
}

function isServiceAccountOn({ name, extra }: UserInfo, node: string): boolean {
  const nodes = extra['authentication.kubernetes.io/node-name'] ?? [];
  return name.startsWith('system:serviceaccount:') && nodes.length === 1 && nodes[0] === node;
}

function validateStatus(claim: ResourceClaim, old: ResourceClaimStatus): FieldError[] {
  const { metadata, spec, status } = claim;
  const { allocation, reservedFor = [], devices } = status;
  const allocated = new Set(resultsOf(status).map(keyOf));
  const errors = [
    ...validateSet(
      reservedFor,
      maxReservations,
      'status.reservedFor',
      ({ resource, name, uid }, path) =>
        Object.entries({ resource, name, uid }).flatMap(([member, text]) =>
          text === '' ? [required(`${path}.${member}`)] : [],
        ),
      ({ uid }) => uid,
    ),
    ...validateSet(
      devices,
      Number.POSITIVE_INFINITY,
      'status.devices',
      (device, path) => validateDevice(device, path, allocated),
      keyOf,
    ),
  ];
  if (reservedFor.length > 0) {
    const at = 'status.reservedFor';
    if (allocation === undefined) {
      errors.push(forbiddenField(at, 'may not be specified when `allocated` is not set'));
    } else if (metadata.deletionTimestamp !== undefined) {
      const consumer = ({ apiGroup = '', resource, name, uid }: ResourceClaimConsumerReference): string =>
        [apiGroup, resource, name, uid].join(' ');
      const before = new Set((old.reservedFor ?? []).map(consumer));
      const isNew = reservedFor.some((item) => !before.has(consumer(item)));
      const detail =
        'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set';
      if (isNew) errors.push(forbiddenField(at, detail));
    }
  }
  const path = 'status.allocation';
  if (allocation === undefined) return errors;
  if (old.allocation === undefined) {
    return [...errors, ...validateAllocation(allocation, path, requestNamesOf(spec.devices))];
  }
  if (jsonEqual(allocation, old.allocation)) return errors;
  return [...errors, declarative(invalid(path, null, 'field cannot be modified once set'))];
}

function validateAllocation(
  { devices = {}, nodeSelector }: AllocationResult,
  path: string,
  names: RequestNames,
): FieldError[] {
  const at = `${path}.devices`;
  return [
    ...validateList(devices.results, maxRequests, `${at}.results`, (result, place) =>
      validateResult(result, place, names),
    ),
    // Those of classes and of the claim.
    ...validateList(devices.config, 2 * maxConfig, `${at}.config`, (config, place) => [
      ...validateSource(config.source, `${place}.source`),
      ...validateReferences(config.requests, `${place}.requests`, names),
      ...validateConfiguration(config, place, false),
    ]),
    ...(nodeSelector === undefined ? [] : validateNodeSelector(nodeSelector, `${path}.nodeSelector`)),
  ];
}

const sources = ['FromClaim', 'FromClass'];

function validateSource(source: string, path: string): FieldError[] {
  if (source === '') return [declarative(required(path))];
  return sources.includes(source) ? [] : [declarative(notSupported(path, source, sources))];
}

function validateResult(
  result: DeviceRequestAllocationResult,
  path: string,
  names: RequestNames,
): FieldError[] {
  const { bindingConditions = [], bindingFailureConditions = [], tolerations = [], shareID } = result;
  return [
    ...validateReference(result.request, `${path}.request`, names),
    ...validateDeclaredDriver(result.driver, `${path}.driver`),
    ...validateDeclaredPool(result.pool, `${path}.pool`),
    ...validateLabel(result.device, `${path}.device`),
    ...validateBindingConditions(bindingConditions, bindingFailureConditions, path),
    ...tolerations.flatMap((item, i) => validateToleration(item, `${path}.tolerations[${i}]`)),
    ...(shareID === undefined ? [] : validateUuid(shareID, `${path}.shareID`)),
  ];
}

function validateDevice(
  device: AllocatedDeviceStatus,
  path: string,
  allocated: ReadonlySet<string>,
): FieldError[] {
  const { driver, pool, shareID, data, networkData } = device;
  const conditions = device.conditions ?? [];
  const errors = [
    ...validateDriver(driver, `${path}.driver`),
    ...validatePool(pool, `${path}.pool`),
    ...validateLabel(device.device, `${path}.device`),
    ...(shareID === undefined ? [] : validateUuid(shareID, `${path}.shareID`)),
  ];
  if (!allocated.has(keyOf(device))) {
    const shown = { Driver: driver, Pool: pool, Device: device.device, ShareID: shareID ?? '' };
    errors.push(invalid(path, shown, 'must be an allocated device in the claim'));
  }
  if (conditions.length > maxConditions) {
    errors.push(tooMany(`${path}.conditions`, conditions.length, maxConditions));
  }
  return [
    ...errors,
    ...validateConditions(conditions, `${path}.conditions`),
    ...(data === undefined ? [] : validateRawObject(data, `${path}.data`, maxData, false)),
    ...(networkData === undefined ? [] : validateNetworkData(networkData, `${path}.networkData`)),
  ];
}

function validateNetworkData(
  { interfaceName = '', hardwareAddress = '', ips }: NetworkDeviceData,
  path: string,
): FieldError[] {
  const long = (member: string, text: string, max: number): FieldError[] =>
    Buffer.byteLength(text) > max ? [declarative(tooLong(`${path}.${member}`, max))] : [];
  return [
    ...long('interfaceName', interfaceName, maxInterfaceName),
    ...long('hardwareAddress', hardwareAddress, maxHardwareAddress),
    ...validateSet(ips, maxAddresses, `${path}.ips`, validateInterfaceAddress, (address) => address),
  ];
}
