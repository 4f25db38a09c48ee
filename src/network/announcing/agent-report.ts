import { parseCidr, parseStrictAddress, type ParsedCidr } from '../../objects/address.ts';
import { isRecord, at, listAt, numberAt, textAt, textsAt, conditionStatus } from '../../objects/json.ts';
import type { Announcer, AnnouncerInterface, AnnouncementRefusal } from './announcement-plan.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import type { Node } from '../../objects/types/core.generated.ts';

/** The report of an agent about its node, in an annotation of its Lease; written when it changes. */
export interface AgentReport extends Pick<Announcer, 'interfaces' | 'sessions' | 'refused'> {
  /** The addresses that it announces by layer 2 now: their former node withdraws only then. */
  readonly announced: readonly string[];
  /**
   * The addresses that no other agent takes for some time after its Lease was given back: by itself, those that it leaves in
   * the kernel for a restart; by another one, those that no other node could announce. While it is held, none takes
   * them either.
   */
  readonly kept?: KeptAddresses | undefined;
  /** See `Member.voters`. */
  readonly voters: ReadonlyMap<string, string>;
}

/** Addresses that outlive their agent. */
export interface KeptAddresses {
  readonly addresses: readonly string[];
  /** Their lifetime from the agent's end on. */
  readonly seconds: number;
}

/** The report without the agents that the Lease names. */
export type NodeReport = Omit<AgentReport, 'voters'>;

