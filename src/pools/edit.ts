import { addressPools, bgpPeers } from '../client/resources.ts';
import type { KubeObject } from '../objects/meta.ts';
import { isDNS1123Subdomain } from '../objects/names.ts';
import { formatTime } from '../objects/formats/time.ts';
import type { AddressPool } from '../objects/types/servicenet.ts';

/**
 * The AddressPools of a file. BGPPeers, which an import prints beside its pools, assign nothing.
 *
 * @throws {Error} naming the file, for any other object and for one without a name that is valid.
 */
export function poolsAmong(objects: readonly KubeObject[], file: string): AddressPool[] {
  return objects.flatMap((object) => {
    if (object.kind === bgpPeers.kind) return [];
    const { name = '' } = object.metadata;
    if (object.kind !== addressPools.kind || !addressPools.isObject(object)) {
      throw new Error(`${file}: ${object.kind ?? 'an object'} ${name} is not an AddressPool`);
    }
    const [wrong] = name === '' ? ['it has no name'] : isDNS1123Subdomain(name);
    if (wrong !== undefined) throw new Error(`${file}: AddressPool ${JSON.stringify(name)}: ${wrong}`);
    return [object];
  });
}

/**
 * The pools after an edit. A changed pool keeps its age, a new one is the youngest: the older pool has precedence in an
 * overlap.
 *
 * @param deleted names.
 * @throws {Error} where there is no pool of such a name.
 */
export function editPools(
  present: readonly AddressPool[],
  changed: readonly AddressPool[],
  deleted: readonly string[],
  now: number,
): AddressPool[] {
  const pools = new Map(present.map((pool) => [pool.metadata.name ?? '', pool]));
  for (const name of deleted) {
    if (!pools.delete(name)) throw new Error(`there is no AddressPool ${name} to delete`);
  }
  for (const pool of changed) {
    const { name = '' } = pool.metadata;
    const creationTimestamp = pools.get(name)?.metadata.creationTimestamp ?? formatTime(now);
    pools.set(name, { ...pool, metadata: { ...pool.metadata, creationTimestamp } });
  }
  return [...pools.values()];
}
