/** The announcers of addresses in the status of Services and pools. */
import type { AnnouncedReason } from '../../objects/reasons.ts';
import type { AgentReport } from '../../network/announcing/agent-report.ts';
import {
  announcerOnLayer2,
  notAnnounced,
  type AnnouncementPlan,
  type AnnouncementRefusal,
} from '../../network/announcing/announcement-plan.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { Condition } from '../../objects/meta.ts';
import type { RefusedPoolAddress } from '../../objects/types/servicenet.ts';
import { formatTime } from '../../objects/formats/time.ts';
import { firstFew } from '../../objects/lists.ts';
import type { PlannedEvent } from '../../client/events/events.ts';

/** The condition of Services whose addresses nodes announce, or do not. */
export const announcedCondition = 'servicenet.dev/Announced';

/** An address of a Service, its announcement plan, and the reports of agents. */
export interface PlannedAddress {
  /** Canonical. */
  readonly address: string;
  readonly plan: AnnouncementPlan;
  /** Of agents that are alive, by node. */
  readonly reports: ReadonlyMap<string, AgentReport>;
}

/** The writes for one Service. */
export interface AnnouncedPlan {
  /** Undefined: no condition; a former one is removed. */
  readonly condition: Condition | undefined;
  readonly events: readonly PlannedEvent[];
}

/** No Events for these: `Pending` lasts until the next report, and the others are configured. */
const quiet: ReadonlySet<AnnouncedReason> = new Set(['NoAgent', 'AnnouncingOff', 'Pending']);

/**
 * The condition of a Service. An address that moves from one node to another counts as announced by the former.
 *
 * @param addresses of the Service, in the order of its status; empty: it has none, or no agent has ever run in the
 *   cluster.
 * @param now milliseconds since 1970.
 */
export function planAnnounced(
  service: Service,
  addresses: readonly PlannedAddress[],
  now: number,
): AnnouncedPlan {
  if (addresses.length === 0) return { condition: undefined, events: [] };
  const before = announcedConditionOf(service);
  const said = addresses.map((one) => describe(one, before?.message ?? '', now));
  const reason = said.find((one) => one.reason !== 'Announced')?.reason ?? 'Announced';
  const status = reason === 'Announced' ? 'True' : 'False';
  const message = said.map(({ text }) => text).join(separator);
  const since = before?.status === status ? before.lastTransitionTime : formatTime(now);
  const isNews = before?.message !== message && !quiet.has(reason);
  return {
    condition: { type: announcedCondition, status, reason, message, lastTransitionTime: since },
    events: isNews ? [{ type: status === 'True' ? 'Normal' : 'Warning', reason, message }] : [],
  };
}

/** The condition that {@link planAnnounced} wrote. */
export function announcedConditionOf({ status }: Service): Condition | undefined {
  return status.conditions?.find(({ type }) => type === announcedCondition);
}

/** The announcers of an address in a Service's condition: nodes, or the reason; undefined without a condition. */
export function announcedBy(service: Service, address: string): string | undefined {
  const condition = announcedConditionOf(service);
  if (condition === undefined) return undefined;
  const prefix = `${address} by `;
  const text = condition.message.split(separator).find((one) => one.startsWith(prefix));
  return text === undefined ? condition.reason : text.slice(prefix.length).replace(/ since \S+$/, '');
}

/** Between addresses in a message. */
const separator = '; ';

/** `192.0.2.1 by node-1 on eth0 since 2026-01-01T00:00:00Z`; the time changes with the node. */
function describe(
  { address, plan, reports }: PlannedAddress,
  before: string,
  now: number,
): { reason: AnnouncedReason; text: string } {
  const reason = reasonOf({ address, plan, reports });
  if (reason === 'Pending') {
    return {
      reason,
      text: `${address}: ${plan.layer2?.node ?? ''} has not announced it yet: see the log of its agent`,
    };
  }
  if (reason !== 'Announced') {
    const holder = holderOf(address, reports);
    const of = holder === '' ? '' : ` (${holder})`;
    return { reason, text: `${address}: ${notAnnounced[reason]}${of}` };
  }
  const by = [...layer2Of(address, plan, reports), ...bgpOf(plan)].join(' and ');
  const former = before.split(separator).find((text) => text.startsWith(`${address} by ${by} since `));
  return { reason, text: former ?? `${address} by ${by} since ${formatTime(now)}` };
}

/** Whether an address is announced, or why not. Only the agent of a node knows whether layer 2 has succeeded. */
export function reasonOf({ address, plan, reports }: PlannedAddress): AnnouncedReason {
  if (plan.reason !== undefined) return plan.reason;
  return plan.bgp.length > 0 || announcerOnLayer2(address, plan, reports) !== undefined
    ? 'Announced'
    : 'Pending';
}

function layer2Of(
  address: string,
  plan: AnnouncementPlan,
  reports: PlannedAddress['reports'],
): readonly string[] {
  const node = announcerOnLayer2(address, plan, reports);
  if (node === undefined) return [];
  return [`${node}${node === plan.layer2?.node ? ` on ${plan.layer2.interfaces.join(' and ')}` : ''}`];
}

function bgpOf({ bgp }: AnnouncementPlan): readonly string[] {
  return bgp.length === 0 ? [] : [`BGP from ${firstFew(bgp)}`];
}

/** Of several nodes the first by name, so that the message does not change. */
function holderOf(address: string, reports: PlannedAddress['reports']): string {
  for (const [, { refused }] of [...reports].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const refusal = refused.find((one) => one.address === address);
    if (refusal !== undefined) return refusal.holder;
  }
  return '';
}

/** An address that a machine of the nodes' network has, so that no pool may assign it. */
export interface HostAddress {
  readonly address: string;
  /** `node a`, `the router of node a`. */
  readonly owner: string;
}

/** The announcements of a pool's addresses, for its status. */
export interface PoolAnnounced {
  /** How many addresses in use are announced, and how many are not, by reason. */
  readonly reasons: ReadonlyMap<AnnouncedReason, number>;
  readonly refused: readonly (AnnouncementRefusal & { readonly node: string })[];
}

/** The condition of a pool, with the most frequent reason where an address is not announced; undefined: none is in use. */
export function poolCondition({ reasons }: PoolAnnounced): Omit<Condition, 'lastTransitionTime'> | undefined {
  const total = [...reasons.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const missing = [...reasons].filter(([reason]) => reason !== 'Announced').toSorted(mostFirst);
  const others = missing.map(([name, count]) => `, ${count} ${name}`).join('');
  return {
    type: 'Announced',
    status: missing.length === 0 ? 'True' : 'False',
    reason: missing[0]?.[0] ?? 'Announced',
    message: `${reasons.get('Announced') ?? 0} of ${total} addresses in use are announced${others}`,
  };
}

function mostFirst([a, ofA]: readonly [string, number], [b, ofB]: readonly [string, number]): number {
  return ofB - ofA || (a < b ? -1 : 1);
}

/** The list in the status of a pool; present entries keep their time. */
export function refusedAddresses(
  before: readonly RefusedPoolAddress[],
  { refused }: PoolAnnounced,
  now: number,
): RefusedPoolAddress[] {
  return refused.slice(0, maxRefused).map(({ address, node, reason, holder }) => {
    const known = before.find((one) => one.address === address && one.node === node && one.reason === reason);
    const message = holder === '' ? {} : { message: `held by ${holder}` };
    return { address, node, reason, ...message, since: known?.since ?? formatTime(now) };
  });
}

/** Of the CRD. */
const maxRefused = 1000;
