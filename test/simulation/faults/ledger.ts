import { isIPv6 } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isKubeObject, services } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { isRecord } from '../../../src/objects/json.ts';
import type { Service } from '../../../src/objects/service.ts';
import { addressesOf } from './findings/balancing.ts';
import { clusterIPs, nodePorts } from './findings/allocation.ts';
import { keyOf } from './findings/snapshot.ts';

/**
 * Watches over the whole history of Services, beside the hostile network: what two have for a moment only, and somebody
 * mends, was given twice all the same.
 */
export class Ledger {
  /** Values that two Services had at one time. */
  readonly twice: string[] = [];
  /** The same of addresses of load balancers. */
  readonly balancedTwice: string[] = [];
  readonly #present = new Map<string, Service>();
  readonly #end = new AbortController();
  #client: Transport | undefined;
  #revision = '0';
  readonly #following: Promise<void>;

  constructor() {
    this.#following = this.#follow();
  }

  /** Where the cluster is from now on; undefined: nowhere. */
  connect(client: Transport | undefined): void {
    this.#client = client;
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        if (this.#client !== undefined) await this.#read(this.#client);
      } catch {
        // The server went: the watch goes on from where it was.
      }
      await sleep(2);
    }
  }

  async #read(client: Transport): Promise<void> {
    const query = { watch: true, resourceVersion: this.#revision };
    const { signal } = this.#end;
    const { chunks } = await client.stream('/api/v1/services', { query, signal });
    let rest = '';
    for await (const chunk of chunks) {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#note(JSON.parse(line));
    }
  }

  #note(event: unknown): void {
    if (!isRecord(event) || !isKubeObject(event['object']) || !services.isObject(event['object'])) return;
    const service = event['object'];
    this.#revision = service.metadata.resourceVersion ?? this.#revision;
    const key = keyOf(service);
    const before = this.#present.get(key);
    this.#present.delete(key);
    if (event['type'] === 'DELETED') return;
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
        if (balanced.has(address) && keeps(present, address))
          this.balancedTwice.push(`${address}: given to ${key} while ${other} had it`);
      }
    }
  }
}

function allocated(service: Service): (string | number)[] {
  return [...clusterIPs(service), ...nodePorts(service)];
}

/** Not one that is going, or that asks for something else by now: its status says so a moment later. */
function keeps({ metadata, spec }: Service, address: string): boolean {
  const families = spec.ipFamilies ?? ['IPv4'];
  return (
    metadata.deletionTimestamp === undefined &&
    spec.type === 'LoadBalancer' &&
    families.includes(isIPv6(address) ? 'IPv6' : 'IPv4')
  );
}
