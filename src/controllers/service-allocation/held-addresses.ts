import type { Logger } from 'pino';
import { isAlreadyExists, isNotFound } from '../../client/errors.ts';
import type { Informer } from '../../client/informer.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import { type ObjectKey, splitKey } from '../../objects/key.ts';
import type { Service } from '../../objects/core.generated.ts';
import type { IPAddress } from '../../objects/networking.generated.ts';
import { byService, indexByService, newIPAddress, serviceOf } from './ip-address.ts';

interface HeldAddressesOptions {
  /** Undefined: the server has no IPAddresses. */
  readonly informer: Informer<IPAddress> | undefined;
  readonly client: ResourceClient<IPAddress>;
  readonly services: ResourceClient<Service>;
  readonly log: Logger;
}

/** The IPAddress objects of Services, where the server has them. */
export class HeldAddresses {
  readonly #options: HeldAddressesOptions;

  constructor(options: HeldAddressesOptions) {
    this.#options = options;
    options.informer?.addIndex(byService, indexByService);
  }

  /** The Service that the IPAddress object of an address belongs to, "" for another owner; undefined for no object. */
  readonly ownerOf = (address: string): ObjectKey | undefined => {
    const object = this.#options.informer?.cache.get(address);
    return object === undefined ? undefined : serviceOf(object);
  };

  /** Makes the IPAddress object of an address; false when it is somebody else's. */
  async hold(address: string, key: ObjectKey, signal: AbortSignal): Promise<boolean> {
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
   * Makes the IPAddress objects of a Service be exactly those that it should have. Answers false, with nothing done,
   * when that was to be decided by a version of the Service that is not the present one: of two processes one would
   * undo what the other does, again and again, until it hears of the Service what it heard of the addresses.
   */
  async keep(
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
    if (!(await this.isPresent(key, service, signal))) return false;
    for (const address of missing) await this.hold(address, key, signal);
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

  /** Whether a Service is on the server as the cache has it: of that version, or not there. */
  async isPresent(key: ObjectKey, cached: Service | undefined, signal: AbortSignal): Promise<boolean> {
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
