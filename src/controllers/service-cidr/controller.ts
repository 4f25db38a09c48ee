import { isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { ipAddresses, serviceCIDRs } from '../../client/resources.ts';
import { keyOf, type KubeObject, replacedCondition } from '../../objects/meta.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { IPAddress, ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { ControllerSpec } from '../../runtime/key-loop.ts';
import { type CidrStep, planCidr, serviceCidrFinalizer } from './plan.ts';

const managedByLabel = 'ipaddress.kubernetes.io/managed-by';
const ipAllocator = 'ipallocator.k8s.io';

/** Keeps ServiceCIDRs while addresses need them, by a finalizer (kube-controller-manager's `service-cidr-controller`). */
export const serviceCidrController: ControllerSpec = {
  name: 'service-cidr-controller',
  eventSource: 'service-cidr-controller',
  queue: 'service_cidr',
  build(loop) {
    const { clients, clock, log } = loop.context;
    const cidrs = loop.cache(serviceCIDRs);
    const addresses = loop.cache(ipAddresses);

    /**
     * The uids of ranges whose finalizer we removed: they cover no address any more, although the cache may show them
     * again after a stale list. Never emptied, since ranges are few.
     */
    const released = new Set<string>();
    /** When each deletion was first seen (monotonic), by uid. */
    const deletedAtMs = new Map<string, number>();

    const deleted = (): string[] => [...cidrs.cache.values()].filter(isDeleted).map(keyOf);
    loop.on(cidrs, ({ kind, object }) => {
      if (kind === 'deleted') deletedAtMs.delete(object.metadata.uid ?? '');
      // Another range may have to stay, or may go, because this one came or went.
      return kind === 'updated' ? [keyOf(object)] : [keyOf(object), ...deleted()];
    });
    loop.on(addresses, ({ kind }) => (kind === 'updated' ? [] : deleted()));

    const plan = (cidr: ServiceCIDR, all: Iterable<ServiceCIDR>, used: Iterable<IPAddress>): CidrStep => {
      const nowMs = clock.monotonic();
      const { uid = '' } = cidr.metadata;
      if (isDeleted(cidr) && !deletedAtMs.has(uid)) deletedAtMs.set(uid, nowMs);
      return planCidr({
        cidr,
        cidrs: [...all].filter(({ metadata }) => !released.has(metadata.uid ?? '')),
        addresses: [...used].filter(({ metadata }) => metadata.labels?.[managedByLabel] === ipAllocator),
        deletedForMs: nowMs - (deletedAtMs.get(uid) ?? nowMs),
        time: formatTime(clock.now()),
      });
    };

    const carryOut = async (cidr: ServiceCIDR, step: CidrStep, signal: AbortSignal): Promise<void> => {
      const client = clients.for(serviceCIDRs);
      const { name = '', uid = '', resourceVersion = '', finalizers = [] } = cidr.metadata;
      const setFinalizers = (wanted: readonly string[]): Promise<ServiceCIDR> =>
        client.mergePatch('', name, { metadata: { resourceVersion, finalizers: wanted } }, { signal });
      switch (step.do) {
        case 'add finalizer':
          await setFinalizers([...finalizers, serviceCidrFinalizer]);
          break;
        case 'remove finalizer':
          released.add(uid);
          await setFinalizers(finalizers.filter((each) => each !== serviceCidrFinalizer));
          break;
        case 'set condition': {
          const conditions = replacedCondition(cidr.status.conditions ?? [], step.condition);
          await client.replaceStatus({ ...cidr, status: { ...cidr.status, conditions } }, { signal });
          break;
        }
        case 'nothing':
        case 'wait':
          return;
      }
      log.info({ key: name, step: step.do }, 'service CIDR written');
    };

    return async (key, signal) => {
      const cidr = cidrs.cache.get(key);
      if (cidr === undefined) return undefined;
      let step = plan(cidr, cidrs.cache.values(), addresses.cache.values());
      try {
        // Read from the server: a released range cannot be taken back, and the cache may be behind.
        if (step.do === 'remove finalizer') {
          const present = await listAll(clients.for(serviceCIDRs), signal);
          step = plan(cidr, present, await listAll(clients.for(ipAddresses), signal));
        }
        await carryOut(cidr, step, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return step.do === 'wait' ? { requeueAfterMs: step.milliseconds } : undefined;
    };
  },
};

function isDeleted({ metadata }: ServiceCIDR): boolean {
  return metadata.deletionTimestamp !== undefined;
}

async function listAll<T extends KubeObject>(client: ResourceClient<T>, signal: AbortSignal): Promise<T[]> {
  const all: T[] = [];
  for await (const { items } of client.pages({ signal })) for (const item of items) all.push(item);
  return all;
}
