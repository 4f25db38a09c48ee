import { Clients } from '../../../src/client/resource-client.ts';
import { nodes } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Deed } from './actors/actor.ts';
import { Balancers } from './actors/balancers.ts';
import { Mirrored } from './actors/mirrored.ts';
import { Owners } from './actors/owners.ts';
import { Pods } from './actors/pods.ts';
import { Ranges } from './actors/ranges.ts';
import { ServiceUsers } from './actors/services.ts';
import { Tenants } from './actors/tenants.ts';
import type { Choices } from './random.ts';
import type { Scene } from './scene.ts';

/** What users do to the cluster, one change after another. */
export class History {
  /** Changes made so far. */
  changes = 0;
  readonly services: ServiceUsers;
  readonly #choices: Choices;
  readonly #balancers: Balancers;
  readonly #owners: Owners;
  readonly #tenants: Tenants;
  readonly #deeds: readonly Deed[];

  constructor(choices: Choices, scene: Scene) {
    this.#choices = choices;
    const isDual = scene.families.length > 1;
    this.services = new ServiceUsers(choices.fork(), scene);
    this.#balancers = new Balancers(choices.fork(), isDual);
    this.#owners = new Owners(choices.fork(), scene.collects);
    this.#tenants = new Tenants(choices.fork(), scene.collects);
    const others = [
      new Pods(choices.fork(), isDual),
      new Mirrored(choices.fork()),
      new Ranges(choices.fork()),
    ];
    const actors = [this.services, this.#balancers, this.#owners, this.#tenants, ...others];
    this.#deeds = actors.flatMap(({ deeds }) => deeds);
  }

  /** What has to be there before controllers run. The kind AddressPool is served already. */
  async begin(client: Transport): Promise<void> {
    const clients = new Clients(client);
    await clients.for(nodes).create({ metadata: { name: 'n1' } });
    await this.#balancers.begin(clients);
    await this.#owners.begin(clients);
  }

  /** One change. */
  async step(client: Transport): Promise<void> {
    this.changes++;
    await this.#choose().do(new Clients(client));
  }

  /** What those who made the changes know to be wrong now. */
  async findings(client: Transport): Promise<string[]> {
    const clients = new Clients(client);
    return [
      ...(await this.#balancers.findings(clients)),
      ...(await this.#owners.findings(clients)),
      ...(await this.#tenants.findings(clients)),
    ];
  }

  #choose(): Deed {
    let left = this.#choices.next() * this.#deeds.reduce((sum, { weight }) => sum + weight, 0);
    const found = this.#deeds.find(({ weight }) => (left -= weight) < 0) ?? this.#deeds[0];
    if (found === undefined) throw new Error('there are no actors');
    return found;
  }
}
