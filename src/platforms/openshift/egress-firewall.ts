import { firewallRules } from '../../network/policy/egress-firewall.ts';
import type { EgressFirewall } from '../../objects/types/openshift.ts';
import { isConflict, isNotFound } from '../../client/errors.ts';
import { egressFirewalls } from '../../client/resources.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { jsonEqual } from '../../objects/json.ts';
import { type ControllerSpec, ownKey } from '../../runtime/key-loop.ts';

/** All nodes are one zone. */
const zone = 'global';

const applied = 'EgressFirewall Rules applied';
const notApplied = 'EgressFirewall Rules not correctly applied';

/**
 * The status of an EgressFirewall: a message of each zone, and what they come to (OVN-Kubernetes'
 * `pkg/ovn/egressfirewall.go` and `pkg/clustermanager/status_manager`). There is one zone.
 */
function firewallStatus(firewall: EgressFirewall): {
  readonly status: string;
  readonly messages: readonly string[];
} {
  const { problems } = firewallRules(firewall);
  if (problems.length === 0) return { status: applied, messages: [`${zone}: ${applied}`] };
  return { status: notApplied, messages: [`${zone}: ${notApplied}: ${problems.join('\n')}`] };
}

/** Field manager of `status.status`, which OVN-Kubernetes' cluster manager writes. */
const summary = 'servicenet-cluster-manager';

/**
 * Writes the status of EgressFirewalls, by server-side apply as OVN-Kubernetes does: the zone its message, the cluster
 * manager what all zones come to. Agents enforce the rules (`node/policy`).
 */
export const egressFirewallsController: ControllerSpec = {
  name: 'egress-firewall-controller',
  eventSource: 'servicenet-egress-firewall',
  queue: 'egress_firewall',
  where: { serves: egressFirewalls, work: 'egress firewalls' },
  build(loop) {
    const client = loop.context.clients.for(egressFirewalls);
    const firewalls = loop.cache(egressFirewalls);

    loop.on(firewalls, (change) => (change.kind === 'deleted' ? [] : ownKey(change)));

    return async (key, signal) => {
      const firewall = firewalls.cache.get(key);
      if (firewall === undefined || firewall.metadata.deletionTimestamp !== undefined) return undefined;
      const { status, messages } = firewallStatus(firewall);
      const present = firewall.status ?? {};
      if (!jsonEqual(present.messages, messages)) await apply(client, firewall, { messages }, zone, signal);
      if (present.status !== status) await apply(client, firewall, { status }, summary, signal);
      return undefined;
    };
  },
};

/** Applies a part of the status: at `/status` where the definition has that (later releases), else of the object. */
async function apply(
  client: ResourceClient<EgressFirewall>,
  { metadata: { namespace = '', name = '', uid = '' } }: EgressFirewall,
  status: object,
  fieldManager: string,
  signal: AbortSignal,
): Promise<void> {
  // With the uid, an object that is gone is not made anew.
  const part = { metadata: { namespace, name, uid }, status };
  const options = { fieldManager, force: true, signal };
  try {
    await client.applyPatch(part, { ...options, subresource: 'status' });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    try {
      await client.applyPatch(part, options);
    } catch (second) {
      if (!isNotFound(second) && !isConflict(second)) throw second;
    }
  }
}
