import type { Clients } from '../../../../src/client/resource-client.ts';
import { ipAddresses, serviceCIDRs } from '../../../../src/client/resources.ts';
import type { Choices } from '../random.ts';
import { attempt, type Deed } from './actor.ts';

/** Who adds ranges of Service addresses and takes them away, and who takes an address for something else. */
export class Ranges {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #names: string[] = [];
  readonly #taken: string[] = [];
  #count = 0;

  constructor(choices: Choices) {
    this.#choices = choices;
    this.deeds = [
      { weight: 0.06, do: (clients) => this.#create(clients) },
      { weight: 0.06, do: (clients) => this.#delete(clients) },
      { weight: 0.02, do: (clients) => this.#take(clients) },
      { weight: 0.02, do: (clients) => this.#giveBack(clients) },
    ];
  }

  async #create(clients: Clients): Promise<void> {
    const name = `range-${++this.#count}`;
    // Two of them may overlap: then either may go.
    const cidr = `10.97.${this.#choices.below(2)}.0/2${this.#choices.chance(0.5) ? 8 : 9}`;
    await clients.for(serviceCIDRs).create({ metadata: { name }, spec: { cidrs: [cidr] } });
    this.#names.push(name);
  }

  /** Only where it is guarded: before that a range goes at once, used or not. */
  async #delete(clients: Clients): Promise<void> {
    const [name] = this.#names.splice(this.#choices.below(this.#names.length), 1);
    if (name === undefined) return;
    const { metadata } = await clients.for(serviceCIDRs).get('', name);
    if ((metadata.finalizers ?? []).length > 0) await clients.for(serviceCIDRs).delete('', name);
    else this.#names.push(name);
  }

  /** An address of something that is no Service, if it is free. */
  async #take(clients: Clients): Promise<void> {
    const name = `10.96.0.${2 + this.#choices.below(12)}`;
    const parentRef = {
      group: 'gateway.networking.k8s.io',
      resource: 'gateways',
      namespace: 'default',
      name: 'g',
    };
    const made = await attempt(clients.for(ipAddresses).create({ metadata: { name }, spec: { parentRef } }));
    if (made !== undefined) this.#taken.push(name);
  }

  async #giveBack(clients: Clients): Promise<void> {
    const [name] = this.#taken.splice(this.#choices.below(this.#taken.length), 1);
    if (name !== undefined) await attempt(clients.for(ipAddresses).delete('', name));
  }
}
