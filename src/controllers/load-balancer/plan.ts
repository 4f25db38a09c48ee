import { jsonEqual } from '../../objects/json.ts';
import type { Condition } from '../../objects/meta.ts';
import type {
  LoadBalancerIngress,
  Service,
  ServicePort,
  ServiceStatus,
} from '../../objects/core.generated.ts';
import { formatTime } from '../../objects/time.ts';
import { fieldManager } from '../../runtime/field-manager.ts';
import type { AssignedAddress, Outcome } from './outcome.ts';
import { assignedText, keyText } from './assigned-text.ts';
import { conditionType, readyCondition, type PresentAddress } from './present.ts';
import { releasedEvent, type Reason } from './reasons.ts';

/** Kubernetes' own finalizer for load balancers (`k8s.io/cloud-provider/service/helpers`). */
export const cleanupFinalizer = 'service.kubernetes.io/load-balancer-cleanup';

/** What must be written for one Service; empty when all is as it should be. */
export interface ServicePlan {
  /** Written together with the status: `add` with the first address, `remove` when they are given back. */
  readonly finalizer?: 'add' | 'remove';
  /** The whole status, when it differs from what the API server has. */
  readonly status?: ServiceStatus;
  /** The new reason of the condition, where it is another one than before. */
  readonly transition?: Reason;
  /** What happened, on transitions only. */
  readonly events: readonly PlannedEvent[];
}

export interface PlannedEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/**
 * What a Service that we serve should look like.
 *
 * @param actual what the allocator gave it.
 * @param own the addresses in its present status that are ours (see {@link presentAddresses}).
 * @param now milliseconds since 1970.
 */
export function planServed(
  service: Service,
  actual: Outcome,
  own: readonly PresentAddress[],
  now: number,
): ServicePlan {
  const outcome = asTold(service, actual);
  const message = messageOf(outcome);
  const ready = outcome.reason === 'Assigned';
  const condition = conditionOf(service, ready, outcome.reason, message, now);
  const status = statusWith(service, ingressOf(service, outcome.addresses, own), condition);
  const finalizers = service.metadata.finalizers ?? [];
  return {
    ...(finalizers.includes(cleanupFinalizer) ? {} : { finalizer: 'add' }),
    ...(jsonEqual(status, service.status) ? {} : { status }),
    ...(readyCondition(service)?.reason === outcome.reason ? {} : { transition: outcome.reason }),
    events: eventsOf(service, outcome, own, message),
  };
}

/**
 * What a Service that we serve no longer (it is going, or is no longer ours) should look like: without our addresses,
 * our condition and our finalizer. Nothing of a Service that we never served is touched.
 *
 * @param ours whether its type and class say that it is ours: then our finalizer may be there without a condition. It
 *   may also be there when they no longer do, if somebody wrote over the status before the type changed.
 */
export function planReleased(service: Service, own: readonly PresentAddress[], ours: boolean): ServicePlan {
  if (!ours && readyCondition(service) === undefined && !isFinalizedByUs(service)) return { events: [] };
  const leaving = service.metadata.deletionTimestamp !== undefined;
  const status = statusWith(service, ingressOf(service, [], own), undefined);
  const has = (service.metadata.finalizers ?? []).includes(cleanupFinalizer);
  return {
    ...(has ? { finalizer: 'remove' } : {}),
    // The status of a Service that is going is left as it was: somebody may want to read what it had.
    ...(leaving || jsonEqual(status, service.status) ? {} : { status }),
    events: [],
  };
}

/**
 * Whether the finalizer was written by this program, by the managers of its fields: other load balancers use the same
 * one, and have to clean up before theirs goes.
 */
function isFinalizedByUs({ metadata }: Service): boolean {
  return (metadata.managedFields ?? []).some(
    ({ manager, fieldsV1 }) =>
      manager === fieldManager &&
      fieldsV1?.['f:metadata']?.['f:finalizers']?.[`v:"${cleanupFinalizer}"`] !== undefined,
  );
}

/**
 * Whether a Service is released only if its finalizer is ours, which its condition does not say. Then
 * {@link planReleased} needs it with its managedFields, which caches leave out.
 */
export function hasUnexplainedFinalizer(service: Service): boolean {
  return (
    service.spec.type !== 'LoadBalancer' &&
    service.metadata.finalizers?.includes(cleanupFinalizer) === true &&
    readyCondition(service) === undefined
  );
}