/** A report as JSON: equal reports have equal texts. */
export function encodeReport({
  interfaces,
  sessions,
  refused,
  announced,
  kept,
  voters,
}: AgentReport): string {
  return JSON.stringify({
    interfaces: interfaces
      .map(({ subnets, ...rest }) => ({
        ...rest,
        subnets: subnets.map(({ canonical }) => canonical).toSorted(),
      }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ...(sessions.length === 0 ? {} : { sessions: sessions.toSorted() }),
    ...(refused.length === 0
      ? {}
      : { refused: refused.toSorted((a, b) => (a.address < b.address ? -1 : 1)) }),
    ...(announced.length === 0 ? {} : { announced: announced.toSorted() }),
    ...(kept === undefined ? {} : { kept: { addresses: kept.addresses.toSorted(), seconds: kept.seconds } }),
    ...(voters.size === 0
      ? {}
      : { voters: Object.fromEntries([...voters].toSorted(([a], [b]) => (a < b ? -1 : 1))) }),
  });
}

/** Reads a report; parts that do not parse are left out, since an agent of another version may have written it. */
export function decodeReport(text: string | undefined): AgentReport {
  const value = parseJson(text ?? '');
  return {
    interfaces: listAt(value, 'interfaces').flatMap(interfaceOf),
    sessions: textsAt(value, 'sessions'),
    refused: listAt(value, 'refused').flatMap(refusalOf),
    announced: textsAt(value, 'announced').filter(isAddress),
    kept: keptIn(at(value, 'kept')),
    voters: votersIn(at(value, 'voters')),
  };
}

function keptIn(value: unknown): KeptAddresses | undefined {
  if (!isRecord(value)) return undefined;
  return { addresses: textsAt(value, 'addresses').filter(isAddress), seconds: numberAt(value, 'seconds') };
}

function votersIn(value: unknown): ReadonlyMap<string, string> {
  if (!isRecord(value)) return new Map();
  return new Map(
    Object.entries(value).flatMap(([node, acquired]) =>
      typeof acquired === 'string' ? [[node, acquired]] : [],
    ),
  );
}

function interfaceOf(entry: unknown): readonly AnnouncerInterface[] {
  const name = textAt(entry, 'name');
  if (name === '') return [];
  const subnets = textsAt(entry, 'subnets').flatMap(cidrsOf);
  return [{ name, subnets, mac: textAt(entry, 'mac'), ownMac: textAt(entry, 'ownMac') }];
}

const refusalReasons = ['AddressConflict', 'OtherAnnouncer', 'NodeAddress', 'GatewayAddress'] as const;

function refusalOf(entry: unknown): readonly AnnouncementRefusal[] {
  const address = textAt(entry, 'address');
  const reason = refusalReasons.find((known) => known === textAt(entry, 'reason'));
  if (reason === undefined || !isAddress(address)) return [];
  return [{ address, reason, holder: textAt(entry, 'holder') }];
}

function isAddress(text: string): boolean {
  return parseStrictAddress(text) !== undefined;
}

function cidrsOf(text: string): readonly ParsedCidr[] {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [cidr];
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The label of Leases of agents that announce: `true`. */
export const announcerLabel = 'servicenet.dev/announcer';

/** For `InformerFactoryOptions.labelSelectors`: the Leases that agents, and who plans as they do, read. */
export const announceSelectors = { 'leases.coordination.k8s.io': announcerLabel } as const;

/** The annotation of these Leases that has the agent's report, as JSON. */
export const reportAnnotation = 'servicenet.dev/announcer-report';

const namePrefix = 'announcer.';

/** The name of the Lease of a node's agent. */
export function announcerLeaseName(node: string): string {
  return `${namePrefix}${node}`;
}

/** The contents of an agent's Lease. */
export interface AnnouncerLease {
  readonly node: string;
  /** `metadata.resourceVersion`: another one after each renewal. */
  readonly version: string;
  /** `spec.acquireTime`; undefined: the Lease was given back. */
  readonly acquired: string | undefined;
  /** `spec.leaseDurationSeconds`; 0 without it. */
  readonly seconds: number;
  /** For `decodeReport`. */
  readonly reportText: string | undefined;
}

/** Reads a Lease; undefined for one that is no agent's. */
export function readAnnouncerLease({ metadata, spec }: Lease): AnnouncerLease | undefined {
  const { name = '', labels, annotations, resourceVersion = '' } = metadata;
  if (labels?.[announcerLabel] === undefined || !name.startsWith(namePrefix)) return undefined;
  const { holderIdentity = '', acquireTime = '', leaseDurationSeconds = 0 } = spec;
  return {
    node: name.slice(namePrefix.length),
    version: resourceVersion,
    acquired: holderIdentity === '' ? undefined : acquireTime,
    seconds: leaseDurationSeconds,
    reportText: annotations?.[reportAnnotation],
  };
}

/** A node and its agent's report, in the planner's form. */
export function announcerOf(
  { metadata, spec, status }: Node,
  { interfaces, sessions, refused }: NodeReport,
  isAlive: boolean,
): Announcer {
  return {
    node: metadata.name ?? '',
    labels: metadata.labels ?? {},
    // A Node without a Ready condition keeps its addresses.
    isReady: (conditionStatus(status.conditions ?? [], 'Ready') ?? 'True') === 'True',
    isCordoned: spec.unschedulable === true,
    ...{ isAlive, interfaces, sessions, refused },
  };
}

/** The reports of a cluster's agents, which tell who has which address. */
type Reports = Iterable<Pick<AgentReport, 'interfaces' | 'announced' | 'refused'>>;

/**
 * Whose MAC address it is that answers for an address: an agent's that announces it, a node's own, or neither's (undefined).
 * The interface below an agent's own answers too for what the agent announces: the kernel's `arp_ignore` is 0.
 */
export function ownerOfMac(reports: Reports, mac: string, address: string): 'agent' | 'node' | undefined {
  let owner: 'node' | undefined;
  for (const { interfaces, announced } of reports) {
    if (interfaces.some((one) => one.mac === mac && one.mac !== one.ownMac)) return 'agent';
    if (!interfaces.some((one) => one.ownMac === mac)) continue;
    if (announced.includes(address)) return 'agent';
    owner = 'node';
  }
  return owner;
}

/** Whether an agent refuses an address: something else has it. */
export function isRefused(reports: Reports, address: string): boolean {
  for (const { refused } of reports) if (refused.some((one) => one.address === address)) return true;
  return false;
}
