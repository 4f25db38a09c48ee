import type { LoadBalancerReason } from '../../objects/reasons.ts';
import { jsonEqual, type JsonRecord } from '../../objects/json.ts';
import { type Condition, fieldManager, replacedCondition, transitionTime } from '../../objects/meta.ts';
import type {
  LoadBalancerIngress,
  Service,
  ServicePort,
  ServiceStatus,
  PortStatus,
} from '../../objects/types/core.generated.ts';
import { type OutcomeAddress, type Outcome } from './reasons.ts';
import {
  announcedCondition,
  type PoolAnnounced,
  poolCondition,
  refusedAddresses,
} from '../announcement-status/plan.ts';
import {
  loadBalancerReady,
  loadBalancerReadyCondition,
} from '../../network/announcing/assigned-addresses.ts';
import { classAnnotation, isOfOtherClass, isServed, type RequestSettings } from './request.ts';
import { assignedText, sharingKeyText, type StatusAddress } from './status.ts';
import type { PlannedEvent } from '../../client/events/events.ts';
import type {
  FamilyUsage,
  AddressPool,
  AddressPoolStatus,
  RestingAddress,
} from '../../objects/types/servicenet.ts';
import type { QuarantinedAddress } from './allocations.ts';
import { firstFew } from '../../objects/lists.ts';
import { formatTime } from '../../objects/formats/time.ts';

/** The wanted status of a Service. Pure. */

/** The finalizer of all load balancers (`k8s.io/cloud-provider/service/helpers`). */
export const loadBalancerCleanupFinalizer = 'service.kubernetes.io/load-balancer-cleanup';

/** The writes for one Service; empty when nothing has to change. */
export interface ServiceStatusPlan {
  readonly finalizer?: 'add' | 'remove';
  /** The annotation that names the class of this instance, if it changes; null to remove it. */
  readonly mark?: string | null;
  /** The whole status, if it changes. */
  readonly status?: ServiceStatus;
  /** The new reason of the condition, if it changes. */
  readonly transition?: LoadBalancerReason;
  readonly events: readonly PlannedEvent[];
}

/**
 * Plans a Service that is served.
 *
 * @param allocated the result of its request.
 * @param own its addresses in the status (`statusAddresses`).
 * @param now milliseconds since 1970.
 */
export function planServed(
  service: Service,
  allocated: Outcome,
  own: readonly StatusAddress[],
  now: number,
): ServiceStatusPlan {
  const outcome = asInCondition(service, allocated);
  const message = messageOf(outcome);
  const condition = conditionSince(service.status.conditions ?? [], now, {
    type: loadBalancerReady,
    status: outcome.reason === 'Assigned' ? 'True' : 'False',
    reason: outcome.reason,
    message,
  });
  const status = statusWith(service, ingressOf(service, outcome.addresses, own), condition);
  const finalizers = service.metadata.finalizers ?? [];
  return {
    ...(finalizers.includes(loadBalancerCleanupFinalizer) ? {} : { finalizer: 'add' }),
    ...(jsonEqual(status, service.status) ? {} : { status }),
    ...(loadBalancerReadyCondition(service)?.reason === outcome.reason ? {} : { transition: outcome.reason }),
    events: eventsOf(service, outcome, own, message),
  };
}

/**
 * Plans a Service that is deleted or no longer served: its addresses, condition and finalizer are removed. A Service that
 * was never served is left as it is.
 *
 * @param isServed whether its type and class are served: then the finalizer is removed even without a condition. If they
 *   are not, and the condition was overwritten before they changed, the managers of its fields decide.
 */
export function planReleased(
  service: Service,
  own: readonly StatusAddress[],
  isServed: boolean,
): ServiceStatusPlan {
  if (!isServed && loadBalancerReadyCondition(service) === undefined && !hasOwnFinalizer(service))
    return { events: [] };
  const isDeleted = service.metadata.deletionTimestamp !== undefined;
  const status = statusWith(service, ingressOf(service, [], own), undefined);
  const has = (service.metadata.finalizers ?? []).includes(loadBalancerCleanupFinalizer);
  return {
    ...(has ? { finalizer: 'remove' } : {}),
    ...(service.metadata.annotations?.[classAnnotation] === undefined ? {} : { mark: null }),
    // Clients can still read the addresses of a deleted Service.
    ...(isDeleted || jsonEqual(status, service.status) ? {} : { status }),
    events: [],
  };
}

/** Whether this program is a manager of the finalizer. Other load balancers use the same one and remove their own. */
function hasOwnFinalizer({ metadata }: Service): boolean {
  return (metadata.managedFields ?? []).some(
    ({ manager, fieldsV1 }) =>
      manager === fieldManager &&
      fieldsV1?.['f:metadata']?.['f:finalizers']?.[`v:"${loadBalancerCleanupFinalizer}"`] !== undefined,
  );
}

