import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Endpoints,
} from '../../objects/types/core.generated.ts';
import { jsonEqual } from '../../objects/json.ts';
import { pushAll } from '../../objects/lists.ts';
import { type FieldError, invalid, notSupported, required } from '../validation/field-errors.ts';
import { genericStrategy } from '../generic/generic.ts';
import { validateObjectMeta, namespacedSubdomain } from '../generic/metadata.ts';
import { isDNS1123Label, isDNS1123Subdomain, isQualifiedName } from '../../objects/names.ts';
import {
  isValidPortNumber,
  validateEndpointAddress,
  validateLegacyAddress,
  warningsForAddress,
} from '../validation/network.ts';

const protocols = ['SCTP', 'TCP', 'UDP'];

/** The rules of Endpoints (`pkg/registry/core/endpoint/strategy.go`, `ValidateEndpoints`). */
export const endpointsStrategy = genericStrategy<Endpoints>({
  ...namespacedSubdomain,
  allowCreateOnUpdate: true,
  setDefaults({ subsets = [] }) {
    for (const { ports = [] } of subsets) {
      for (const port of ports) {
        if ((port.protocol ?? '') === '') port.protocol = 'TCP';
      }
    }
  },
  validateCreate: ({ subsets = [] }) => validateSubsets(subsets, []),
  validateUpdate: (endpoints, old) => [
    ...validateObjectMeta(endpoints.metadata, namespacedSubdomain),
    // Values that were valid under older rules may stay.
    ...(jsonEqual(endpoints.subsets ?? [], old.subsets ?? [])
      ? []
      : validateSubsets(endpoints.subsets ?? [], addressesOf(old))),
  ],
  warningsOnCreate: addressWarnings,
  warningsOnUpdate: addressWarnings,
});

function addressesOf({ subsets = [] }: Endpoints): string[] {
  return subsets
    .flatMap(({ addresses = [], notReadyAddresses = [] }) => [...addresses, ...notReadyAddresses])
    .map(({ ip }) => ip);
}

function validateSubsets(subsets: readonly EndpointSubset[], exempt: readonly string[]): FieldError[] {
  return subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }, i) => {
    const path = `subsets[${i}]`;
    const errors: FieldError[] = [];
    if (addresses.length === 0 && notReadyAddresses.length === 0) {
      errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
    }
    addresses.forEach((address, j) =>
      pushAll(errors, validateAddress(address, `${path}.addresses[${j}]`, exempt)),
    );
    notReadyAddresses.forEach((address, j) =>
      pushAll(errors, validateAddress(address, `${path}.notReadyAddresses[${j}]`, exempt)),
    );
    ports.forEach((port, k) => pushAll(errors, validatePort(port, ports.length > 1, `${path}.ports[${k}]`)));
    return errors;
  });
}

function validateAddress(
  address: Partial<EndpointAddress>,
  path: string,
  exempt: readonly string[],
): FieldError[] {
  // The address may be absent in a request, contrary to the type.
  const { ip = '', hostname = '', nodeName } = address;
  return [
    ...validateLegacyAddress(ip, `${path}.ip`, exempt),
    ...(hostname === ''
      ? []
      : isDNS1123Label(hostname).map((message) => invalid(`${path}.hostname`, hostname, message))),
    ...(nodeName === undefined
      ? []
      : isDNS1123Subdomain(nodeName).map((message) => invalid(`${path}.nodeName`, nodeName, message))),
    ...validateEndpointAddress(ip, `${path}.ip`),
  ];
}

function validatePort(port: Partial<EndpointPort>, nameRequired: boolean, path: string): FieldError[] {
  const { name = '', port: number = 0, protocol = '', appProtocol } = port;
  const errors: FieldError[] = [];
  if (name === '') {
    if (nameRequired) errors.push(required(`${path}.name`));
  } else {
    for (const message of isDNS1123Label(name)) errors.push(invalid(`${path}.name`, name, message));
  }
  for (const message of isValidPortNumber(number)) errors.push(invalid(`${path}.port`, number, message));
  if (protocol === '') errors.push(required(`${path}.protocol`));
  else if (!protocols.includes(protocol)) errors.push(notSupported(`${path}.protocol`, protocol, protocols));
  if (appProtocol !== undefined) {
    for (const message of isQualifiedName(appProtocol)) {
      errors.push(invalid(`${path}.appProtocol`, appProtocol, message));
    }
  }
  return errors;
}

/** Addresses written by the Endpoints controller cause no warnings. */
function addressWarnings({ metadata: { labels }, subsets = [] }: Endpoints): string[] {
  if (labels?.['endpoints.kubernetes.io/managed-by'] === 'endpoint-controller') return [];
  return subsets.flatMap(({ addresses = [], notReadyAddresses = [] }, i) => [
    ...addresses.flatMap(({ ip }, j) => warningsForAddress(ip, `subsets[${i}].addresses[${j}].ip`)),
    ...notReadyAddresses.flatMap(({ ip }, j) =>
      warningsForAddress(ip, `subsets[${i}].notReadyAddresses[${j}].ip`),
    ),
  ]);
}