/** Our entries in the order of the families, then those of others as they were. */
function ingressOf(
  service: Service,
  addresses: readonly AssignedAddress[],
  own: readonly PresentAddress[],
): LoadBalancerIngress[] {
  const present = entriesOf(service);
  const mine = new Set([...own, ...addresses].map(({ address }) => address));
  const ours = addresses.map(({ address, portsInUse }): LoadBalancerIngress => {
    // A DNS name that somebody (external-dns, the user) put beside our address stays.
    const hostname = present.find(({ ip }) => ip === address)?.hostname;
    return {
      ip: address,
      ...(hostname === undefined ? {} : { hostname }),
      ipMode: 'VIP',
      ports: (service.spec.ports ?? []).map((port) => portStatus(port, portsInUse)),
    };
  });
  const foreign = present.filter(({ ip }) => ip === undefined || !mine.has(ip));
  return [...ours, ...foreign];
}

function portStatus(
  { port, protocol = 'TCP' }: ServicePort,
  inUse: AssignedAddress['portsInUse'],
): { port: number; protocol: string; error?: string } {
  const taken = inUse.has(`${protocol}/${port}`);
  return { port, protocol, ...(taken ? { error: 'servicenet.dev/PortInUse' } : {}) };
}

function entriesOf(service: Service): readonly LoadBalancerIngress[] {
  return service.status.loadBalancer?.ingress ?? [];
}

function statusWith(
  service: Service,
  ingress: readonly LoadBalancerIngress[],
  condition: Condition | undefined,
): ServiceStatus {
  const others = (service.status.conditions ?? []).filter(({ type }) => type !== conditionType);
  const conditions = condition === undefined ? others : replaced(service.status.conditions ?? [], condition);
  return {
    loadBalancer: ingress.length === 0 ? {} : { ingress: [...ingress] },
    ...(conditions.length === 0 ? {} : { conditions }),
  };
}

/** In its place among the others, so that a write does not reorder what it does not change. */
function replaced(conditions: readonly Condition[], condition: Condition): Condition[] {
  const at = conditions.findIndex(({ type }) => type === condition.type);
  return at < 0 ? [...conditions, condition] : conditions.with(at, condition);
}

function conditionOf(
  service: Service,
  ready: boolean,
  reason: string,
  message: string,
  now: number,
): Condition {
  const status = ready ? 'True' : 'False';
  const before = readyCondition(service);
  return {
    type: conditionType,
    status,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : formatTime(now),
    reason,
    message,
  };
}

/** An outcome in the words of the Service's condition, where those are still true. */
function asTold(service: Service, outcome: Outcome): Outcome {
  const told = readyCondition(service);
  const same = outcome.alsoTrue
    .map(({ reason, message }): Outcome => ({ ...outcome, reason, message }))
    .find((one) => one.reason === told?.reason && messageOf(one) === told.message);
  return same ?? outcome;
}

/** Says what the Service has, and what it lacks. */
function messageOf({ addresses, sharingKey, message }: Outcome): string {
  const key = keyText(sharingKey);
  const parts = addresses.map(({ address, pool, origin }) =>
    assignedText({ address, origin, key, kept: pool === undefined }),
  );
  const has = parts.join(', ');
  if (message === '') return has;
  return has === '' ? message : `${has}; ${message}`;
}

/** An Event when the reason changed or the addresses did; messages alone may change without one. */
function eventsOf(
  service: Service,
  outcome: Outcome,
  own: readonly PresentAddress[],
  message: string,
): PlannedEvent[] {
  const events: PlannedEvent[] = [];
  const now = outcome.addresses.map(({ address }) => address);
  const before = own.map(({ address }) => address);
  const gone = before.filter((address) => !now.includes(address));
  const changed = gone.length > 0 || now.some((address) => !before.includes(address));
  if (gone.length > 0) {
    events.push({ type: 'Normal', reason: releasedEvent, message: `${gone.join(', ')} was taken back` });
  }
  if (changed || readyCondition(service)?.reason !== outcome.reason) {
    events.push({
      type: outcome.reason === 'Assigned' ? 'Normal' : 'Warning',
      reason: outcome.reason,
      message,
    });
  }
  return events;
}
