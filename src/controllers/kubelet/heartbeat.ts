import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import { leases as leasesResource, nodes as nodesResource } from '../../client/resources.ts';
import { keyOf } from '../../objects/key.ts';
import type { Node } from '../../objects/types/core.generated.ts';
import { formatMicroTime } from '../../objects/time.ts';
import { isDown, isSimulated } from '../nodes/plan.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Controller } from '../../runtime/controller.ts';

const leaseNamespace = 'kube-node-lease';
/** `nodeLeaseDurationSeconds`; renewed four times in that time. */
const leaseSeconds = 40;
const interval = 10_000;

/** Renews the Lease of each simulated node, as kubelet does to show that the node is alive. */
export function heartbeats(context: ControllerContext): Controller {
  const nodes = context.informers.informer(nodesResource);
  const client = context.clients.for(leasesResource);
  const controller = new Controller({
    name: 'node_lease',
    context,
    reconcile: async (name, signal) => {
      const node = nodes.cache.get(name);
      if (node === undefined || !isSimulated(node) || isDown(node)) return undefined;
      const renewTime = formatMicroTime(context.clock.now());
      try {
        await client.mergePatch(leaseNamespace, name, { spec: { renewTime } }, { signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
        try {
          await client.create(
            { metadata: leaseMetadata(node), spec: leaseSpec(name, renewTime) },
            { signal },
          );
        } catch (second) {
          if (!isAlreadyExists(second)) throw second;
        }
      }
      return { requeueAfter: interval };
    },
    waitFor: [nodes],
  });
  nodes.addHandler({
    added: (node) => controller.enqueue(keyOf(node)),
    updated: (node, old) => {
      if (isDown(node) !== isDown(old) || isSimulated(node) !== isSimulated(old))
        controller.enqueue(keyOf(node));
    },
  });
  return controller;
}

function leaseMetadata({ metadata }: Node): Node['metadata'] {
  const { name = '', uid = '' } = metadata;
  return {
    namespace: leaseNamespace,
    name,
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
  };
}

function leaseSpec(holderIdentity: string, renewTime: string): Record<string, string | number> {
  return { holderIdentity, leaseDurationSeconds: leaseSeconds, renewTime };
}
