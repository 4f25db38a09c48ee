import type { Clients } from '../../../../src/client/resource-client.ts';
import { endpoints, services } from '../../../../src/client/resources.ts';
import type { EndpointSubset } from '../../../../src/objects/types/core.generated.ts';
import type { Choices } from '../random.ts';
import { attempt, type Deed, namespace } from './actor.ts';
import { apps } from './services.ts';

export const skipMirrorLabel = 'endpointslice.kubernetes.io/skip-mirror';

/** Users of Services without a selector, whose Endpoints they write by hand. */
export class Mirrored {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #names: string[] = [];
  #count = 0;

  constructor(choices: Choices) {
    this.#choices = choices;
    this.deeds = [
      { weight: 0.08, do: (clients) => this.#create(clients) },
      { weight: 0.08, do: (clients) => this.#edit(clients) },
      { weight: 0.03, do: (clients) => this.#opt(clients) },
      { weight: 0.03, do: (clients) => this.#deleteEndpoints(clients) },
      { weight: 0.03, do: (clients) => this.#deleteService(clients) },
      { weight: 0.02, do: (clients) => this.#giveSelector(clients) },
    ];
  }

  async #create(clients: Clients): Promise<void> {
    const name = `m${++this.#count}`;
    // Headless: it needs no address, whatever is left.
    const spec = { clusterIP: 'None', ports: [{ name: 'http', port: 80, targetPort: 8080 }] };
    await clients.for(services).create({ metadata: { namespace, name }, spec });
    this.#names.push(name);
    if (this.#choices.chance(0.8)) await this.#write(clients, name);
  }

  async #edit(clients: Clients): Promise<void> {
    const name = this.#one();
    if (name === undefined) return;
    const subsets = this.#subsets();
    const edited = await attempt(clients.for(endpoints).mergePatch(namespace, name, { subsets }));
    if (edited === undefined) await this.#write(clients, name);
  }

  async #write(clients: Clients, name: string): Promise<void> {
    const metadata = { namespace, name, labels: { team: this.#choices.pick(apps) } };
    await attempt(clients.for(endpoints).create({ metadata, subsets: this.#subsets() }));
  }

  async #opt(clients: Clients): Promise<void> {
    const name = this.#one();
    if (name === undefined) return;
    const labels = { [skipMirrorLabel]: this.#choices.chance(0.6) ? 'true' : null };
    await attempt(clients.for(endpoints).mergePatch(namespace, name, { metadata: { labels } }));
  }

  async #deleteEndpoints(clients: Clients): Promise<void> {
    const name = this.#one();
    if (name !== undefined) await attempt(clients.for(endpoints).delete(namespace, name));
  }

  async #deleteService(clients: Clients): Promise<void> {
    const [name] = this.#names.splice(this.#choices.below(this.#names.length), 1);
    if (name !== undefined) await attempt(clients.for(services).delete(namespace, name));
  }

  /** From now on its Endpoints are those of its Pods. */
  async #giveSelector(clients: Clients): Promise<void> {
    const [name] = this.#names.splice(this.#choices.below(this.#names.length), 1);
    if (name === undefined) return;
    const spec = { selector: { app: this.#choices.pick(apps) } };
    await attempt(clients.for(services).mergePatch(namespace, name, { spec }));
  }

  #one(): string | undefined {
    return this.#names.length === 0 ? undefined : this.#choices.pick(this.#names);
  }

  #subsets(): EndpointSubset[] {
    const count = this.#choices.below(3);
    return Array.from({ length: count }, (_, i) => ({
      addresses: this.#addresses(1 + this.#choices.below(4)),
      ...(this.#choices.chance(0.3) ? { notReadyAddresses: this.#addresses(1) } : {}),
      // Names of their own: no slice may have two ports of one name, and subsets may have an address in common.
      ports: [{ name: `http-${i}`, port: 8080 + i }],
    }));
  }

  /** No address twice in one subset. */
  #addresses(count: number): { ip: string }[] {
    const base = 1 + this.#choices.below(200);
    return Array.from({ length: count }, (_, i) => ({
      ip: this.#choices.chance(0.7) ? `10.9.${i}.${base}` : `fd00:9::${i}:${base.toString(16)}`,
    }));
  }
}
