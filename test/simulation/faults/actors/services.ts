import type { Clients } from '../../../../src/client/resource-client.ts';
import { services } from '../../../../src/client/resources.ts';
import type { Service, ServiceSpec } from '../../../../src/objects/types/core.generated.ts';
import type { Choices } from '../random.ts';
import type { Scene } from '../scene.ts';
import { attempt, type Deed, namespace } from './actor.ts';

export const apps = ['a', 'b', 'c'];
const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'];
const policies = ['SingleStack', 'PreferDualStack', 'RequireDualStack'];
const claimAnnotation = 'servicenet.dev/allocation-claim';
export const sharingAnnotation = 'servicenet.dev/sharing-key';
const sharingKeys = ['blue', 'green'];
const frontPorts = [80, 81, 82];
export const foreignClass = 'example.com/other';

/** Users of Services with a selector. */
export class ServiceUsers {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #scene: Scene;
  readonly #names: string[] = [];
  /** Those that were made with a sharing key. */
  readonly #sharing: string[] = [];
  /** Node ports that Services were given when they were made. */
  readonly #ports = new Set<number>();
  #count = 0;

  constructor(choices: Choices, scene: Scene) {
    this.#choices = choices;
    this.#scene = scene;
    const isDual = scene.families.length > 1;
    this.deeds = [
      { weight: 0.26, do: (clients) => this.#create(clients) },
      { weight: 0.14, do: (clients) => this.#change(clients) },
      { weight: 0.06, do: (clients) => this.#delete(clients) },
      { weight: 0.03, do: (clients) => this.#replace(clients) },
      { weight: 0.05, do: (clients) => this.#share(clients) },
      { weight: 0.06, do: (clients) => this.#changePort(clients) },
      { weight: isDual ? 0.1 : 0, do: (clients) => this.#changeFamilies(clients) },
      { weight: scene.allocation === 'controller' ? 0.08 : 0, do: (clients) => this.#claimTwice(clients) },
    ];
  }

  /** A Service of type LoadBalancer, which may ask for a pool by name. Answers its name. */
  async createBalanced(clients: Clients, pool?: string): Promise<string> {
    const name = this.#newName();
    const annotations = pool === undefined ? {} : { 'servicenet.dev/pool': pool };
    await this.#make(clients, name, { type: 'LoadBalancer' }, annotations);
    return name;
  }

  /** Node ports that were given once, are free, and are refused all the same. */
  async lostPorts(clients: Clients): Promise<string[]> {
    const resource = clients.for(services);
    const { items } = await resource.list();
    for (const { spec } of items) {
      for (const { nodePort = 0 } of spec.ports ?? []) this.#ports.delete(nodePort);
      this.#ports.delete(spec.healthCheckNodePort ?? 0);
    }
    const lost: string[] = [];
    for (const nodePort of [...this.#ports].slice(0, 3)) {
      // Headless would need no address, but has no node port: where addresses are out, none is left for a probe.
      const probe = {
        metadata: { namespace, name: 'probe' },
        spec: { type: 'NodePort', ports: [{ port: 80, nodePort }] },
      };
      try {
        const { metadata: made } = await resource.create(probe);
        await resource.delete(namespace, made.name ?? '');
      } catch (error) {
        const said = String(error);
        if (!said.includes('range is full')) lost.push(`${nodePort}: it is free, and refused: ${said}`);
      }
    }
    return lost;
  }

  async #create(clients: Clients): Promise<void> {
    await this.#make(clients, this.#newName(), this.#newSpec());
  }

  #newSpec(): Partial<ServiceSpec> {
    const type = this.#choices.pick(types);
    const isHeadless = type === 'ClusterIP' && this.#choices.chance(0.2);
    const isDual = this.#scene.families.length > 1;
    return {
      type,
      ...(isHeadless ? { clusterIP: 'None' } : {}),
      ...(isDual && this.#choices.chance(0.6) ? { ipFamilyPolicy: this.#choices.pick(policies) } : {}),
      ...(isDual && this.#choices.chance(0.3)
        ? { ipFamilies: [this.#choices.pick(this.#scene.families)] }
        : {}),
      ...(type === 'LoadBalancer' && this.#choices.chance(0.15) ? { loadBalancerClass: foreignClass } : {}),
    };
  }

  async #make(
    clients: Clients,
    name: string,
    changes: Partial<ServiceSpec>,
    annotations: Record<string, string> = {},
  ): Promise<void> {
    const spec: ServiceSpec = {
      selector: { app: this.#choices.pick(apps) },
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
      ...changes,
    };
    const metadata = { namespace, name, annotations };
    const made: Service | undefined = await attempt(clients.for(services).create({ metadata, spec }));
    if (made === undefined) return;
    this.#names.push(name);
    for (const { nodePort = 0 } of made.spec.ports ?? []) if (nodePort > 0) this.#ports.add(nodePort);
  }

  async #change(clients: Clients): Promise<void> {
    const spec = this.#choices.chance(0.5)
      ? { selector: { app: this.#choices.pick(apps) } }
      : { type: this.#choices.pick(types) };
    await this.#patch(clients, spec);
  }

  /** To one family or two: with one, the second address is given back. */
  async #changeFamilies(clients: Clients): Promise<void> {
    const ipFamilyPolicy = this.#choices.pick(policies);
    const families = [...this.#scene.families];
    await this.#patch(clients, {
      ipFamilyPolicy,
      ...(ipFamilyPolicy === 'RequireDualStack' && this.#choices.chance(0.3) ? { ipFamilies: families } : {}),
    });
  }

  async #patch(clients: Clients, spec: Partial<ServiceSpec>): Promise<void> {
    if (this.#names.length === 0) return;
    // A headless Service cannot become another type; one that waits for its finalizer may be gone by now.
    const name = this.#choices.pick(this.#names);
    await attempt(clients.for(services).mergePatch(namespace, name, { spec }));
  }

  async #delete(clients: Clients): Promise<void> {
    await this.#deleteOne(clients);
  }

  async #deleteOne(clients: Clients): Promise<string | undefined> {
    const [name] = this.#names.splice(this.#choices.below(this.#names.length), 1);
    if (name !== undefined) await attempt(clients.for(services).delete(namespace, name));
    return name;
  }

  /** Another Service of the same name, at once: what belongs to the one before must not count for it. */
  async #replace(clients: Clients): Promise<void> {
    const name = await this.#deleteOne(clients);
    if (name !== undefined) await this.#make(clients, name, this.#newSpec());
  }

  /** Services that may have one address together, as far as their ports differ. */
  async #share(clients: Clients): Promise<void> {
    const annotations = { [sharingAnnotation]: this.#choices.pick(sharingKeys) };
    for (let left = 2; left > 0; left--) {
      const name = this.#newName();
      const ports = [{ name: 'http', port: this.#choices.pick(frontPorts), targetPort: 8080 }];
      await this.#make(clients, name, { type: 'LoadBalancer', ports }, annotations);
      this.#sharing.push(name);
    }
  }

  /** To a port that another sharer of its address may serve. */
  async #changePort(clients: Clients): Promise<void> {
    if (this.#sharing.length === 0) return;
    const change = {
      op: 'replace',
      path: '/spec/ports/0/port',
      value: this.#choices.pick(frontPorts),
    } as const;
    await attempt(clients.for(services).jsonPatch(namespace, this.#choices.pick(this.#sharing), [change]));
  }

  /** Two Services that claim one address or one port, which may be taken already: one of the two gets it at most. */
  async #claimTwice(clients: Clients): Promise<void> {
    const { families, nodePorts } = this.#scene;
    const isSame = this.#choices.chance(0.4);
    const first = 2 + this.#choices.below(11);
    const port = nodePorts.first + this.#choices.below(12);
    for (const number of [first, isSame ? first : first + 1]) {
      const address = families[0] === 'IPv6' ? `fd00:96::${number.toString(16)}` : `10.96.0.${number}`;
      const type = isSame ? this.#choices.pick(['ClusterIP', 'NodePort']) : 'NodePort';
      const claim = type === 'ClusterIP' ? address : `${address},${port}`;
      await this.#make(clients, this.#newName(), { type }, { [claimAnnotation]: claim });
    }
  }

  #newName(): string {
    return `s${++this.#count}`;
  }
}
