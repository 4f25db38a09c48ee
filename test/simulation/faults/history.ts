import { Clients } from '../../../src/client/clients.ts';
import { isNotFound } from '../../../src/client/errors.ts';
import { pods, services } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import { addressPools } from '../../../src/controllers/load-balancer/resource.ts';
import type { ServiceSpec } from '../../../src/objects/service.ts';
import { StatusError } from '../../../src/objects/status.ts';
import type { Choices } from './random.ts';

const namespace = 'default';
const apps = ['a', 'b', 'c'];
const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'];
/** What the pool `pool` has: few enough to be full now and then. */
const pools = ['192.0.2.0/30', '192.0.2.0/29', '192.0.2.4/30'];

/** What users do to the cluster: Services, Pods and pools that come, change and go. Names are never used twice. */
export class History {
  /** Changes made so far. */
  changes = 0;
  readonly #choices: Choices;
  readonly #services: string[] = [];
  readonly #pods: string[] = [];
  /** Node ports that Services were given when they were made. */
  readonly #ports = new Set<number>();
  #count = 0;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  /** One change. */
  async step(client: Transport): Promise<void> {
    const clients = new Clients(client);
    const roll = this.#choices.next();
    this.changes++;
    if (roll < 0.3 || this.#services.length === 0) await this.#createService(clients);
    else if (roll < 0.55 || this.#pods.length === 0) await this.#createPod(clients);
    else if (roll < 0.65) await this.#changePod(clients);
    else if (roll < 0.72) await this.#deletePod(clients);
    else if (roll < 0.88) await this.#changeService(clients);
    else if (roll < 0.95) await this.#deleteService(clients);
    else await this.#changePool(clients);
  }

  /** Node ports that were given once, that nobody has, and that are refused all the same. */
  async lostPorts(client: Transport): Promise<string[]> {
    const resource = new Clients(client).for(services);
    const { items } = await resource.list();
    for (const { spec } of items) {
      for (const { nodePort = 0 } of spec.ports ?? []) this.#ports.delete(nodePort);
      this.#ports.delete(spec.healthCheckNodePort ?? 0);
    }
    const lost: string[] = [];
    for (const nodePort of [...this.#ports].slice(0, 3)) {
      const metadata = { namespace, name: 'probe' };
      const probe = { metadata, spec: { type: 'NodePort', ports: [{ port: 80, nodePort }] } };
      try {
        const { metadata: made } = await resource.create(probe);
        await resource.delete(namespace, made.name ?? '');
      } catch (error) {
        lost.push(`${nodePort}: nobody has it, and it is refused: ${String(error)}`);
      }
    }
    return lost;
  }

  async #createService(clients: Clients): Promise<void> {
    const name = `s${++this.#count}`;
    this.#services.push(name);
    const type = this.#choices.pick(types);
    const headless = type === 'ClusterIP' && this.#choices.chance(0.2) ? { clusterIP: 'None' } : {};
    const spec: ServiceSpec = {
      type,
      selector: { app: this.#choices.pick(apps) },
      ports: [{ name: 'http', port: 80, targetPort: 8080 }],
      ...headless,
    };
    const made = await clients.for(services).create({ metadata: { namespace, name }, spec });
    for (const { nodePort = 0 } of made.spec.ports ?? []) if (nodePort > 0) this.#ports.add(nodePort);
  }

  async #changeService(clients: Clients): Promise<void> {
    const name = this.#choices.pick(this.#services);
    const spec = this.#choices.chance(0.5)
      ? { selector: { app: this.#choices.pick(apps) } }
      : { type: this.#choices.pick(types) };
    try {
      await clients.for(services).mergePatch(namespace, name, { spec });
    } catch (error) {
      // A headless Service cannot become another type; one that waits for its finalizer may be gone by now.
      if (!isNotFound(error) && !(error instanceof StatusError && error.code === 422)) throw error;
    }
  }

  async #deleteService(clients: Clients): Promise<void> {
    const [name = ''] = this.#services.splice(this.#choices.below(this.#services.length), 1);
    await clients.for(services).delete(namespace, name);
  }

  async #createPod(clients: Clients): Promise<void> {
    const number = ++this.#count;
    const name = `p${number}`;
    this.#pods.push(name);
    const ip = `10.0.${number >> 8}.${number & 255}`;
    const pod = await clients.for(pods).create({
      metadata: { namespace, name, labels: { app: this.#choices.pick(apps) } },
      spec: { terminationGracePeriodSeconds: 0, nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    });
    const status = {
      ...pod.status,
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    await clients.for(pods).replaceStatus({ ...pod, status });
  }

  async #changePod(clients: Clients): Promise<void> {
    const name = this.#choices.pick(this.#pods);
    const status = this.#choices.chance(0.5) ? 'True' : 'False';
    const change = { status: { conditions: [{ type: 'Ready', status }] } };
    await clients.for(pods).mergePatch(namespace, name, change, { subresource: 'status' });
  }

  async #deletePod(clients: Clients): Promise<void> {
    const [name = ''] = this.#pods.splice(this.#choices.below(this.#pods.length), 1);
    await clients.for(pods).delete(namespace, name, { gracePeriodSeconds: 0 });
  }

  async #changePool(clients: Clients): Promise<void> {
    const spec = { addresses: [this.#choices.pick(pools)] };
    await clients.for(addressPools).mergePatch('', 'pool', { spec });
  }
}

/** What has to be there first: a Node and a pool. The kind AddressPool is served already. */
export async function beginHistory(client: Transport): Promise<void> {
  await client.request('POST', '/api/v1/nodes', {
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } },
  });
  await new Clients(client)
    .for(addressPools)
    .create({ metadata: { name: 'pool' }, spec: { addresses: ['192.0.2.0/30'] } });
}
