import { listIfServed } from '../../client/resource-client.ts';
import {
  ipPools,
  networkAttachmentDefinitions,
  overlappingRangeIPReservations,
  pods,
} from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import { type AttachmentFinding, auditAttachments } from './plan-audit.ts';

/** The result of an audit of further networks. */
export interface AttachmentAudit {
  /** How many pools there are. */
  readonly pools: number;
  readonly findings: readonly AttachmentFinding[];
}

/** Reads a cluster once. @returns undefined where it has no IPPools. @throws what a list throws. */
export async function auditClusterAttachments(transport: Transport): Promise<AttachmentAudit | undefined> {
  const pools = await listIfServed(transport, ipPools);
  if (pools === undefined || pools.length === 0) return undefined;
  const objects = {
    pools,
    reservations: (await listIfServed(transport, overlappingRangeIPReservations)) ?? [],
    definitions: (await listIfServed(transport, networkAttachmentDefinitions)) ?? [],
    pods: (await listIfServed(transport, pods)) ?? [],
  };
  return { pools: pools.length, findings: auditAttachments(objects) };
}