/** True for a Service that {@link planReleased} would not change: others serve it, or nobody. */
export function isLeftToOthers(service: Service, settings: RequestSettings): boolean {
  const { type } = service.spec;
  if (isServed(service, settings)) return false;
  const isBare = type === 'LoadBalancer' && loadBalancerReadyCondition(service) === undefined;
  return isOfOtherClass(service, settings) || isBare;
}

/** Whether {@link planReleased} needs the managedFields of a Service, which caches leave out. */
export function needsManagedFields(service: Service): boolean {
  return (
    service.spec.type !== 'LoadBalancer' &&
    service.metadata.finalizers?.includes(loadBalancerCleanupFinalizer) === true &&
    loadBalancerReadyCondition(service) === undefined
  );
}

/** Own entries in the order of the families, then all others unchanged. */
function ingressOf(
  service: Service,
  addresses: readonly OutcomeAddress[],
  own: readonly StatusAddress[],
): LoadBalancerIngress[] {
  const before = service.status.loadBalancer?.ingress ?? [];
  const ownAddresses = new Set([...own, ...addresses].map(({ address }) => address));
  const entries = addresses.map(({ address, portsInUse }): LoadBalancerIngress => {
    // A host name that another client (external-dns) added to the entry stays.
    const hostname = before.find(({ ip }) => ip === address)?.hostname;
    return {
      ip: address,
      ...(hostname === undefined ? {} : { hostname }),
      ipMode: 'VIP',
      ports: (service.spec.ports ?? []).map((port) => portStatus(port, portsInUse)),
    };
  });
  const others = before.filter(({ ip }) => ip === undefined || !ownAddresses.has(ip));
  return [...entries, ...others];
}

function portStatus(
  { port, protocol = 'TCP' }: ServicePort,
  inUse: OutcomeAddress['portsInUse'],
): PortStatus {
  const taken = inUse.has(`${protocol}/${port}`);
  return { port, protocol, ...(taken ? { error: 'servicenet.dev/PortInUse' } : {}) };
}

