import type { Lease } from '../../objects/types/coordination.generated.ts';

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
