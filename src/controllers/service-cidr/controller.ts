import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { ipAddresses, serviceCIDRs } from '../../client/resources.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { formatTime } from '../../objects/time.ts';
import type { ControllerContext, ControllerDefinition, Runnable } from '../../runtime/context.ts';
import { Controller, type ReconcileResult } from '../../runtime/key-loop.ts';
import { type CidrStep, planCidr, serviceCidrFinalizer } from './plan.ts';
import { replacedCondition } from '../../objects/meta.ts';

const managedByLabel = 'ipaddress.kubernetes.io/managed-by';
const ipAllocator = 'ipallocator.k8s.io';

/** Guards ServiceCIDRs with a finalizer while addresses need them (kube-controller-manager's `service-cidr-controller`). */
export const serviceCidrController: ControllerDefinition = {
  name: 'service-cidr-controller',
  start,
};

function start(context: ControllerContext): readonly Runnable[] {
  const cidrs = context.informers.informer(serviceCIDRs);
  const addresses = context.informers.informer(ipAddresses);
  const client = context.clients.for(serviceCIDRs);
  const addressClient = context.clients.for(ipAddresses);

  /**
   * Released ranges by uid, which no longer cover any address. The cache shows them until their deletion arrives, and a
   * stale list may show them again, so they are never removed from this set. Ranges are few.
   */
  const leaving = new Set<string>();
  /** When the deletion of a ServiceCIDR was first seen (monotonic), by uid. */
  const deletions = new Map<string, number>();

  const deletedFor = ({ metadata: { uid = '', deletionTimestamp } }: ServiceCIDR): number => {
    if (deletionTimestamp === undefined) return 0;
    const now = context.clock.monotonic();
    const seen = deletions.get(uid) ?? now;
    deletions.set(uid, seen);
    return now - seen;
  };

  const carryOut = async (cidr: ServiceCIDR, step: CidrStep, signal: AbortSignal): Promise<void> => {
    const { name = '', resourceVersion = '', finalizers = [] } = cidr.metadata;
    switch (step.do) {
      case 'add finalizer':
        await client.mergePatch(
          '',
          name,
          { metadata: { resourceVersion, finalizers: [...finalizers, serviceCidrFinalizer] } },
          { signal },
        );
        break;
      case 'remove finalizer': {
        leaving.add(cidr.metadata.uid ?? '');
        const left = finalizers.filter((each) => each !== serviceCidrFinalizer);
        await client.mergePatch('', name, { metadata: { resourceVersion, finalizers: left } }, { signal });
        break;
      }
      case 'set condition': {
        const conditions = replacedCondition(cidr.status.conditions ?? [], step.condition);
        await client.replaceStatus({ ...cidr, status: { ...cidr.status, conditions } }, { signal });
        break;
      }
      case 'nothing':
      case 'wait':
        return;
    }
    context.log.info({ key: name, step: step.do }, 'service CIDR written');
  };

  const reconcile = async (key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> => {
    const cidr = cidrs.cache.get(key);
    if (cidr === undefined) return undefined;
    const plan = (all: Iterable<ServiceCIDR>, used: Iterable<IPAddress>): CidrStep =>
      planCidr({
        cidr,
        cidrs: [...all].filter(({ metadata }) => !leaving.has(metadata.uid ?? '')),
        addresses: managed(used),
        deletedFor: deletedFor(cidr),
        time: formatTime(context.clock.now()),
      });
    let step = plan(cidrs.cache.values(), addresses.cache.values());
    try {
      // Live reads: releasing a range cannot be undone, and the cache may be behind.
      if (step.do === 'remove finalizer') {
        const present = await listAll(client, signal);
        step = plan(present, await listAll(addressClient, signal));
      }
      await carryOut(cidr, step, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return step.do === 'wait' ? { requeueAfter: step.milliseconds } : undefined;
  };

  const controller = new Controller({
    name: 'service_cidr',
    context,
    reconcile,
    waitFor: [cidrs, addresses],
  });
  /** A change of a range or address affects only ranges that are being deleted. */
  const wakeDeleted = (): void => {
    for (const cidr of cidrs.cache.values()) {
      if (cidr.metadata.deletionTimestamp !== undefined) controller.enqueue(keyOf(cidr));
    }
  };
  cidrs.addHandler({
    added: (cidr) => {
      controller.enqueue(keyOf(cidr));
      wakeDeleted();
    },
    updated: (cidr) => {
      controller.enqueue(keyOf(cidr));
    },
    deleted: ({ metadata }) => {
      deletions.delete(metadata.uid ?? '');
      wakeDeleted();
    },
  });
  addresses.addHandler({ added: wakeDeleted, deleted: wakeDeleted });
  return [controller];
}

async function listAll<T extends KubeObject>(client: ResourceClient<T>, signal: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for await (const { items } of client.pages({ signal })) for (const item of items) all.push(item);
  return all;
}

function* managed(all: Iterable<IPAddress>): Generator<IPAddress> {
  for (const address of all) if (address.metadata.labels?.[managedByLabel] === ipAllocator) yield address;
}
