/**
 * The next step for a Service on an API server that does not allocate. Pure.
 *
 * A value is given in two writes, because nothing else makes two processes agree: a lease cannot, as a process may
 * hang, lose it, and go on. First the Service claims the value, in an annotation. When the claim shows in the cache,
 * so does every Service written before it; if none of them has the value or claims it, the value is written into the
 * spec, on condition that the Service has not changed since. Of two claims of one value at least one is seen by the
 * other side, whatever is late, lost, or sent twice: so one value never goes to two Services. A claim outlives its
 * author: whoever works next goes on from it.
 */
import { RangeFullError } from '../../allocation/errors.ts';
import { parseAddress } from '../../objects/address.ts';
import { isRecord, jsonEqual, type JsonRecord } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/key.ts';
import { compareResourceVersions } from '../../objects/resource-version.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { AllocationState } from './allocation-state.ts';
import {
  type Addressing,
  assignNodePorts,
  type ClusterFamilies,
  decideAddressing,
  fits,
  missesHealthCheckPort,
  missingNodePorts,
} from './plan-needs.ts';
import { isTold } from './condition.ts';
import { planProblem } from './plan-problem.ts';
import { type Claim, parseClaim, type ServiceView, viewOf } from './plan-view.ts';
import type { Problem } from './reasons.ts';

export type Step =
  | { readonly do: 'nothing' }
  /** Another claim of the same value goes first; its end wakes this Service. */
  | { readonly do: 'wait' }
  | { readonly do: 'claim'; readonly claim: Claim }
  /** Gives a claim up: somebody else has the value, or the Service needs something else by now. */
  | { readonly do: 'retreat' }
  /** Writes the spec's changed members (a JSON merge patch), and removes the claim. */
  | { readonly do: 'write'; readonly addresses: readonly string[]; readonly spec: JsonRecord };

/** What a Service waits for when a range is full. */
export type Pool = IPFamily | 'port';

export interface ServicePlan {
  readonly step: Step;
  readonly problem?: Problem;
  readonly waitsFor?: Pool;
}

/** What a plan is made from. */
export interface PlanInput {
  readonly service: Service;
  readonly allocations: AllocationState;
  readonly cluster: ClusterFamilies;
  /** The Service that the IPAddress object of an address belongs to, "" for another owner; undefined for no object. */
  readonly ownerOf: (address: string) => ObjectKey | undefined;
  readonly random: () => number;
}

const empty: Claim = { addresses: [], ports: [] };

export function planService(input: PlanInput): ServicePlan {
  const { service, allocations, cluster } = input;
  const view = viewOf(service);
  const addressing = view.type === 'ExternalName' ? undefined : decideAddressing(view, cluster);
  if (typeof addressing === 'string') {
    const problem: Problem = { reason: 'IPFamiliesNotValid', message: addressing };
    return { step: view.claim === undefined ? { do: 'nothing' } : { do: 'retreat' }, problem };
  }
  const problem = planProblem(view, allocations);
  const told = problem === undefined ? {} : { problem };
  if (view.claim !== undefined) return { ...planClaimed(input, view, addressing, view.claim), ...told };
  const lacks = (addressing?.missing.length ?? 0) + missingNodePorts(view) > 0 || missesHealthCheckPort(view);
  if (lacks) return { ...told, ...pick(input, view, addressing) };
  const spec = changes(service, view, addressing, empty);
  if (Object.keys(spec).length === 0) return { step: { do: 'nothing' }, ...told };
  return { step: { do: 'write', addresses: [], spec }, ...told };
}

