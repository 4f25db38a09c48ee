import type { CacheHandler } from '../client/informers/cache.ts';
import type { Clock } from '../client/clock.ts';
import type { Informer, Informers } from '../client/informers/informer.ts';
import { endpointSlices, namespaces, pods, services } from '../client/resources.ts';
import { Zone, type ZoneOptions } from '../network/dns/zone.ts';
import { keyOf } from '../objects/key.ts';
import type { KubeObject } from '../objects/meta.ts';

/** Follows the objects that names depend on, and keeps the zone. */
export class ZoneView {
  readonly zone: Zone;
  readonly #sources: readonly Informer<KubeObject>[];

  /** @param informers without selectors: kube-proxy's leave out the slices of headless Services. */
  constructor(informers: Informers, clock: Clock, options: ZoneOptions) {
    const zone = new Zone(options);
    this.zone = zone;
    const follow = <T extends KubeObject>(
      informer: Informer<T>,
      set: (key: string, object: T | undefined) => void,
    ): Informer<T> => {
      const change = (object: T, now: T | undefined): void => {
        set(keyOf(object), now);
        zone.serial = Math.floor(clock.now() / 1000);
      };
      const handler: CacheHandler<T> = {
        added: (object) => change(object, object),
        updated: (object) => change(object, object),
        deleted: (object) => change(object, undefined),
      };
      informer.addHandler(handler);
      return informer;
    };
    this.#sources = [
      follow(informers.informer(namespaces), (name, namespace) =>
        zone.setNamespace(name, namespace !== undefined),
      ),
      follow(informers.informer(services), (key, service) => zone.setService(key, service)),
      follow(informers.informer(endpointSlices), (key, slice) => zone.setSlice(key, slice)),
      ...(options.pods === 'verified'
        ? [follow(informers.informer(pods), (key, pod) => zone.setPod(key, pod))]
        : []),
    ];
  }

  /** Whether all that the API server has is in the zone. Never turns false again. */
  get hasSynced(): boolean {
    return this.#sources.every((source) => source.hasSynced);
  }

  /** Resolves true when synced, false when the signal aborts first. */
  async synced(signal: AbortSignal): Promise<boolean> {
    await Promise.all(this.#sources.map((source) => source.synced(signal)));
    return this.hasSynced;
  }
}
