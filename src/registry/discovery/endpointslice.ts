import { parseAddress } from '../../objects/address.ts';
import type {
  Endpoint,
  EndpointHints,
  EndpointPort,
  EndpointSlice,
} from '../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import {
  declarative,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
  tooMany,
} from '../validation/field-errors.ts';
import { validateLabels } from '../validation/label-selector.ts';
import {
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  isValidLabelValue,
} from '../../objects/names.ts';
import {
  isCanonicalAddress,
  validateEndpointAddress,
  validateLegacyAddress,
  warningsForAddress,
} from '../validation/network.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateDeclaredImmutable, validateObjectMeta, namespacedSubdomain } from '../generic/metadata.ts';
import type { Strategy } from '../generic/strategy.ts';

const addressTypes = ['FQDN', 'IPv4', 'IPv6'];
const protocols = ['SCTP', 'TCP', 'UDP'];
const maxTopologyLabels = 16;
const maxAddresses = 100;
const maxPorts = 20_000;
const maxEndpoints = 1000;
const maxHints = 8;

/**
 * The rules of an EndpointSlice behind its metadata's (`apis/discovery/validation` ValidateEndpointSlice).
 *
 * @param old the stored slice of an update: endpoints that do not change, and its IPv4 addresses, are exempt.
 */
function validateEndpointSlice(slice: Partial<EndpointSlice>, old?: EndpointSlice): FieldError[] {
  // Fields that the type calls required may be absent in requests.
  const { addressType = '', endpoints, ports } = slice;
  const errors: FieldError[] = [];
  if (addressType === '') errors.push(declarative(required('addressType')));
  else if (!addressTypes.includes(addressType)) {
    const error = notSupported('addressType', addressType, addressTypes);
    // Of a changed one only the change is declared as wrong.
    errors.push(old === undefined ? declarative(error) : error);
  }
  if (old === undefined || !jsonEqual(endpoints ?? [], old.endpoints ?? [])) {
    const exempt = (old?.endpoints ?? []).flatMap(({ addresses }) => addresses);
    pushAll(errors, validateEndpoints(endpoints ?? [], addressType, exempt));
  }
  pushAll(errors, validatePorts(ports ?? []));
  return errors;
}

function validateEndpoints(
  endpoints: readonly Endpoint[],
  addressType: string,
  exempt: readonly string[],
): FieldError[] {
  if (endpoints.length > maxEndpoints) return [tooMany('endpoints', endpoints.length, maxEndpoints)];
  return endpoints.flatMap((endpoint, i) =>
    validateEndpoint(endpoint, `endpoints[${i}]`, addressType, exempt),
  );
}

function validateEndpoint(
  endpoint: Partial<Endpoint>,
  path: string,
  addressType: string,
  exempt: readonly string[],
): FieldError[] {
  const { nodeName, hostname, deprecatedTopology, hints } = endpoint;
  // A missing list is null: it has no omitempty.
  const addresses = endpoint.addresses ?? [];
  const addressPath = `${path}.addresses`;
  const errors: FieldError[] = [];
  if (addresses.length === 0) errors.push(declarative(required(addressPath)));
  else if (addresses.length > maxAddresses) {
    errors.push(declarative(tooMany(addressPath, addresses.length, maxAddresses)));
  }
  addresses.forEach((address, i) =>
    pushAll(errors, validateAddress(address, addressPath, i, addressType, exempt)),
  );
  if (nodeName !== undefined) pushNameErrors(errors, `${path}.nodeName`, nodeName, isDNS1123Subdomain);
  if (deprecatedTopology !== undefined) {
    const count = Object.keys(deprecatedTopology).length;
    if (count > maxTopologyLabels) {
      errors.push(tooMany(`${path}.deprecatedTopology`, count, maxTopologyLabels));
    }
    pushAll(errors, validateLabels(deprecatedTopology, `${path}.deprecatedTopology`));
  }
  if (hostname !== undefined) pushNameErrors(errors, `${path}.hostname`, hostname, isDNS1123Label);
  if (hints !== undefined) pushAll(errors, validateHints(hints, `${path}.hints`));
  return errors;
}

/** A wrong family is reported at the list of addresses, other errors at the address. */
function validateAddress(
  address: string,
  listPath: string,
  index: number,
  addressType: string,
  exempt: readonly string[],
): FieldError[] {
  const path = `${listPath}[${index}]`;
  if (addressType === 'FQDN') return validateFQDN(address, path);
  if (addressType !== 'IPv4' && addressType !== 'IPv6') return [];
  const malformed =
    addressType === 'IPv4'
      ? validateLegacyAddress(address, path, exempt)
      : isCanonicalAddress(address).map((message) => invalid(path, address, message));
  if (malformed.length > 0) return malformed;
  return [
    ...(parseAddress(address)?.family === addressType
      ? []
      : [invalid(listPath, address, `must be an ${addressType} address`)]),
    ...validateEndpointAddress(address, path),
  ];
}

