/** When an extension API server counts as available (kube-aggregator `status/remote/remote_available_controller.go`). */
import type { APIService, APIServiceCondition } from '../../objects/types/apiregistration.generated.ts';
import { goQuote } from '../../objects/go-text.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { at, listAt, numberAt, textAt } from '../../objects/read.ts';
import type { ExtensionServer } from './extension-server.ts';

/** A condition without the time of its last transition. */
export type Availability = Pick<APIServiceCondition, 'status' | 'reason' | 'message'>;

/** All checks, of the Service and of the server, have passed. */
export const passed: Availability = { status: 'True', reason: 'Passed', message: 'all checks passed' };

/** The server did not answer a request for its discovery documents. */
export function failedDiscovery(message: string): Availability {
  return { status: 'False', reason: 'FailedDiscoveryCheck', message };
}

/**
 * Why a Service does not lead to an extension API server; undefined if it does.
 *
 * @param service undefined if it does not exist.
 * @param slices the EndpointSlices of the Service.
 */
export function serviceFault(
  { namespace, name, port }: ExtensionServer,
  service: KubeObject | undefined,
  slices: readonly KubeObject[],
): Availability | undefined {
  const where = `service/${name} in ${goQuote(namespace)}`;
  if (service === undefined) return fault('ServiceNotFound', `${where} is not present`);
  if (textAt(service, 'spec', 'type') !== 'ClusterIP') return undefined;
  const servicePort = listAt(service, 'spec', 'ports').find((each) => numberAt(each, 'port') === port);
  if (servicePort === undefined)
    return fault('ServicePortError', `${where} is not listening on port ${port}`);
  if (slices.length === 0) return fault('EndpointsNotFound', `cannot find endpointslices for ${where}`);
  const portName = textAt(servicePort, 'name');
  if (slices.some((slice) => hasReadyEndpoint(slice, portName))) return undefined;
  return fault(
    'MissingEndpoints',
    `endpointslices for ${where} have no addresses with port name ${goQuote(portName)}`,
  );
}

function hasReadyEndpoint(slice: KubeObject, portName: string): boolean {
  return (
    listAt(slice, 'ports').some((port) => textAt(port, 'name') === portName) &&
    listAt(slice, 'endpoints').some(
      (endpoint) => listAt(endpoint, 'addresses').length > 0 && at(endpoint, 'conditions', 'ready') !== false,
    )
  );
}

function fault(reason: string, message: string): Availability {
  return { status: 'False', reason, message };
}

/** True for an APIService whose requests are proxied (`IsAPIServiceConditionTrue`). */
export function isAvailable({ status }: APIService): boolean {
  return availableCondition(status.conditions)?.status === 'True';
}

/**
 * The conditions with a new one of the type `Available`; the same list where nothing changes. The transition time
 * changes with the status only (`SetAPIServiceCondition`).
 *
 * @param now RFC 3339.
 */
export function withAvailability(
  conditions: readonly APIServiceCondition[],
  availability: Availability,
  now: string,
): readonly APIServiceCondition[] {
  const before = availableCondition(conditions);
  if (
    before?.status === availability.status &&
    before.reason === availability.reason &&
    before.message === availability.message
  ) {
    return conditions;
  }
  const lastTransitionTime =
    before?.status === availability.status ? (before.lastTransitionTime ?? now) : now;
  const { status, reason, message } = availability;
  const after: APIServiceCondition = {
    type: 'Available',
    status,
    lastTransitionTime,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  return before === undefined
    ? [...conditions, after]
    : conditions.map((condition) => (condition === before ? after : condition));
}

function availableCondition(
  conditions: readonly APIServiceCondition[] = [],
): APIServiceCondition | undefined {
  return conditions.find(({ type }) => type === 'Available');
}
