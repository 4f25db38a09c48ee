import { isConflict, isNotFound } from '../../client/errors.ts';
import { egressQoSes } from '../../client/resources.ts';
import { qosRules } from '../../network/egress/egress-plan.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Condition } from '../../objects/meta.ts';
import type { EgressQoS } from '../../objects/types/openshift.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller } from '../../runtime/key-loop.ts';
import { whereServed } from '../../runtime/other-implementations.ts';
import { transitionTime } from '../../objects/meta.ts';

/** Of the only zone, which all nodes are (`Ready-In-Zone-<zone>`). */
const conditionType = 'Ready-In-Zone-global';

/** Writes the condition and the summary of EgressQoSes, as OVN-Kubernetes does with one zone. Agents mark (`node/egress`). */
export const egressQoSController: ControllerDefinition = { name: 'egress-qos-controller', start };

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

function start(context: ControllerContext): readonly Runnable[] {
  const informer = context.informers.informer(egressQoSes);
  const client = context.clients.for(egressQoSes);
  const controller = new Controller({
    name: 'egress_qos',
    context,
    waitFor: [informer],
    reconcile: async (key: ObjectKey, signal: AbortSignal) => {
      const object = informer.cache.get(key);
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined;
      const wanted = statusOf(object);
      if (wanted === undefined) {
        context.log.warn(
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
      const lastTransitionTime = transitionTime(conditions, condition, context.clock.now());
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
    },
  });
  const enqueue = (object: EgressQoS): void => controller.enqueue(keyOf(object));
  informer.addHandler({ added: enqueue, updated: enqueue });
  return [whereServed(context, { resource: egressQoSes, work: 'egress QoS', runnables: [controller] })];
}
