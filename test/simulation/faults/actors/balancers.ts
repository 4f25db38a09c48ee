import type { Clients } from '../../../../src/client/resource-client.ts';
import { services } from '../../../../src/client/resources.ts';
import { addressPools } from '../../../../src/client/resources.ts';
import type { Choices } from '../random.ts';
import { attempt, type Deed, namespace } from './actor.ts';
import { foreignClass } from './services.ts';

/** What the pool `pool` has: few enough to be full now and then. */
const pools = {
  IPv4: ['192.0.2.0/30', '192.0.2.0/29', '192.0.2.4/30'],
  IPv6: ['2001:db8::/126', '2001:db8::/125', '2001:db8::4/126'],
};
/** Where the addresses of the other load balancer are: in no pool. */
export const foreignAddress = '203.0.113.';

/** Who changes pools, and another load balancer with a class of its own, which errs now and then. */
export class Balancers {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #isDual: boolean;
  /** What the other load balancer wrote last, by Service. */
  readonly #written = new Map<string, string>();

  constructor(choices: Choices, isDual: boolean) {
    this.#choices = choices;
    this.#isDual = isDual;
    this.deeds = [
      { weight: 0.05, do: (clients) => this.#changePool(clients) },
      { weight: 0.07, do: (clients) => this.#serve(clients) },
      { weight: 0.03, do: (clients) => this.#overwrite(clients) },
    ];
  }

  /** What has to be there first: a pool for all, and a small one for those who name it. */
  async begin(clients: Clients): Promise<void> {
    const { pool, reserved } = handoverPools;
    const shrinkPolicy = this.#choices.chance(0.4) ? 'Reassign' : 'Retain';
    await clients
      .for(addressPools)
      .create({ metadata: { name: pool }, spec: { addresses: this.#addresses(0), shrinkPolicy } });
    await clients.for(addressPools).create({
      metadata: { name: reserved },
      spec: { addresses: ['198.51.100.0/32', '2001:db8:1::/128'], autoAssign: false },
    });
  }

  /** What another client did to the Services of the other load balancer. */
  async findings(clients: Clients): Promise<string[]> {
    const { items } = await clients.for(services).list({ namespace });
    return items.flatMap(({ metadata: { name = '', uid = '' }, spec, status }) => {
      const written = this.#written.get(uid);
      if (written === undefined || spec.loadBalancerClass !== foreignClass) return [];
      const present = (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
      return present === written
        ? []
        : [`${name}: its own load balancer gave it ${written}, it has ${present}`];
    });
  }

  async #changePool(clients: Clients): Promise<void> {
    const spec = { addresses: this.#addresses(this.#choices.below(3)) };
    await clients.for(addressPools).mergePatch('', handoverPools.pool, { spec });
  }

  #addresses(first: number): string[] {
    const v4 = pools.IPv4[first] ?? '';
    return this.#isDual ? [v4, this.#choices.pick(pools.IPv6)] : [v4];
  }

  /** The other load balancer gives an address to a Service of its class. */
  async #serve(clients: Clients): Promise<void> {
    const { items } = await clients.for(services).list({ namespace });
    const own = items.filter(({ spec }) => spec.loadBalancerClass === foreignClass);
    if (own.length === 0) return;
    const { metadata } = this.#choices.pick(own);
    const ip = `${foreignAddress}${this.#choices.below(250)}`;
    const status = { loadBalancer: { ingress: [{ ip }] } };
    const { name = '' } = metadata;
    const options = { subresource: 'status' };
    if (await attempt(clients.for(services).mergePatch(namespace, name, { status }, options)))
      this.#written.set(metadata.uid ?? '', ip);
  }

  /** The other load balancer writes over the status of a Service without a class: no rule keeps it from doing so. */
  async #overwrite(clients: Clients): Promise<void> {
    const { items } = await clients.for(services).list({ namespace });
    const others = items.filter(
      ({ spec }) => spec.type === 'LoadBalancer' && spec.loadBalancerClass === undefined,
    );
    if (others.length === 0) return;
    const { name = '' } = this.#choices.pick(others).metadata;
    const ingress = [{ ip: `${foreignAddress}${this.#choices.below(250)}` }];
    const conditions = this.#choices.chance(0.3) ? { conditions: null } : {};
    const status = { loadBalancer: { ingress }, ...conditions };
    await attempt(clients.for(services).mergePatch(namespace, name, { status }, { subresource: 'status' }));
  }
}

/** The pool for all, and the one that gives no address unasked. */
export const handoverPools = { pool: 'pool', reserved: 'reserved' };