/** `IsFullyQualifiedDomainName`: at least two labels, one trailing dot allowed. */
function validateFQDN(address: string, path: string): FieldError[] {
  if (address === '') return [required(path)];
  const name = address.endsWith('.') ? address.slice(0, -1) : address;
  const faults = isDNS1123Subdomain(name);
  if (faults.length > 0) return [invalid(path, name, faults.join(','))];
  const labels = name.split('.');
  if (labels.length < 2) {
    return [invalid(path, name, 'should be a domain with at least two segments separated by dots')];
  }
  for (const label of labels) {
    const wrong = isDNS1123Label(label);
    if (wrong.length > 0) return [invalid(path, label, wrong.join(','))];
  }
  return [];
}

function validateHints({ forZones = [], forNodes = [] }: EndpointHints, path: string): FieldError[] {
  if (forZones.length > maxHints) return [tooMany(`${path}.forZones`, forZones.length, maxHints)];
  if (forNodes.length > maxHints) return [tooMany(`${path}.forNodes`, forNodes.length, maxHints)];
  return [
    ...validateHintNames(forZones, `${path}.forZones`, isValidLabelValue),
    ...validateHintNames(forNodes, `${path}.forNodes`, isDNS1123Subdomain),
  ];
}

function validateHintNames(
  hints: readonly { name?: string }[],
  path: string,
  rule: (name: string) => string[],
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  hints.forEach(({ name = '' }, i) => {
    const at = `${path}[${i}].name`;
    if (seen.has(name)) errors.push(duplicate(at, name));
    seen.add(name);
    pushNameErrors(errors, at, name, rule);
  });
  return errors;
}

/** Port numbers are not validated at all. */
function validatePorts(ports: readonly EndpointPort[]): FieldError[] {
  if (ports.length > maxPorts) return [tooMany('ports', ports.length, maxPorts)];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  ports.forEach(({ name = '', protocol = '', appProtocol }, i) => {
    const path = `ports[${i}]`;
    if (name !== '') pushNameErrors(errors, `${path}.name`, name, isDNS1123Label);
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
    if (!protocols.includes(protocol)) errors.push(notSupported(`${path}.protocol`, protocol, protocols));
    if (appProtocol !== undefined) {
      pushNameErrors(errors, `${path}.appProtocol`, appProtocol, isQualifiedName);
    }
  });
  return errors;
}

function pushNameErrors(
  errors: FieldError[],
  path: string,
  name: string,
  rule: (name: string) => string[],
): void {
  for (const message of rule(name)) errors.push(invalid(path, name, message));
}

const managedBy = 'endpointslice.kubernetes.io/managed-by';
const controllers = new Set(['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io']);

const rules = genericStrategy<EndpointSlice>({
  ...namespacedSubdomain,
  generationChanges: (slice, old) =>
    !jsonEqual(slice.metadata.labels ?? {}, old.metadata.labels ?? {}) ||
    !jsonEqual(contents(slice), contents(old)),
  setDefaults(slice) {
    for (const port of slice.ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
  },
  prepareForCreate: dropTopology,
  validateCreate: (slice) => validateEndpointSlice(slice),
  warningsOnCreate: sliceWarnings,
  warningsOnUpdate: sliceWarnings,
});

/** The rules of EndpointSlices (`pkg/registry/discovery/endpointslice/strategy.go`). */
export const endpointSliceStrategy: Strategy<EndpointSlice> = {
  ...rules,
  // Dropped fields count as a change.
  prepareForUpdate(slice, old, context) {
    rules.prepareForUpdate(slice, old, context);
    dropTopology(slice);
  },
  // Unlike other kinds, the metadata is checked as a create's only.
  validateUpdate: (slice, old) => [
    ...validateObjectMeta(slice.metadata, namespacedSubdomain),
    ...validateEndpointSlice(slice, old),
    ...validateDeclaredImmutable(slice.addressType, old.addressType, 'addressType'),
  ],
};

function contents({ addressType, endpoints, ports }: EndpointSlice): unknown {
  return { addressType, endpoints: endpoints ?? [], ports: ports ?? [] };
}

/** Version 1 has nodeName and zone instead. */
function dropTopology(slice: EndpointSlice): void {
  for (const endpoint of slice.endpoints ?? []) delete endpoint.deprecatedTopology;
}

/** Addresses written by controllers cause no warnings. */
function sliceWarnings(slice: EndpointSlice): string[] {
  if (slice.addressType === 'FQDN') return ['spec.addressType: FQDN endpoints are deprecated'];
  if (controllers.has(slice.metadata.labels?.[managedBy] ?? '')) return [];
  return (slice.endpoints ?? []).flatMap(({ addresses }, i) =>
    addresses.flatMap((address, j) => warningsForAddress(address, `endpoints[${i}].addresses[${j}]`)),
  );
}
