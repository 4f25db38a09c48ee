import type {
  DeviceClaim,
  DeviceConstraint,
  DeviceRequest,
  DeviceSelector,
  DeviceSubRequest,
  ExactDeviceRequest,
  OpaqueDeviceConfiguration,
  ResourceClaimSpec,
} from '../../objects/types/resource.generated.ts';
import type { DisabledFeature } from '../generic/disabled-fields.ts';
import type { StrategyContext } from '../generic/strategy.ts';
import {
  declarative,
  type FieldError,
  forbiddenField,
  internalFault,
  invalid,
  notSupported,
  required,
} from '../validation/field-errors.ts';
import {
  declared,
  validateDeclaredDriver,
  validateFullyQualifiedName,
  validateLabel,
  validateList,
  validateRawObject,
  validateSet,
  validateSubdomain,
  validateToleration,
} from './checks.ts';
import { validateSelectors } from './device-expressions.ts';

/** What a ResourceClaim asks for: its requests, their constraints and configuration. */

export const maxRequests = 32;
const maxConstraints = 32;
export const maxConfig = 32;
const maxAlternatives = 8;
/** In bytes. */
const maxParameters = 10 * 1024;

/** What 1.37 has off by default: DRADerivedAttributes. @param path of the claim's spec. */
export function disabledClaimFeatures(...path: readonly string[]): readonly DisabledFeature[] {
  const request = [...path, 'devices', 'requests', '*'];
  return [
    [
      [...request, 'exactly', 'derivedAttributes'],
      [...request, 'firstAvailable', '*', 'derivedAttributes'],
    ],
  ];
}

/** `SetDefaults_ExactDeviceRequest`, `SetDefaults_DeviceSubRequest`. */
export function setClaimDefaults(spec: ResourceClaimSpec): void {
  for (const { exactly, firstAvailable = [] } of spec.devices.requests ?? []) {
    for (const request of exactly === undefined ? firstAvailable : [exactly, ...firstAvailable]) {
      if ((request.allocationMode ?? '') === '') request.allocationMode = 'ExactCount';
      if (request.allocationMode === 'ExactCount' && (request.count ?? 0) === 0) request.count = 1;
      for (const toleration of request.tolerations ?? []) toleration.operator ||= 'Equal';
    }
  }
}

export function emptyClaimSpec(): ResourceClaimSpec {
  return { devices: { requests: null } };
}

export function* selectorsOf({ devices }: ResourceClaimSpec): Generator<DeviceSelector> {
  for (const { exactly, firstAvailable = [] } of devices.requests ?? []) {
    yield* exactly?.selectors ?? [];
    for (const { selectors = [] } of firstAvailable) yield* selectors;
  }
}

/** The names of requests, each with those of its alternatives: references are to `request` or `request/alternative`. */
export type RequestNames = ReadonlyMap<string, ReadonlySet<string>>;

export function requestNamesOf({ requests }: DeviceClaim): RequestNames {
  return new Map(
    (requests ?? []).map(({ name, firstAvailable = [] }) => [
      name,
      new Set(firstAvailable.map((alternative) => alternative.name)),
    ]),
  );
}

/** @param object whose expressions were compiled before. */
export function validateClaimSpec(
  { devices }: ResourceClaimSpec,
  path: string,
  object: object,
): FieldError[] {
  const at = `${path}.devices`;
  const names = requestNamesOf(devices);
  return [
    ...validateSet(
      devices.requests,
      maxRequests,
      `${at}.requests`,
      (request, place) => validateRequest(request, place, object),
      ({ name }) => name,
    ),
    ...validateList(devices.constraints, maxConstraints, `${at}.constraints`, (constraint, place) =>
      validateConstraint(constraint, place, names),
    ),
    ...validateList(devices.config, maxConfig, `${at}.config`, (config, place) => [
      ...validateReferences(config.requests, `${place}.requests`, names),
      ...validateConfiguration(config, place, false),
    ]),
  ];
}

function validateRequest(
  { name, exactly, firstAvailable = [] }: DeviceRequest,
  path: string,
  object: object,
): FieldError[] {
  const errors = validateLabel(name, `${path}.name`);
  const one = 'exactly one of `exactly` or `firstAvailable` is required';
  if (exactly !== undefined && firstAvailable.length > 0) {
    return [...errors, invalid(path, null, `${one}, but multiple fields are set`)];
  }
  if (exactly !== undefined) return [...errors, ...validateExactly(exactly, `${path}.exactly`, object)];
  if (firstAvailable.length === 0) return [...errors, required(path, one)];
  return [
    ...errors,
    ...validateSet(
      firstAvailable,
      maxAlternatives,
      `${path}.firstAvailable`,
      (alternative, place) => validateAlternative(alternative, place, object),
      (alternative) => alternative.name,
    ),
  ];
}

