import { firewallRules } from '../../network/policy/egress-firewall.ts';
import type { EgressFirewall } from '../../objects/types/ovn.ts';

/** All nodes are one zone. */
export const zone = 'global';

const applied = 'EgressFirewall Rules applied';
const notApplied = 'EgressFirewall Rules not correctly applied';

/**
 * The status of an EgressFirewall: a message of each zone, and what they come to (OVN-Kubernetes'
 * `pkg/ovn/egressfirewall.go` and `pkg/clustermanager/status_manager`). There is one zone.
 */
export function firewallStatus(firewall: EgressFirewall): {
  readonly status: string;
  readonly messages: readonly string[];
} {
  const { problems } = firewallRules(firewall);
  if (problems.length === 0) return { status: applied, messages: [`${zone}: ${applied}`] };
  return { status: notApplied, messages: [`${zone}: ${notApplied}: ${problems.join('\n')}`] };
}
