import { type Condition, type ObjectKey, compareResourceVersions } from '../../objects/meta.ts';
import { isRecord, listAt, textAt, jsonEqual, type JsonRecord } from '../../objects/json.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import {
  type AllocationProblem,
  type AllocationClaim,
  parseClaim,
  type ServiceView,
  viewOf,
} from './plan-view.ts';
import { RangeFullError } from '../../allocation/address-range.ts';
import { parseAddress } from '../../objects/address.ts';
import type { AllocationState, RangeKind } from './allocation-state.ts';
import {
  type Addressing,
  assignNodePorts,
  type KnownFamilies,
  decideAddressing,
  fits,
  lacksHealthCheckPort,
  missingNodePorts,
} from './plan-needs.ts';
import { planProblem } from './plan-audit.ts';

/** Whether a Service has all addresses and ports that it requests. Only on Services that once had not. */
const allocatedCondition = 'servicenet.dev/Allocated';

/** New conditions of a Service. */
export interface ConditionChange {
  readonly conditions: readonly unknown[];
  readonly problem: AllocationProblem | undefined;
}

function isAllocated(condition: unknown): boolean {
  return textAt(condition, 'type') === allocatedCondition;
}

/** Whether the condition of a Service has this problem already. */
function isReported({ status }: Service, { reason, message }: AllocationProblem): boolean {
  const present = listAt(status, 'conditions').find(isAllocated);
  return textAt(present, 'reason') === reason && textAt(present, 'message') === message;
}

/** The change of a Service's conditions; undefined if there is none. @param time RFC 3339. */
export function changeCondition(
  service: Service,
  problem: AllocationProblem | undefined,
  time: string,
): ConditionChange | undefined {
  const all = listAt(service.status, 'conditions');
  const present = all.find(isAllocated);
  const status = problem === undefined ? 'True' : 'False';
  if (present === undefined && problem === undefined) return undefined;
  const reason = problem?.reason ?? 'Allocated';
  const message = problem?.message ?? '';
  const same = textAt(present, 'status') === status;
  if (same && textAt(present, 'reason') === reason && textAt(present, 'message') === message)
    return undefined;
  const since = same && isRecord(present) ? textAt(present, 'lastTransitionTime') : time;
  const condition: Condition = {
    type: allocatedCondition,
    status,
    lastTransitionTime: since,
    reason,
    message,
  };
  return { conditions: [...all.filter((item) => item !== present), condition], problem };
}

/**
 * Plans the next step for a Service on an API server that does not allocate. Pure.
 *
 * A value is allocated in two writes, so that two processes never allocate it twice. A lease does not prevent that: a
 * process may hang, lose the lease, and continue. First the value is claimed in an annotation. When the cache shows the
 * claim, it shows every Service that was written before. If none of them has or claims the value, it is written to the
 * spec, provided that the Service has not changed. A cache that shows the later of two claims shows the earlier one too,
 * whatever is delayed, lost or repeated, so that at most one of them continues. Any process can continue from a claim.
 */

export type AllocationStep =
  | { readonly do: 'nothing' }
  /** A later claim of the same value has to be withdrawn first; that event enqueues this Service. */
  | { readonly do: 'wait' }
  | { readonly do: 'claim'; readonly claim: AllocationClaim }
  /** Withdraws the claim: another Service has the value, or the needs of the Service changed. */
  | { readonly do: 'retreat' }
  /** Writes the changed members of the spec (a JSON merge patch) and removes the claim. */
  | { readonly do: 'write'; readonly addresses: readonly string[]; readonly spec: JsonRecord };

export interface AllocationPlan {
  readonly step: AllocationStep;
  readonly problem?: AllocationProblem;
  readonly waitsFor?: RangeKind;
}

/** The input of a plan. */
export interface PlanInput {
  readonly service: Service;
  readonly allocations: AllocationState;
  readonly cluster: KnownFamilies;
  /** The Service that is the parent of an IPAddress object, "" for another parent; undefined if there is no object. */
  readonly ownerOf: (address: string) => ObjectKey | undefined;
  readonly random: () => number;
}

const emptyClaim: AllocationClaim = { addresses: [], ports: [] };

export function planAllocation(input: PlanInput): AllocationPlan {
  const { service, allocations, cluster } = input;
  const view = viewOf(service);
  const addressing = view.type === 'ExternalName' ? undefined : decideAddressing(view, cluster);
  if (typeof addressing === 'string') {
    const problem: AllocationProblem = { reason: 'IPFamiliesNotValid', message: addressing };
    return { step: view.claim === undefined ? { do: 'nothing' } : { do: 'retreat' }, problem };
  }
  const problem = planProblem(view, allocations);
  const reported = problem === undefined ? {} : { problem };
  if (view.claim !== undefined) return { ...planClaimed(input, view, addressing, view.claim), ...reported };
  const lacks = (addressing?.missing.length ?? 0) + missingNodePorts(view) > 0 || lacksHealthCheckPort(view);
  if (lacks) return { ...reported, ...planClaim(input, view, addressing) };
  const spec = changes(service, view, addressing, emptyClaim);
  if (Object.keys(spec).length === 0) return { step: { do: 'nothing' }, ...reported };
  return { step: { do: 'write', addresses: [], spec }, ...reported };
}

