import type { EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { genericStrategy } from '../../generic/generic.ts';
import { validateImmutableField, validateObjectMeta, namespacedSubdomain } from '../../generic/metadata.ts';
import { warningsForAddress } from '../../validation/network.ts';
import type { Strategy } from '../../generic/strategy.ts';
import { validateEndpointSlice } from './validation.ts';

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

/** Addresses written by controllers cause no warnings. */
function sliceWarnings(slice: EndpointSlice): string[] {
  if (slice.addressType === 'FQDN') return ['spec.addressType: FQDN endpoints are deprecated'];
  if (controllers.has(slice.metadata.labels?.[managedBy] ?? '')) return [];
  return (slice.endpoints ?? []).flatMap(({ addresses }, i) =>
    addresses.flatMap((address, j) => warningsForAddress(address, `endpoints[${i}].addresses[${j}]`)),
  );
}
