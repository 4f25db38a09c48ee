import type { Clients } from '../../../../src/client/resource-client.ts';
import { endpoints, endpointSlices, namespaces, pods, services } from '../../../../src/client/resources.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { keyOf } from '../findings/snapshot.ts';
import type { Choices } from '../random.ts';
import { configMaps } from '../resources.ts';
import { attempt, type Deed } from './actor.ts';

/** Users of namespaces of their own, which are deleted with all that is in them, while it is still written. */
export class Tenants {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #names: string[] = [];
  readonly #deleted = new Set<string>();
  #count = 0;

  constructor(choices: Choices, collects: boolean) {
    this.#choices = choices;
    const often = collects ? 1 : 0;
    this.deeds = [
      { weight: 0.06 * often, do: (clients) => this.#create(clients) },
      { weight: 0.16 * often, do: (clients) => this.#fill(clients) },
      { weight: 0.07 * often, do: (clients) => this.#delete(clients) },
    ];
  }

  async findings(clients: Clients): Promise<string[]> {
    const { items } = await clients.for(namespaces).list();
    const names = new Set(items.map(({ metadata }) => metadata.name ?? ''));
    const left = [...this.#deleted].filter((name) => names.has(name)).map((name) => `${name}: never went`);
    const lost = this.#names.filter((name) => !names.has(name) && !this.#deleted.has(name));
    return [
      ...left,
      ...lost.map((name) => `${name}: went without being deleted`),
      ...(await this.#orphansIn(clients, names)),
    ];
  }

  /** What is left of namespaces that went. */
  async #orphansIn(clients: Clients, names: ReadonlySet<string>): Promise<string[]> {
    if (this.#deleted.size === 0) return [];
    const lists = [services, pods, endpoints, endpointSlices, configMaps].map(async (resource) => {
      const { items } = await clients.for<KubeObject>(resource).list();
      const left = items.filter(({ metadata }) => !names.has(metadata.namespace ?? ''));
      return left.map((object) => `${resource.kind} ${keyOf(object)}: its namespace is gone`);
    });
    return (await Promise.all(lists)).flat();
  }

  async #create(clients: Clients): Promise<void> {
    const name = `tenant-${++this.#count}`;
    await clients.for(namespaces).create({ metadata: { name } });
    this.#names.push(name);
    await this.#fillOne(clients, name);
  }

  async #fill(clients: Clients): Promise<void> {
    if (this.#names.length > 0) await this.#fillOne(clients, this.#choices.pick(this.#names));
  }

  /** Refused, where the namespace goes. */
  async #fillOne(clients: Clients, namespace: string): Promise<void> {
    const name = `t${++this.#count}`;
    const metadata = { namespace, name };
    const ports = [{ port: 80 }];
    switch (this.#choices.below(4)) {
      case 0: {
        const type = this.#choices.pick(['ClusterIP', 'LoadBalancer']);
        await attempt(
          clients.for(services).create({ metadata, spec: { type, selector: { app: 'a' }, ports } }),
        );
        break;
      }
      case 1: {
        const spec = {
          terminationGracePeriodSeconds: 0,
          nodeName: 'n1',
          containers: [{ name: 'c', image: 'i' }],
        };
        await attempt(clients.for(pods).create({ metadata, spec }));
        break;
      }
      case 2: {
        const spec = { clusterIP: 'None', ports };
        await attempt(clients.for(services).create({ metadata, spec }));
        const subsets = [{ addresses: [{ ip: '10.9.9.9' }], ports }];
        await attempt(clients.for(endpoints).create({ metadata, subsets }));
        break;
      }
      default:
        await attempt(clients.for(configMaps).create({ metadata }));
    }
  }

  async #delete(clients: Clients): Promise<void> {
    const standing = this.#names.filter((name) => !this.#deleted.has(name));
    if (standing.length === 0) return;
    const name = this.#choices.pick(standing);
    this.#deleted.add(name);
    await clients.for(namespaces).delete('', name);
  }
}