/** Continues from a claim in the cache. */
function planClaimed(
  { service, allocations, ownerOf }: PlanInput,
  view: ServiceView,
  addressing: Addressing | undefined,
  text: string,
): AllocationPlan {
  const retreat: AllocationPlan = { step: { do: 'retreat' } };
  const claim = parseClaim(text);
  if (claim === undefined || !fits(view, addressing, claim)) return retreat;
  for (const address of claim.addresses) {
    const owner = ownerOf(address);
    if (!allocations.inRange(address) || (owner !== undefined && owner !== view.key)) return retreat;
  }
  if (claim.ports.some((port) => !allocations.hasPort(port))) return retreat;
  let waits = false;
  for (const value of [...claim.addresses, ...claim.ports.map(String)]) {
    for (const other of allocations.usesByOthers(value, view.key)) {
      const own = service.metadata.resourceVersion ?? '';
      const order = compareResourceVersions(other.resourceVersion, own);
      if (other.how === 'spec' || order < 0 || (order === 0 && other.key < view.key)) return retreat;
      // The later claim is withdrawn first.
      waits = true;
    }
  }
  if (waits) return { step: { do: 'wait' } };
  return {
    step: { do: 'write', addresses: claim.addresses, spec: changes(service, view, addressing, claim) },
  };
}

/** Claims all missing values, or none if a range is full. */
function planClaim(
  { service, allocations, random }: PlanInput,
  view: ServiceView,
  addressing: Addressing | undefined,
): AllocationPlan {
  const claim: { readonly addresses: string[]; readonly ports: number[] } = { addresses: [], ports: [] };
  const full = new Set<RangeKind>();
  const reserve = (range: RangeKind, next: () => void): void => {
    try {
      next();
    } catch (error) {
      if (!(error instanceof RangeFullError)) throw error;
      full.add(range);
    }
  };
  for (const family of addressing?.missing ?? []) {
    reserve(family, () => claim.addresses.push(allocations.reserveAddress(view.key, family, random)));
  }
  const count = missingNodePorts(view) + (lacksHealthCheckPort(view) ? 1 : 0);
  for (let i = 0; i < count; i++)
    reserve('port', () => claim.ports.push(allocations.reservePort(view.key, random)));
  const [first] = full;
  if (first === undefined) return { step: { do: 'claim', claim } };
  allocations.cancelReserved(view.key);
  // If several ranges are full, the condition keeps the one that it names.
  const range = [...full].find((each) => isReported(service, fullProblem(each, allocations))) ?? first;
  return { step: { do: 'nothing' }, problem: fullProblem(range, allocations), waitsFor: range };
}

function fullProblem(range: RangeKind, allocations: AllocationState): AllocationProblem {
  if (range !== 'port') {
    return {
      reason: 'ClusterIPRangeFull',
      message: `No ${range} address is left; you must add a ServiceCIDR in order to create new services`,
    };
  }
  return {
    reason: 'PortRangeFull',
    message: `Port range ${allocations.nodePorts.range} is full; you must widen the port range in order to create new services`,
  };
}

/** The members of the spec that change when the claimed values are assigned. */
function changes(
  { spec }: Service,
  view: ServiceView,
  addressing: Addressing | undefined,
  claim: AllocationClaim,
): JsonRecord {
  const addresses = [...(addressing?.kept ?? []), ...claim.addresses];
  const clusterIPs = addressing === undefined ? [] : view.headless ? ['None'] : addresses;
  const { ports, healthCheck } = assignNodePorts(view, claim);
  const wanted: JsonRecord = {
    clusterIP: clusterIPs[0] ?? null,
    clusterIPs: clusterIPs.length === 0 ? null : clusterIPs,
    ipFamilies: addressing?.families ?? null,
    ipFamilyPolicy: addressing?.policy ?? null,
    ports: withNodePorts(spec.ports, ports),
    healthCheckNodePort: healthCheck === 0 ? null : healthCheck,
  };
  const result: JsonRecord = {};
  for (const [name, value] of Object.entries(wanted)) {
    const present: unknown = Reflect.get(spec, name);
    if (!jsonEqual(value, isAbsent(present) ? null : present)) result[name] = value;
  }
  return result;
}

function withNodePorts(ports: unknown, nodePorts: readonly number[]): unknown {
  if (!Array.isArray(ports) || ports.length === 0) return null;
  const list: readonly unknown[] = ports;
  return list.map((port, i) => {
    if (!isRecord(port)) return port;
    const { nodePort: _, ...rest } = port;
    const assigned = nodePorts[i] ?? 0;
    return assigned === 0 ? rest : { ...rest, nodePort: assigned };
  });
}

/** Absent, or an empty value that a server may write for it. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === '' || value === 0 || (Array.isArray(value) && value.length === 0);
}

/** The addresses in a Service's spec and claim, canonical: those that may have an IPAddress object. */
export function addressesOf(service: Service): Set<string> {
  const view = viewOf(service);
  const texts = view.type === 'ExternalName' ? [] : view.clusterIPs;
  const claim = view.claim === undefined ? undefined : parseClaim(view.claim);
  const canonical = texts.flatMap((text) => parseAddress(text)?.canonical ?? []);
  return new Set([...canonical, ...(claim?.addresses ?? [])]);
}
