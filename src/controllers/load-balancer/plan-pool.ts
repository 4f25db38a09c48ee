import { parseStrictAddress } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { Condition } from '../../objects/meta.ts';
import { formatTime, parseTime } from '../../objects/time.ts';
import type { Quarantine } from './address-book.ts';
import { firstFew } from './first-few.ts';
import type { AddressPool, AddressPoolStatus, FamilyUsage, RestingAddress } from './pool.ts';

/** What is known of a pool when its status is planned. */
export interface PoolFacts {
  readonly usage: Readonly<Record<'IPv4' | 'IPv6', FamilyUsage>>;
  /** Parts of the spec that could not be understood. */
  readonly problems: readonly string[];
  /** Overlaps that were refused. */
  readonly conflicts: readonly string[];
  /** The longest first. */
  readonly resting: readonly Quarantine[];
  /** Of the spec that is in force. */
  readonly generation: number | undefined;
}

/** The status that a pool should have; undefined when it has it. `now` in milliseconds since 1970. */
export function planPoolStatus(
  pool: AddressPool,
  facts: PoolFacts,
  now: number,
): AddressPoolStatus | undefined {
  const { usage, problems, conflicts, resting, generation } = facts;
  const seen = generation === undefined ? {} : { observedGeneration: generation };
  const usable = usage.IPv4.total + usage.IPv6.total > 0;
  const before = pool.status?.conditions ?? [];
  const conditions = [
    condition(before, now, {
      type: 'Ready',
      status: usable ? 'True' : 'False',
      reason: problems.length > 0 ? 'InvalidSpec' : usable ? 'Usable' : 'NoAddresses',
      message: readyMessage(usable, problems),
      ...seen,
    }),
    condition(before, now, {
      type: 'Conflict',
      status: conflicts.length > 0 ? 'True' : 'False',
      reason: conflicts.length > 0 ? 'Overlap' : 'NoOverlap',
      message: conflicts.length > 0 ? `${firstFew(conflicts, '; ')}: these addresses are not given` : '',
      ...seen,
    }),
  ];
  const status: AddressPoolStatus = {
    ...(usage.IPv4.total > 0 ? { ipv4: usage.IPv4 } : {}),
    ...(usage.IPv6.total > 0 ? { ipv6: usage.IPv6 } : {}),
    ...(resting.length > 0 ? { resting: resting.slice(0, mostResting).map(restingText) } : {}),
    conditions,
  };
  return jsonEqual(status, pool.status) ? undefined : status;
}

/** Those that end sooner are forgotten when more rest at once: they matter least. */
const mostResting = 1000;

function restingText({ address, service, until }: Quarantine): RestingAddress {
  // A time in the API has whole seconds: not one less.
  return { address, service, until: formatTime(Math.ceil(until / 1000) * 1000) };
}

/** Reads what rests, now and on, from a pool's status; what cannot be understood does not. `now` as above. */
export function readResting({ status }: AddressPool, now: number): Quarantine[] {
  return (status?.resting ?? []).flatMap(({ address, service, until }): Quarantine[] => {
    const parsed = parseStrictAddress(address);
    const time = parseTime(until);
    return parsed === undefined || time === undefined || time <= now
      ? []
      : [{ address: parsed.canonical, service, until: time }];
  });
}

function readyMessage(usable: boolean, problems: readonly string[]): string {
  if (problems.length > 0) return `${usable ? 'the valid parts are used; ' : ''}${firstFew(problems, '; ')}`;
  return usable ? '' : 'no address is left: all are excluded or belong to something else';
}

function condition(
  before: readonly Condition[],
  now: number,
  wanted: Omit<Condition, 'lastTransitionTime'>,
): Condition {
  const present = before.find(({ type }) => type === wanted.type);
  const since = present?.status === wanted.status ? present.lastTransitionTime : formatTime(now);
  return { ...wanted, lastTransitionTime: since };
}
