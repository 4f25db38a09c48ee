import { isConflict, isNotFound } from '../../client/errors.ts';
import { egressIPs, nodes as nodesResource } from '../../client/resources.ts';
import {
  assignEgressIPs,
  type EgressAllocation,
  type EgressIPAssignment,
} from '../../network/egress/egress-ip-assignment.ts';
import { egressNodeOf, egressPartsOf } from '../../network/egress/egress-node.ts';
import { parseAddress } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/key.ts';
import type { EgressIP } from '../../objects/types/ovn.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller } from '../../runtime/controller.ts';
import { whereServed } from '../../runtime/where-served.ts';

/** All are looked at together: what one has, no other one gets. */
const all: ObjectKey = 'all';

/** Assigns the addresses of EgressIPs to nodes, in their statuses. */
export const egressIPController: ControllerDefinition = { name: 'egress-ip-controller', start };

function start(context: ControllerContext): readonly Runnable[] {
  const objects = context.informers.informer(egressIPs);
  const nodes = context.informers.informer(nodesResource);
  const client = context.clients.for(egressIPs);
  /** By uid: the Events of the last pass, which are written once. */
  const said = new Map<string, EgressIPAssignment['events']>();

  const write = async (object: EgressIP, items: object, signal: AbortSignal): Promise<void> => {
    const { name = '', resourceVersion } = object.metadata;
    const patch = { metadata: { resourceVersion }, status: { items } };
    try {
      await client.mergePatch('', name, patch, { signal });
    } catch (error) {
      // What is newer comes here again.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  };

  const controller = new Controller({
    name: 'egress_ip',
    context,
    waitFor: [objects, nodes],
    reconcile: async (_key: ObjectKey, signal: AbortSignal) => {
      const known = new Map(
        [...nodes.cache.values()].map((node) => [node.metadata.name ?? '', egressNodeOf(node)]),
      );
      const ordered = [...objects.cache.values()].sort(byAge);
      const allocations = allocationsOf(ordered);
      for (const object of ordered) {
        const { name = '', uid = '' } = object.metadata;
        const present = object.status?.items ?? [];
        const { items, events } = assignEgressIPs(name, object.spec.egressIPs, present, known, allocations);
        for (const { egressIP, node } of items ?? []) allocations.set(egressIP, { object: name, node });
        for (const event of events) {
          if (said.get(uid)?.some((one) => jsonEqual(one, event)) !== true)
            context.events.event(object, 'Warning', event.reason, event.message);
        }
        said.set(uid, events);
        if (items !== undefined && !jsonEqual(items, present)) await write(object, items, signal);
      }
      return undefined;
    },
  });
  const enqueue = (): void => controller.enqueue(all);
  objects.addHandler({
    added: enqueue,
    updated: enqueue,
    deleted: ({ metadata }) => {
      said.delete(metadata.uid ?? '');
      enqueue();
    },
  });
  nodes.addHandler({
    added: enqueue,
    updated: (node, old) => {
      // A heartbeat of the kubelet changes nothing that matters.
      if (!jsonEqual(egressPartsOf(node), egressPartsOf(old))) enqueue();
    },
    deleted: enqueue,
  });
  return [whereServed(context, { resource: egressIPs, work: 'egress addresses', runnables: [controller] })];
}

/** The oldest first. */
function byAge(a: EgressIP, b: EgressIP): number {
  const key = ({ metadata }: EgressIP): string =>
    `${metadata.creationTimestamp ?? ''} ${metadata.name ?? ''}`;
  return key(a) < key(b) ? -1 : 1;
}

/** By canonical address; of two objects that claim one, the older one's. */
function allocationsOf(objects: readonly EgressIP[]): Map<string, EgressAllocation> {
  const allocations = new Map<string, EgressAllocation>();
  for (const { metadata, status } of objects) {
    for (const { egressIP, node } of status?.items ?? []) {
      const address = parseAddress(egressIP)?.canonical;
      if (address !== undefined && !allocations.has(address))
        allocations.set(address, { object: metadata.name ?? '', node });
    }
  }
  return allocations;
}