/** Goes on from a claim that shows. */
function planClaimed(
  { service, allocations, ownerOf }: PlanInput,
  view: ServiceView,
  addressing: Addressing | undefined,
  text: string,
): ServicePlan {
  const retreat: ServicePlan = { step: { do: 'retreat' } };
  const claim = parseClaim(text);
  if (claim === undefined || !fits(view, addressing, claim)) return retreat;
  for (const address of claim.addresses) {
    const owner = ownerOf(address);
    if (!allocations.inRange(address) || (owner !== undefined && owner !== view.key)) return retreat;
  }
  if (claim.ports.some((port) => !allocations.hasPort(port))) return retreat;
  let waits = false;
  for (const value of [...claim.addresses, ...claim.ports.map(String)]) {
    for (const other of allocations.others(value, view.key)) {
      const mine = service.metadata.resourceVersion ?? '';
      const order = compareResourceVersions(other.resourceVersion, mine);
      if (other.how === 'spec' || order < 0 || (order === 0 && other.key < view.key)) return retreat;
      // It came later, and gives way: only then is the value ours alone.
      waits = true;
    }
  }
  if (waits) return { step: { do: 'wait' } };
  return {
    step: { do: 'write', addresses: claim.addresses, spec: changes(service, view, addressing, claim) },
  };
}

/** Picks what is missing, all or nothing. */
function pick(
  { service, allocations, random }: PlanInput,
  view: ServiceView,
  addressing: Addressing | undefined,
): ServicePlan {
  const claim: { readonly addresses: string[]; readonly ports: number[] } = { addresses: [], ports: [] };
  const full = new Set<Pool>();
  const take = (pool: Pool, next: () => void): void => {
    try {
      next();
    } catch (error) {
      if (!(error instanceof RangeFullError)) throw error;
      full.add(pool);
    }
  };
  for (const family of addressing?.missing ?? []) {
    take(family, () => claim.addresses.push(allocations.pickAddress(view.key, family, random)));
  }
  const count = missingNodePorts(view) + (missesHealthCheckPort(view) ? 1 : 0);
  for (let i = 0; i < count; i++)
    take('port', () => claim.ports.push(allocations.pickPort(view.key, random)));
  const [first] = full;
  if (first === undefined) return { step: { do: 'claim', claim } };
  allocations.abandonPick(view.key);
  // What users were told stays while it is true: whoever looks for the first time does not know what was full first.
  const pool = [...full].find((each) => isTold(service, fullProblem(each, allocations))) ?? first;
  return { step: { do: 'nothing' }, problem: fullProblem(pool, allocations), waitsFor: pool };
}

function fullProblem(pool: Pool, allocations: AllocationState): Problem {
  if (pool !== 'port') {
    return {
      reason: 'ClusterIPRangeFull',
      message: `No ${pool} address is left; you must add a ServiceCIDR in order to create new services`,
    };
  }
  return {
    reason: 'PortRangeFull',
    message: `Port range ${allocations.nodePorts.range} is full; you must widen the port range in order to create new services`,
  };
}

/** The members of the spec that differ from what they should be, once the claimed values are given out. */
function changes(
  { spec }: Service,
  view: ServiceView,
  addressing: Addressing | undefined,
  claim: Claim,
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
    if (!jsonEqual(value, isNothing(present) ? null : present)) result[name] = value;
  }
  return result;
}

function withNodePorts(ports: unknown, nodePorts: readonly number[]): unknown {
  if (!Array.isArray(ports) || ports.length === 0) return null;
  const list: readonly unknown[] = ports;
  return list.map((port, i) => {
    if (!isRecord(port)) return port;
    const { nodePort: _, ...rest } = port;
    const given = nodePorts[i] ?? 0;
    return given === 0 ? rest : { ...rest, nodePort: given };
  });
}

/** Absent, or what a server writes for it. */
function isNothing(value: unknown): boolean {
  return value === undefined || value === '' || value === 0 || (Array.isArray(value) && value.length === 0);
}

/** The addresses that a Service writes or claims, canonical: those that it may have IPAddress objects for. */
export function addressesOf(service: Service): Set<string> {
  const view = viewOf(service);
  const texts = view.type === 'ExternalName' ? [] : view.clusterIPs;
  const claim = view.claim === undefined ? undefined : parseClaim(view.claim);
  const canonical = texts.flatMap((text) => parseAddress(text)?.canonical ?? []);
  return new Set([...canonical, ...(claim?.addresses ?? [])]);
}
