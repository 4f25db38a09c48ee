/** The addresses in the status of a Service: the only record that outlives the process. */
import { loadBalancerReadyCondition } from '../../network/announcing/assigned-addresses.ts';
import { parseStrictAddress, type IPFamily } from '../../objects/address.ts';
import type { LoadBalancerIngress, Service } from '../../objects/types/core.generated.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { backoffDelay } from '../../client/clock.ts';
import type { Origin } from './pools.ts';
import type { AddressRequest } from './request.ts';

/** One address in the message of the condition. */
export interface AssignedText {
  readonly address: string;
  /** Undefined for an address that no AddressPool assigned. */
  readonly origin: Origin | undefined;
  /** As {@link sharingKeyText} writes it. */
  readonly key: string;
  /** True when no pool contains the address. */
  readonly kept: boolean;
}

const keptText =
  ' (kept, though no pool contains it any more: extend a pool to contain it, or ask for another address with servicenet.dev/addresses)';

/**
 * The text about one address. {@link readAssigned} reads it after a restart: origin and key are recorded nowhere else.
 */
export function assignedText({ address, origin, key, kept }: AssignedText): string {
  const from = origin === undefined ? '' : ` from pool ${origin.pool}`;
  const policy = origin?.shrinkPolicy === 'Reassign' ? ' (shrinkPolicy Reassign)' : '';
  return `${address}${from}${policy}${key === '' ? '' : ` with sharing key ${key}`}${kept ? keptText : ''}`;
}

/** A sharing key in a condition: its first 64 characters, quoted; "" for none. */
export function sharingKeyText(sharingKey: string): string {
  return sharingKey === '' ? '' : JSON.stringify(sharingKey.slice(0, 64));
}