function validateExactly(request: ExactDeviceRequest, path: string, object: object): FieldError[] {
  return [
    ...validateClassName(request.deviceClassName, `${path}.deviceClassName`),
    ...validateRest(request, path, object),
  ];
}

function validateAlternative(request: DeviceSubRequest, path: string, object: object): FieldError[] {
  return [
    ...validateLabel(request.name, `${path}.name`),
    ...declared(validateClassName(request.deviceClassName, `${path}.deviceClassName`)),
    ...validateRest(request, path, object),
  ];
}

function validateClassName(name: string, path: string): FieldError[] {
  return name === '' ? [required(path)] : validateSubdomain(name, path);
}

/** What a request and an alternative of one have alike. */
function validateRest(
  { selectors, allocationMode = '', count = 0, tolerations = [] }: Omit<DeviceSubRequest, 'name'>,
  path: string,
  object: object,
): FieldError[] {
  const errors = validateSelectors(selectors, `${path}.selectors`, object);
  if (allocationMode === 'All') {
    const detail = "must not be specified when allocationMode is 'All'";
    if (count !== 0) errors.push(invalid(`${path}.count`, count, detail));
  } else if (allocationMode === 'ExactCount') {
    if (count <= 0) errors.push(invalid(`${path}.count`, count, 'must be greater than zero'));
  } else {
    errors.push(declarative(notSupported(`${path}.allocationMode`, allocationMode, ['All', 'ExactCount'])));
  }
  const found = tolerations.flatMap((item, i) => validateToleration(item, `${path}.tolerations[${i}]`));
  return [...errors, ...found];
}

function validateConstraint(
  { requests, matchAttribute, distinctAttribute }: DeviceConstraint,
  path: string,
  names: RequestNames,
): FieldError[] {
  const errors = validateReferences(requests, `${path}.requests`, names);
  if (matchAttribute !== undefined) {
    return [...errors, ...validateFullyQualifiedName(matchAttribute, `${path}.matchAttribute`)];
  }
  if (distinctAttribute !== undefined) {
    return [...errors, ...validateFullyQualifiedName(distinctAttribute, `${path}.distinctAttribute`)];
  }
  // Kubernetes says so of none.
  const detail =
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set';
  return [...errors, required(path, detail)];
}

export function validateReferences(
  requests: readonly string[] | undefined,
  path: string,
  names: RequestNames,
): FieldError[] {
  const validate = (name: string, at: string): FieldError[] => validateReference(name, at, names);
  return validateSet(requests, maxRequests, path, validate, (name) => name);
}

export function validateReference(name: string, path: string, names: RequestNames): FieldError[] {
  const parts = name.split('/');
  const [request = '', alternative] = parts;
  const detail =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
  if (parts.length > 2) return [invalid(path, name, detail)];
  const errors = parts.flatMap((part) => validateLabel(part, path));
  const known = names.get(request);
  const isKnown = known !== undefined && (alternative === undefined || known.has(alternative));
  return isKnown ? errors : [...errors, invalid(path, name, detail)];
}

/** @param isStored what is stored already may be longer. */
export function validateConfiguration(
  { opaque }: { readonly opaque?: OpaqueDeviceConfiguration },
  path: string,
  isStored: boolean,
): FieldError[] {
  const at = `${path}.opaque`;
  if (opaque === undefined) return [required(at)];
  return [
    ...validateDeclaredDriver(opaque.driver, `${at}.driver`),
    ...validateRawObject(opaque.parameters, `${at}.parameters`, maxParameters, isStored),
  ];
}

const adminLabel = 'resource.kubernetes.io/admin-access';

/** Access to devices that are in use is for namespaces that say so (`pkg/registry/resource/utils.go`). */
export function adminErrors(path: string, namespace: string, { cluster }: StrategyContext): FieldError[] {
  const found = cluster.get('', 'namespaces', '', namespace);
  if (found === undefined) {
    const why = `namespaces ${JSON.stringify(namespace)} not found`;
    return [internalFault(path, `could not retrieve namespace to verify admin access: ${why}`)];
  }
  if (found.metadata.labels?.[adminLabel] === 'true') return [];
  const detail = `admin access to devices requires the \`${adminLabel}: true\` label on the containing namespace`;
  return [forbiddenField(path, detail)];
}

/** The errors of a claim that asks for such access; the path is that of a claim in templates, too. */
export function adminRequestErrors(
  { devices }: ResourceClaimSpec,
  namespace: string,
  context: StrategyContext,
): FieldError[] {
  const at = (devices.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true);
  return at < 0 ? [] : adminErrors(`spec.devices.requests[${at}].adminAccess`, namespace, context);
}
