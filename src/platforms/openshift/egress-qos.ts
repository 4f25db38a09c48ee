import { isConflict, isNotFound } from '../../client/errors.ts';
import { egressQoSes } from '../../client/resources.ts';
import { qosRules } from '../../network/egress/egress-plan.ts';
import { type Condition, transitionTime } from '../../objects/meta.ts';
import type { EgressQoS } from '../../objects/types/openshift.ts';
import { type ControllerSpec, ownKey } from '../../runtime/key-loop.ts';

/** Of the only zone, which all nodes are (`Ready-In-Zone-<zone>`). */
const conditionType = 'Ready-In-Zone-global';

/** The wanted status of an EgressQoS; undefined: it has another name, and no effect. */
function statusOf(
  object: EgressQoS,
): (Omit<Condition, 'lastTransitionTime'> & { summary: string }) | undefined {
  const read = qosRules(object);
  if (read === undefined) return undefined;
  const applied = 'EgressQoS Rules applied';
  const notApplied = 'EgressQoS Rules not correctly applied';
  const type = conditionType;
  return read.problems.length === 0
    ? { type, status: 'True', reason: 'SetupSucceeded', message: applied, summary: applied }
    : {
        ...{ type, status: 'False', reason: 'SetupFailed', summary: notApplied },
        message: `${notApplied}: ${read.problems.join('\n')}`,
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
      const wanted = statusOf(object);
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
