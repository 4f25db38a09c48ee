import type { Clients } from '../../../../src/client/resource-client.ts';
import { pods } from '../../../../src/client/resources.ts';
import type { Choices } from '../random.ts';
import { type Deed, namespace } from './actor.ts';
import { apps } from './services.ts';

/** Pods that come, become ready or not, and go, as a kubelet shows them. */
export class Pods {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #isDual: boolean;
  readonly #names: string[] = [];
  #count = 0;

  constructor(choices: Choices, isDual: boolean) {
    this.#choices = choices;
    this.#isDual = isDual;
    this.deeds = [
      { weight: 0.25, do: (clients) => this.#create(clients) },
      { weight: 0.1, do: (clients) => this.#change(clients) },
      { weight: 0.07, do: (clients) => this.#delete(clients) },
      { weight: 0.05, do: (clients) => this.#relabel(clients) },
    ];
  }

  async #create(clients: Clients): Promise<void> {
    const number = ++this.#count;
    const name = `p${number}`;
    this.#names.push(name);
    const ip = `10.0.${number >> 8}.${number & 255}`;
    const pod = await clients.for(pods).create({
      metadata: { namespace, name, labels: { app: this.#choices.pick(apps) } },
      spec: { terminationGracePeriodSeconds: 0, nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    });
    const status = {
      ...pod.status,
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }, ...(this.#isDual ? [{ ip: `fd00:1::${number.toString(16)}` }] : [])],
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    await clients.for(pods).replaceStatus({ ...pod, status });
  }

  async #change(clients: Clients): Promise<void> {
    if (this.#names.length === 0) return;
    const name = this.#choices.pick(this.#names);
    const status = this.#choices.chance(0.5) ? 'True' : 'False';
    const change = { status: { conditions: [{ type: 'Ready', status }] } };
    await clients.for(pods).mergePatch(namespace, name, change, { subresource: 'status' });
  }

  /** From now on other Services have it, and those that had it have it no more. */
  async #relabel(clients: Clients): Promise<void> {
    if (this.#names.length === 0) return;
    const labels = { app: this.#choices.pick(apps) };
    await clients.for(pods).mergePatch(namespace, this.#choices.pick(this.#names), { metadata: { labels } });
  }

  async #delete(clients: Clients): Promise<void> {
    const [name] = this.#names.splice(this.#choices.below(this.#names.length), 1);
    if (name !== undefined) await clients.for(pods).delete(namespace, name, { gracePeriodSeconds: 0 });
  }
}
