/** Labels, owner and name of the EndpointSlices of a Service (k8s.io/endpointslice, `utils.go`). Pure. */
import type { IPFamily } from '../../../objects/address.ts';
import type { Service } from '../../../objects/types/core.generated.ts';
import type { EndpointPort, EndpointSlice } from '../../../objects/types/discovery.generated.ts';
import { jsonEqual } from '../../../objects/json.ts';
import { isHeadless } from '../service.ts';
import { headlessLabel } from '../../../network/forwarding/service-key.ts';

/** The label with the name of a slice's Service. */
export const serviceNameLabel = 'kubernetes.io/service-name';
/** The label with the name of the controller that manages a slice. */
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by';
/** The value of {@link managedByLabel} on slices of the endpointslice controller. */
export const endpointSliceController = 'endpointslice-controller.k8s.io';

const reserved: readonly string[] = [serviceNameLabel, managedByLabel, headlessLabel];

/** The labels of a Service's slices: its own, except for three keys that the controller sets. */
export function sliceLabels(service: Service): Record<string, string> {
  return {
    ...unreserved(service.metadata.labels),
    ...(isHeadless(service) ? { [headlessLabel]: '' } : {}),
    [serviceNameLabel]: service.metadata.name ?? '',
    [managedByLabel]: endpointSliceController,
  };
}

/**
 * True when the labels of a slice differ from the wanted ones outside the reserved keys. Differences in reserved keys
 * alone cause no write, as in kube-controller-manager.
 */
export function labelsDiffer(slice: EndpointSlice, wanted: Readonly<Record<string, string>>): boolean {
  return !jsonEqual(unreserved(slice.metadata.labels), unreserved(wanted));
}

function unreserved(labels: Readonly<Record<string, string>> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !reserved.includes(key)));
}

/** True when a slice has this Service, by uid, as an owner. */
export function isOwnedBy(slice: EndpointSlice, service: Service): boolean {
  return (slice.metadata.ownerReferences ?? []).some(
    (owner) => owner.uid === service.metadata.uid && owner.kind === 'Service' && owner.apiVersion === 'v1',
  );
}

/** An empty slice, ready to be filled and created. */
export function newSlice(service: Service, family: IPFamily, ports: readonly EndpointPort[]): EndpointSlice {
  const { name = '', namespace = '', uid = '' } = service.metadata;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      generateName: `${name}-`,
      namespace,
      labels: sliceLabels(service),
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    addressType: family,
    endpoints: null,
    ports: ports.length === 0 ? null : [...ports],
  };
}
