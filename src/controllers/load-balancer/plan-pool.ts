/** The wanted status of a pool. Pure. */
import type {
  FamilyUsage,
  AddressPool,
  AddressPoolStatus,
  RestingAddress,
} from '../../objects/types/servicenet.ts';
import type { QuarantinedAddress } from './quarantine.ts';
import { type PoolAnnounced, poolCondition, refusedAddresses } from '../announcement-status/plan.ts';
import { conditionSince } from './plan.ts';
import { firstFew } from '../../objects/lists.ts';
import { jsonEqual } from '../../objects/json.ts';
import { formatTime } from '../../objects/time.ts';
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

function restingOf({ address, service, until }: QuarantinedAddress): RestingAddress {
  // Times in the API have whole seconds; rounded up.
  return { address, service, until: formatTime(Math.ceil(until / 1000) * 1000) };
}

function readyMessage(usable: boolean, problems: readonly string[]): string {
  if (problems.length > 0) return `${usable ? 'the valid parts are used; ' : ''}${firstFew(problems, '; ')}`;
  return usable ? '' : 'no address is left: all are excluded or belong to something else';
}
