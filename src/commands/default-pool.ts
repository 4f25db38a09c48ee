import { setTimeout as sleep } from 'node:timers/promises';
import { isAlreadyExists, isNotFound } from '../client/errors.ts';
import { ResourceClient } from '../client/resource-client.ts';
import { services, addressPools, storageClasses } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { folderProvisioner } from '../controllers/persistent-volumes/plan.ts';
import { loadBalancerReadyCondition } from '../network/announcing/assigned-addresses.ts';
import type { Service } from '../objects/types/core.generated.ts';
import definitions from './definitions.generated.json' with { type: 'json' };
import { applyObjects } from './apply.ts';

/** The time between checks of a condition that is expected soon. */
const checkMs = 20;
/** A new kind must be served within this time. */
const establishTimeoutMs = 10_000;

/**
 * Defines AddressPools and BGPPeers and, if addresses are given, makes the pool `default` of them. A pool of that name which is
 * there already (`--data-dir`) is its owner's, and stays as it is.
 * @returns the addresses of the pool that was made.
 */
export async function offerAddresses(
  client: Transport,
  addresses: readonly string[],
): Promise<readonly string[]> {
  await applyObjects(client, definitions);
  if (addresses.length === 0) return [];
  // The LAN of the cluster network: simulated nodes answer there for addresses that are in none of its subnets.
  const announce = { layer2: { interfaces: ['eth0'] } };
  const pool = {
    metadata: { name: 'default' },
    spec: { addresses: [...addresses], avoidFirstLast: true, announce },
  };
  const deadline = performance.now() + establishTimeoutMs;
  for (;;) {
    try {
      await new ResourceClient(client, addressPools).create(pool);
      return addresses;
    } catch (error) {
      if (isAlreadyExists(error)) return [];
      // A new kind is served shortly after its definition is stored.
      if (!isNotFound(error) || performance.now() > deadline) throw error;
      await sleep(checkMs);
    }
  }
}

/** Makes the default StorageClass `standard`; one that is there already (`--data-dir`) is its owner's, and stays as it is. */
export async function offerStorage(client: Transport): Promise<void> {
  const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  try {
    await new ResourceClient(client, storageClasses).create({
      metadata: { name: 'standard', annotations },
      provisioner: folderProvisioner,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
    });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/**
 * Waits until every Service of type LoadBalancer has its addresses, or a condition with the reason why not; at most
 * for `timeoutMs`.
 */
export async function untilServed(client: Transport, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const { items } = await new ResourceClient(client, services).list();
    if (!items.some(isPending) || performance.now() > deadline) return;
    await sleep(checkMs);
  }
}

function isPending(service: Service): boolean {
  const { type, loadBalancerClass } = service.spec;
  if (type !== 'LoadBalancer' || loadBalancerClass !== undefined) return false;
  return (
    (service.status.loadBalancer?.ingress ?? []).length === 0 &&
    loadBalancerReadyCondition(service)?.status !== 'False'
  );
}
