/** The holders of addresses, by the reports of a cluster's agents. */
import type { AgentReport } from './agent-report.ts';

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
