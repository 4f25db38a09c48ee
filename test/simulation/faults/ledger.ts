import { isIPv6 } from 'node:net';
import { services } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Service } from '../../../src/objects/types/core.generated.ts';
import { addressesOf, mayShare } from './findings/balancing.ts';
import { clusterIPs, nodePorts } from './findings/allocation.ts';
import { keyOf } from './findings/snapshot.ts';
import { Follower } from './follower.ts';

/**
 * Watches over the whole history of Services, beside the hostile network: what two have for a moment only, and a client
 * mends, was given twice all the same.
 */
export class Ledger {
  /** Values that two Services had at one time. */
  readonly twice: string[] = [];
  /** The same of addresses of load balancers. */
  readonly balancedTwice: string[] = [];
  readonly #present = new Map<string, Service>();
  readonly #services = new Follower('/api/v1/services', (object, isGone) => {
    if (services.isObject(object)) this.#note(object, isGone);
  });

  /** Where the cluster is from now on; undefined: nowhere. */
  connect(client: Transport | undefined): void {
    this.#services.connect(client);
  }

  async close(): Promise<void> {
    await this.#services.close();
  }

  #note(service: Service, isGone: boolean): void {
    const key = keyOf(service);
    const before = this.#present.get(key);
    this.#present.delete(key);
    if (isGone) return;
    this.#compare(key, service, before);
    this.#present.set(key, service);
  }

  #compare(key: string, service: Service, before: Service | undefined): void {
    const gained = <T>(valuesOf: (of: Service) => readonly T[]): Set<T> => {
      const old = new Set(before === undefined ? [] : valuesOf(before));
      return new Set(valuesOf(service).filter((value) => !old.has(value)));
    };
    const values = gained(allocated);
    const balanced = gained(addressesOf);
    for (const [other, present] of this.#present) {
      for (const value of allocated(present)) {
        if (values.has(value)) this.twice.push(`${value}: given to ${other} and ${key} at one time`);
      }
      for (const address of addressesOf(present)) {
        if (balanced.has(address) && keeps(present, address) && !mayShare(present, service))
          this.balancedTwice.push(`${address}: given to ${key} while ${other} had it`);
      }
    }
  }
}

function allocated(service: Service): (string | number)[] {
  return [...clusterIPs(service), ...nodePorts(service)];
}

/** Not one that it has for a family that it no longer asks for: its status says so a moment later. */
function keeps({ spec }: Service, address: string): boolean {
  return (spec.ipFamilies ?? ['IPv4']).includes(isIPv6(address) ? 'IPv6' : 'IPv4');
}
