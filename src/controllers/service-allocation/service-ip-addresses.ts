import type { Logger } from 'pino';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informers/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { type ObjectKey, splitKey } from '../../objects/key.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { IPAddress } from '../../objects/types/networking.generated.ts';
import { byService, indexByService, newIPAddress, serviceOf } from './ip-address.ts';

interface ServiceIPAddressesOptions {
  /** Undefined if the server has no IPAddresses. */
  readonly informer: Informer<IPAddress> | undefined;
  readonly client: ResourceClient<IPAddress>;
  readonly services: ResourceClient<Service>;
  readonly log: Logger;
}

/** Creates and deletes the IPAddress objects of Services, if the server has that kind. */
export class ServiceIPAddresses {
  readonly #options: ServiceIPAddressesOptions;

  constructor(options: ServiceIPAddressesOptions) {
    this.#options = options;
    options.informer?.addIndex(byService, indexByService);
  }

  /** The Service that is the parent of an IPAddress object, "" for another parent; undefined if there is no object. */
  readonly ownerOf = (address: string): ObjectKey | undefined => {
    const object = this.#options.informer?.cache.get(address);
    return object === undefined ? undefined : serviceOf(object);
  };

  /** Creates the IPAddress object of an address. False if another parent has it. */
  async create(address: string, key: ObjectKey, signal: AbortSignal): Promise<boolean> {
    const { informer, client } = this.#options;
    if (informer === undefined) return true;
    const owner = this.ownerOf(address);
    if (owner !== undefined) return owner === key;
    try {
      await client.create(newIPAddress(address, key), { signal });
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return serviceOf(await client.get('', address, { signal })) === key;
    }
  }

  /**
   * Creates the missing IPAddress objects of a Service and deletes the others. False, with nothing done, if `service` is not
   * the version on the server: one process would undo the writes of another one until its cache of Services catches up.
   */
  async reconcile(
    key: ObjectKey,
    service: Service | undefined,
    wanted: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { informer, client, log } = this.#options;
    if (informer === undefined) return true;
    const missing = [...wanted].filter((address) => this.ownerOf(address) === undefined);
    const excess = informer.cache
      .byIndex(byService, key)
      .filter(({ metadata }) => !wanted.has(metadata.name ?? ''));
    if (missing.length === 0 && excess.length === 0) return true;
    if (!(await this.isCurrent(key, service, signal))) return false;
    for (const address of missing) await this.create(address, key, signal);
    for (const { metadata } of excess) {
      const { name = '', uid = '' } = metadata;
      try {
        await client.delete('', name, { preconditions: { uid }, signal });
        log.info({ key, address: name }, 'service address released');
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    return true;
  }

  /** Whether the server has the cached version of a Service; for undefined, whether it has none. */
  async isCurrent(key: ObjectKey, cached: Service | undefined, signal: AbortSignal): Promise<boolean> {
    const { namespace, name } = splitKey(key);
    try {
      const { metadata } = await this.#options.services.get(namespace, name, { signal });
      return metadata.resourceVersion === cached?.metadata.resourceVersion;
    } catch (error) {
      if (isNotFound(error)) return cached === undefined;
      throw error;
    }
  }
}
