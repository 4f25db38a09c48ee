import type { KubeObject } from '../objects/meta.ts';
import { ResourceClient } from './resource-client.ts';
import type { ResourceType } from './resources.ts';
import type { Transport } from './transport.ts';

/** Creates a {@link ResourceClient} of any resource, all on one transport. */
export class Clients {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  for<T extends KubeObject>(resource: ResourceType<T>): ResourceClient<T> {
    return new ResourceClient(this.#transport, resource);
  }
}