function statusWith(
  service: Service,
  ingress: readonly LoadBalancerIngress[],
  condition: Condition | undefined,
): ServiceStatus {
  const ofOwn: readonly string[] = [loadBalancerReady, announcedCondition];
  const others = (service.status.conditions ?? []).filter(({ type }) => !ofOwn.includes(type));
  const conditions =
    condition === undefined ? others : replacedCondition(service.status.conditions ?? [], condition);
  return {
    loadBalancer: ingress.length === 0 ? {} : { ingress: [...ingress] },
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

/** The outcome with the explanation of the Service's condition, if that is still true. */
function asInCondition(service: Service, outcome: Outcome): Outcome {
  const condition = loadBalancerReadyCondition(service);
  const same = outcome.alsoTrue
    .map(({ reason, message }): Outcome => ({ ...outcome, reason, message }))
    .find((one) => one.reason === condition?.reason && messageOf(one) === condition.message);
  return same ?? outcome;
}

/** The addresses of the Service, then why it has no more. */
function messageOf({ addresses, sharingKey, message }: Outcome): string {
  const key = sharingKeyText(sharingKey);
  const parts = addresses.map(({ address, pool, origin }) =>
    assignedText({ address, origin, key, kept: pool === undefined }),
  );
  const assigned = parts.join(', ');
  if (message === '') return assigned;
  return assigned === '' ? message : `${assigned}; ${message}`;
}

/** Events for a change of the addresses or the reason; a change of the message alone has none. */
function eventsOf(
  service: Service,
  outcome: Outcome,
  own: readonly StatusAddress[],
  message: string,
): PlannedEvent[] {
  const events: PlannedEvent[] = [];
  const now = outcome.addresses.map(({ address }) => address);
  const before = own.map(({ address }) => address);
  const removed = before.filter((address) => !now.includes(address));
  const changed = removed.length > 0 || now.some((address) => !before.includes(address));
  if (removed.length > 0) {
    events.push({ type: 'Normal', reason: 'Released', message: `${removed.join(', ')} was taken back` });
  }
  if (changed || loadBalancerReadyCondition(service)?.reason !== outcome.reason) {
    events.push({
      type: outcome.reason === 'Assigned' ? 'Normal' : 'Warning',
      reason: outcome.reason,
      message,
    });
  }
  return events;
}

/**
 * The plan as one JSON merge patch of the status subresource, which also accepts metadata (PatchService of
 * `k8s.io/cloud-provider/service/helpers` does the same): no client sees an address without the finalizer, or a finalizer
 * without the condition. The resourceVersion makes it a conflict if the Service has changed.
 *
 * @returns undefined when nothing has to be written.
 */
export function statusPatchOf(
  service: Service,
  { finalizer, mark, status }: ServiceStatusPlan,
): JsonRecord | undefined {
  if (finalizer === undefined && mark === undefined && status === undefined) return undefined;
  const { resourceVersion, finalizers = [] } = service.metadata;
  const others = finalizers.filter((one) => one !== loadBalancerCleanupFinalizer);
  const wanted =
    finalizer === 'add' ? [...others, loadBalancerCleanupFinalizer] : others.length > 0 ? others : null;
  return {
    metadata: {
      resourceVersion,
      ...(finalizer === undefined ? {} : { finalizers: wanted }),
      ...(mark === undefined ? {} : { annotations: { [classAnnotation]: mark } }),
    },
    ...(status === undefined
      ? {}
      : {
          status: {
            loadBalancer: { ingress: status.loadBalancer?.ingress ?? null },
            conditions: status.conditions ?? null,
          },
        }),
  };
}

/** The condition, with the time since when it has its status. */
function conditionSince(
  before: readonly Condition[],
  now: number,
  wanted: Omit<Condition, 'lastTransitionTime'>,
): Condition {
  return { ...wanted, lastTransitionTime: transitionTime(before, wanted, now) };
}

/** The wanted status of a pool. Pure. */

/** The inputs of a pool's status. */
export interface PoolState {
  readonly usage: Readonly<Record<'IPv4' | 'IPv6', FamilyUsage>>;
  /** Invalid parts of the spec. */
  readonly problems: readonly string[];
  /** Overlaps with other pools and with addresses of the cluster. */
  readonly conflicts: readonly string[];
  /** Latest end first. */
  readonly quarantined: readonly QuarantinedAddress[];
  /** Undefined: no agent that announces has ever run in the cluster. */
  readonly announced: PoolAnnounced | undefined;
  /** `metadata.generation` of the spec that was read. */
  readonly generation: number | undefined;
}

/** Plans the status of a pool; undefined if it does not change. `now` in milliseconds since 1970. */
export function planPoolStatus(
  pool: AddressPool,
  state: PoolState,
  now: number,
): AddressPoolStatus | undefined {
  const { usage, problems, conflicts, quarantined, announced, generation } = state;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const usable = usage.IPv4.total + usage.IPv6.total > 0;
  const before = pool.status?.conditions ?? [];
  const conditions = [
    conditionSince(before, now, {
      type: 'Ready',
      status: usable ? 'True' : 'False',
      reason: problems.length > 0 ? 'InvalidSpec' : usable ? 'Usable' : 'NoAddresses',
      message: readyMessage(usable, problems),
      ...observed,
    }),
    conditionSince(before, now, {
      type: 'Conflict',
      status: conflicts.length > 0 ? 'True' : 'False',
      reason: conflicts.length > 0 ? 'Overlap' : 'NoOverlap',
      message: conflicts.length > 0 ? `${firstFew(conflicts, '; ')}: these addresses are not given` : '',
      ...observed,
    }),
  ];
  const condition = announced === undefined ? undefined : poolCondition(announced);
  if (condition !== undefined) conditions.push(conditionSince(before, now, { ...condition, ...observed }));
  const refused = announced === undefined ? [] : refusedAddresses(pool.status?.refused ?? [], announced, now);
  const status: AddressPoolStatus = {
    ...(usage.IPv4.total > 0 ? { ipv4: usage.IPv4 } : {}),
    ...(usage.IPv6.total > 0 ? { ipv6: usage.IPv6 } : {}),
    ...(quarantined.length > 0 ? { resting: quarantined.slice(0, maxQuarantined).map(restingOf) } : {}),
    ...(refused.length > 0 ? { refused } : {}),
    conditions,
  };
  return jsonEqual(status, pool.status) ? undefined : status;
}

/** Of more, those that end first are left out. */
const maxQuarantined = 1000;

function restingOf({ address, service, untilMs }: QuarantinedAddress): RestingAddress {
  // Times in the API have whole seconds; rounded up.
  return { address, service, until: formatTime(Math.ceil(untilMs / 1000) * 1000) };
}

function readyMessage(usable: boolean, problems: readonly string[]): string {
  if (problems.length > 0) return `${usable ? 'the valid parts are used; ' : ''}${firstFew(problems, '; ')}`;
  return usable ? '' : 'no address is left: all are excluded or belong to something else';
}
