import type { EndpointSlice } from '../../objects/endpoint-slice.ts';
import { jsonEqual } from '../../objects/json.ts';
import { genericStrategy } from '../generic.ts';
import { validateImmutableField, validateObjectMeta } from '../metadata.ts';
import { nameIsDNSSubdomain } from '../names.ts';
import { warningsForAddress } from '../network.ts';
import type { Strategy } from '../strategy.ts';
import { validateEndpointSlice } from './validation.ts';

const metaRules = { namespaced: true, nameRule: nameIsDNSSubdomain };

/** The rules of EndpointSlices (`pkg/registry/discovery/endpointslice/strategy.go`). */
export const endpointSliceStrategy: Strategy<EndpointSlice> = {
  ...genericStrategy<EndpointSlice>({
    ...metaRules,
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
    prepareForUpdate(slice, old) {
      const kept = (old.endpoints ?? []).some((endpoint) => endpoint.deprecatedTopology !== undefined);
      if (!kept) dropTopology(slice);
    },
    validateCreate: (slice) => validateEndpointSlice(slice),
    warningsOnCreate: sliceWarnings,
    warningsOnUpdate: sliceWarnings,
  }),
  // Unlike other kinds, the metadata is checked as a create's only.
  validateUpdate: (slice, old) => [
    ...validateObjectMeta(slice.metadata, metaRules),
    ...validateEndpointSlice(slice, old),
    ...validateImmutableField(slice.addressType, old.addressType, 'addressType'),
  ],
};

function contents({ addressType, endpoints, ports }: EndpointSlice): unknown {
  return { addressType, endpoints: endpoints ?? [], ports: ports ?? [] };
}

/** Version 1 has nodeName and zone instead. */
function dropTopology(slice: EndpointSlice): void {
  for (const endpoint of slice.endpoints ?? []) delete endpoint.deprecatedTopology;
}

function sliceWarnings(slice: EndpointSlice): string[] {
  if (slice.addressType === 'FQDN') return ['spec.addressType: FQDN endpoints are deprecated'];
  return (slice.endpoints ?? []).flatMap(({ addresses }, i) =>
    addresses.flatMap((address, j) => warningsForAddress(address, `endpoints[${i}].addresses[${j}]`)),
  );
}
