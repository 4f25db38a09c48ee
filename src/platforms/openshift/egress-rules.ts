import { firewallRules } from '../../network/policy/egress-firewall.ts';
import type { EgressFirewall, EgressQoS } from '../../objects/types/openshift.ts';
import { isConflict, isNotFound } from '../../client/errors.ts';
import { egressFirewalls, egressQoSes } from '../../client/resources.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { jsonEqual } from '../../objects/json.ts';
import { type ControllerSpec, ownKey } from '../../runtime/key-loop.ts';
import { qosRules } from '../../network/egress/egress-plan.ts';
import { type Condition, transitionTime } from '../../objects/meta.ts';

/** All nodes are one zone. */
const zone = 'global';

/** What OVN-Kubernetes says of the rules of an object, in short and with what is wrong. */
function outcomeOf(
  kind: 'EgressFirewall' | 'EgressQoS',
  problems: readonly string[],
): { readonly summary: string; readonly message: string } {
  const summary = problems.length === 0 ? `${kind} Rules applied` : `${kind} Rules not correctly applied`;
  return { summary, message: problems.length === 0 ? summary : `${summary}: ${problems.join('\n')}` };
}

/** Field manager of `status.status`, which OVN-Kubernetes' cluster manager writes. */
const clusterManager = 'servicenet-cluster-manager';

/**
 * Writes the status of EgressFirewalls, by server-side apply as OVN-Kubernetes does: the zone its message, the cluster
 * manager what all zones come to (`pkg/ovn/egressfirewall.go`, `pkg/clustermanager/status_manager`). Agents enforce the
 * rules (`node/policy`).
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
      const { summary: status, message } = outcomeOf('EgressFirewall', firewallRules(firewall).problems);
      const messages = [`${zone}: ${message}`];
      const present = firewall.status ?? {};
      if (!jsonEqual(present.messages, messages)) await apply(client, firewall, { messages }, zone, signal);
      if (present.status !== status) await apply(client, firewall, { status }, clusterManager, signal);
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

/** Of the condition of an EgressQoS. */
const conditionType = `Ready-In-Zone-${zone}`;

/** The wanted status of an EgressQoS; undefined: it has another name, and no effect. */
function qosStatus(
  object: EgressQoS,
): (Omit<Condition, 'lastTransitionTime'> & { summary: string }) | undefined {
  const read = qosRules(object);
  if (read === undefined) return undefined;
  const isRight = read.problems.length === 0;
  return {
    type: conditionType,
    status: isRight ? 'True' : 'False',
    reason: isRight ? 'SetupSucceeded' : 'SetupFailed',
    ...outcomeOf('EgressQoS', read.problems),
  };
}

/** Writes the condition and the summary of EgressQoSes, as OVN-Kubernetes does with one zone. Agents mark (`node/egress`). */
export const egressQoSController: ControllerSpec = {
  name: 'egress-qos-controller',
  eventSource: 'servicenet-egress-qos',
  queue: 'egress_qos',
  where: { serves: egressQoSes, work: 'egress QoS' },
  build(loop) {
    const { clients, clock, log } = loop.context;
    const client = clients.for(egressQoSes);
    const objects = loop.cache(egressQoSes);

    loop.on(objects, (change) => (change.kind === 'deleted' ? [] : ownKey(change)));

    return async (key, signal) => {
      const object = objects.cache.get(key);
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
      const wanted = qosStatus(object);
      if (wanted === undefined) {
        log.warn(
          { key, reason: 'IgnoredEgressQoS' },
          'an EgressQoS has no effect unless it is called default',
        );
        return undefined;
      }
      const { summary, ...condition } = wanted;
      const { namespace = '', name = '', resourceVersion } = object.metadata;
      const { conditions = [], status: present } = object.status ?? {};
      const before = conditions.find(({ type }) => type === conditionType);
      const isSame = before?.status === condition.status && before.message === condition.message;
      if (isSame && present === summary) return undefined;
      const lastTransitionTime = transitionTime(conditions, condition, clock.now());
      const others = conditions.filter(({ type }) => type !== conditionType);
      const status = { status: summary, conditions: [...others, { ...condition, lastTransitionTime }] };
      const patch = { metadata: { resourceVersion }, status };
      try {
        await client.mergePatch(namespace, name, patch, { subresource: 'status', signal });
      } catch (error) {
        // The newer version is reconciled again.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
      return undefined;
    };
  },
};