/** The inverse of {@link sharingKeyText} for keys up to 64 characters. Text that is not quoted is returned as it is. */
export function readSharingKey(text: string): string {
  if (text === '') return '';
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Reads the texts of {@link assignedText} at the start of a condition's message, up to the first other text. */
export function readAssigned(message: string): AssignedText[] {
  const texts: AssignedText[] = [];
  const pattern =
    /(?<address>[0-9a-f.:]+)(?: from pool (?<pool>[-a-z0-9.]+))?(?<reassign> \(shrinkPolicy Reassign\))?(?: with sharing key (?<key>"(?:[^"\\]|\\.)*"))?(?<kept> \(kept, [^)]*\))?(?:(?<more>, )|; |$)/y;
  for (let match = pattern.exec(message); match?.groups !== undefined; match = pattern.exec(message)) {
    const { address = '', pool, reassign, key = '', kept, more } = match.groups;
    if (parseStrictAddress(address)?.canonical !== address || (pool ?? kept) === undefined) break;
    const shrinkPolicy = reassign === undefined ? 'Retain' : 'Reassign';
    const origin = pool === undefined ? undefined : ({ pool, shrinkPolicy } as const);
    texts.push({ address, origin, key, kept: kept !== undefined });
    if (more === undefined) break;
  }
  return texts;
}

/** An address in a Service's status. */
export interface StatusAddress {
  readonly family: IPFamily;
  /** Canonical. */
  readonly address: string;
  /** Undefined for an address that no AddressPool assigned. */
  readonly origin: Origin | undefined;
  /** The sharing key with which it was assigned, as {@link sharingKeyText} writes it; undefined if unknown. */
  readonly key: string | undefined;
  /** `TCP/80`: the ports without an error; undefined when the status lists no ports. */
  readonly servedPorts: ReadonlySet<string> | undefined;
}

/**
 * The addresses in a Service's status that belong to this controller, at most one per family: those that the condition
 * names, else those that a pool contains, which another load balancer may have written.
 *
 * @param isPooled whether a pool contains an address.
 */
export function statusAddresses(
  service: Service,
  isPooled: (family: IPFamily, value: bigint) => boolean,
): StatusAddress[] {
  const entries = service.status.loadBalancer?.ingress ?? [];
  if (entries.length === 0) return [];
  const named = new Map(
    readAssigned(loadBalancerReadyCondition(service)?.message ?? '').map((text) => [text.address, text]),
  );
  const found = new Map<IPFamily, StatusAddress>();
  for (const entry of entries) {
    const parsed = entry.ip === undefined ? undefined : parseStrictAddress(entry.ip);
    if (parsed === undefined) continue;
    const { family, canonical: address, value } = parsed;
    const text = named.get(address);
    const before = found.get(family);
    if (before !== undefined && (text === undefined || before.key !== undefined)) continue;
    if (text === undefined && !isPooled(family, value)) continue;
    found.set(family, {
      family,
      address,
      origin: text?.origin,
      key: text?.key,
      servedPorts: servedPorts(entry),
    });
  }
  return [...found.values()];
}

function servedPorts({ ports }: LoadBalancerIngress): ReadonlySet<string> | undefined {
  if (ports === undefined) return undefined;
  const served = ports.filter(({ error }) => error === undefined);
  return new Set(served.map(({ protocol, port }) => `${protocol}/${port}`));
}

/** True when the condition names an address that the status does not list: another client removed it. */
function isOverwritten(service: Service): boolean {
  const listed = new Set((service.status.loadBalancer?.ingress ?? []).map(({ ip }) => ip));
  return readAssigned(loadBalancerReadyCondition(service)?.message ?? '').some(
    ({ address }) => !listed.has(address),
  );
}

/**
 * True for a Service without a class that another load balancer serves: its status has addresses or host names, none
 * from this controller. Such a Service is never written.
 */
export function isForeign(service: Service, own: readonly StatusAddress[]): boolean {
  const { loadBalancerClass } = service.spec;
  if (loadBalancerClass !== undefined && loadBalancerClass !== '') return false;
  const entries = service.status.loadBalancer?.ingress ?? [];
  return entries.length > 0 && own.length === 0 && loadBalancerReadyCondition(service) === undefined;
}

/** A Service with the addresses in its status. */
export interface ServedService {
  readonly request: AddressRequest;
  readonly inStatus: readonly StatusAddress[];
}

/** A request with only those of its ports that the status shows as served on an address. */
export function withServedPorts(request: AddressRequest, { servedPorts }: StatusAddress): AddressRequest {
  return servedPorts === undefined
    ? request
    : { ...request, ports: request.ports.filter((port) => servedPorts.has(port)) };
}

/** A request with the ports and the sharing key that the status shows for an address. */
export function asInStatus(request: AddressRequest, { servedPorts, key }: StatusAddress): AddressRequest {
  return {
    ...request,
    ports: servedPorts === undefined ? request.ports : [...servedPorts],
    sharingKey: key === undefined ? request.sharingKey : readSharingKey(key),
  };
}

/** Milliseconds between the first and the second repeated write, and at most. */
const limits = { base: 1000, max: 300_000 };

/** When no conflict was seen for this many delays, the count starts anew. */
const resetAfterDelays = 10;

interface Conflict {
  times: number;
  /** Milliseconds since 1970. */
  lastWriteMs: number;
}

export interface ConflictDelay {
  /** Milliseconds before the addresses may be written again; 0 for now. */
  readonly delayMs: number;
  /** How many times in a row they have been written again, including this time. */
  readonly times: number;
}

/**
 * Delays writes to Services from whose status another client removes our addresses, most likely another load balancer
 * with the same class. Without a growing delay, both would write as fast as they can.
 */
export class ConflictBackoff {
  readonly #conflicts = new Map<ObjectKey, Conflict>();

  /** The delay of the next write of a Service. Call it once before each write. */
  delayOf(key: ObjectKey, service: Service, now: number): ConflictDelay {
    const conflict = this.#conflicts.get(key);
    if (!isOverwritten(service)) return { delayMs: 0, times: 0 };
    if (conflict === undefined) {
      this.#conflicts.set(key, { times: 1, lastWriteMs: now });
      return { delayMs: 0, times: 1 };
    }
    const delay = backoffDelay(conflict.times - 1, limits, () => 0);
    const delayMs = conflict.lastWriteMs + delay - now;
    if (delayMs > 0) return { delayMs, times: conflict.times };
    conflict.times = now - conflict.lastWriteMs > resetAfterDelays * delay ? 1 : conflict.times + 1;
    conflict.lastWriteMs = now;
    return { delayMs: 0, times: conflict.times };
  }

  forget(key: ObjectKey): void {
    this.#conflicts.delete(key);
  }
}
