/** The nodes by which packets from outside come into a cluster: those that announce an address, by the agents' Leases. */
import { addressBits, parseStrictAddress } from '../../objects/address.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import {
  type AgentReport,
  announcerOf,
  decodeReport,
  readAnnouncerLease,
} from '../announcing/agent-report.ts';
import { announcerOnLayer2, notAnnounced, planAnnouncement } from '../announcing/announcement-plan.ts';
import type { ServiceAddress } from '../announcing/assigned-addresses.ts';

/** An agent that announces addresses, by its Lease. */
export interface AnnouncingNode {
  readonly node: string;
  readonly isAlive: boolean;
  /** The addresses that it has left to its node until it starts again (`--restart-grace`). */
  readonly left: readonly string[];
  readonly report: AgentReport;
}

/**
 * Milliseconds after which an agent that has not renewed its Lease counts as dead. Agents renew every ten seconds at
 * least; the rest is for clocks that differ.
 */
export const renewedWithinMs = 60_000;

/** The agents whose Leases these are. @param now milliseconds since 1970. */
export function announcingNodes(leases: readonly Lease[], now: number): readonly AnnouncingNode[] {
  return leases.flatMap((lease) => {
    const read = readAnnouncerLease(lease);
    if (read === undefined) return [];
    const renewedAt = Date.parse(lease.spec.renewTime ?? '');
    const isAlive = read.acquired !== undefined && !(now - renewedAt > renewedWithinMs);
    const report = decodeReport(read.reportText);
    const { addresses, seconds } = report.kept ?? { addresses: [], seconds: 0 };
    const isLeft = read.acquired === undefined && now < renewedAt + seconds * 1000;
    return [{ node: read.node, isAlive, left: isLeft ? addresses : [], report }];
  });
}

/** The nodes that a packet to an address may reach first. */
export type Entry =
  /** `how` in words: `node-1 announces it by layer 2`. */
  | { readonly kind: 'announced'; readonly nodes: readonly Node[]; readonly how: string }
  /** No node announces it; `why` in words. */
  | { readonly kind: 'unannounced'; readonly why: string }
  /** Agents do not announce it; another program or a router may lead to it. */
  | { readonly kind: 'unknown' };

/**
 * By layer 2 packets reach the node whose agent reports the address; by BGP every node whose route to it is the
 * longest, which may be one that it announces for other addresses (`aggregationLength`).
 *
 * @param address canonical.
 * @param assigned the addresses of Services, by their canonical text.
 */
export function entryOf(
  address: string,
  assigned: ReadonlyMap<string, ServiceAddress>,
  agents: readonly AnnouncingNode[],
  nodes: readonly Node[],
): Entry {
  const announcers = agents.flatMap(({ node: name, isAlive, report }) => {
    const node = nodes.find(({ metadata }) => metadata.name === name);
    return node === undefined ? [] : [announcerOf(node, report, isAlive)];
  });
  const reports = new Map(agents.flatMap(({ node, isAlive, report }) => (isAlive ? [[node, report]] : [])));
  const own = assigned.get(address);
  const plan = own === undefined ? undefined : planAnnouncement(own, announcers);
  const announcing = plan === undefined ? undefined : announcerOnLayer2(address, plan, reports);
  const onLayer2 = announcing ?? agents.find(({ left }) => left.includes(address))?.node;
  const byBGP = bgpNextHops(address, assigned, (one) => planAnnouncement(one, announcers).bgp);
  const names = [...new Set([...(onLayer2 === undefined ? [] : [onLayer2]), ...byBGP])];
  const entered = nodes.filter(({ metadata }) => names.includes(metadata.name ?? ''));
  if (entered.length > 0) {
    const how = [
      ...(onLayer2 === undefined ? [] : [`${onLayer2} announces it by layer 2`]),
      ...(byBGP.length === 0 ? [] : [`${byBGP.join(', ')} by BGP`]),
    ];
    return { kind: 'announced', nodes: entered, how: how.join(', ') };
  }
  if (plan === undefined) return { kind: 'unknown' };
  if (plan.layer2 !== undefined) {
    return { kind: 'unannounced', why: `${plan.layer2.node} has not announced it yet` };
  }
  // Then another program announces it, which these objects do not show.
  const isOthers = plan.reason === 'NoAgent' || plan.reason === 'AnnouncingOff';
  if (plan.reason === undefined || isOthers || plan.reason === 'OtherAnnouncer') return { kind: 'unknown' };
  return { kind: 'unannounced', why: notAnnounced[plan.reason] };
}

/** The nodes with the longest route that leads to an address. Sorted. */
function bgpNextHops(
  address: string,
  assigned: ReadonlyMap<string, ServiceAddress>,
  nodesOf: (one: ServiceAddress) => readonly string[],
): readonly string[] {
  const parsed = parseStrictAddress(address);
  if (parsed === undefined) return [];
  const { family, value } = parsed;
  let longest = 0;
  const found = new Set<string>();
  for (const one of assigned.values()) {
    const other = parseStrictAddress(one.address);
    const length = one.announcement.bgp?.prefixLengths[family];
    if (other?.family !== family || length === undefined || length < longest) continue;
    const hostBits = BigInt(addressBits(family) - length);
    if (other.value >> hostBits !== value >> hostBits) continue;
    const nodes = nodesOf(one);
    if (nodes.length === 0) continue;
    if (length > longest) found.clear();
    longest = length;
    for (const node of nodes) found.add(node);
  }
  return [...found].toSorted();
}
