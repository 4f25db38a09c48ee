import { isNotFound } from '../client/errors.ts';
import type { Informer } from '../client/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import type { Pod } from '../objects/core.generated.ts';
import { keyOf } from '../objects/key.ts';

/** Milliseconds that a client Pod has to run. */
const patience = 30_000;

/** Pods for programs of `servicenet run`: real objects, so that policies and Services treat them as any Pod. */
export class ClientPods {
  readonly #client: ResourceClient<Pod>;
  readonly #pods: Informer<Pod>;
  /** By uid. */
  readonly #made = new Map<string, Pod>();

  constructor(client: ResourceClient<Pod>, pods: Informer<Pod>) {
    this.#client = client;
    this.#pods = pods;
  }

  /** Makes a Pod without ports. @returns it once it runs. @throws {Error} of the API server, or after 30 s. */
  async create(namespace: string): Promise<Pod> {
    const pod = await this.#client.create({
      metadata: { namespace, generateName: 'run-', labels: { 'app.kubernetes.io/name': 'servicenet-run' } },
      spec: { containers: [{ name: 'client', image: 'servicenet' }], terminationGracePeriodSeconds: 0 },
    });
    const { uid = '' } = pod.metadata;
    this.#made.set(uid, pod);
    try {
      return await this.#untilRunning(pod);
    } catch (error) {
      await this.remove(uid);
      throw error;
    }
  }

  /** Removes a Pod by its uid; does nothing where it was not made here. */
  async remove(uid: string): Promise<void> {
    const pod = this.#made.get(uid);
    if (pod === undefined) return;
    this.#made.delete(uid);
    const { namespace = '', name = '' } = pod.metadata;
    try {
      await this.#client.delete(namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #untilRunning(wanted: Pod): Promise<Pod> {
    const { promise, resolve, reject } = Promise.withResolvers<Pod>();
    const look = (pod: Pod): void => {
      if (keyOf(pod) === keyOf(wanted) && pod.status.phase === 'Running') resolve(pod);
    };
    const forget = this.#pods.addHandler({ added: look, updated: look });
    const timer = setTimeout(() => {
      const why = this.#pods.cache
        .get(keyOf(wanted))
        ?.status.conditions?.find(({ status }) => status !== 'True');
      reject(new Error(`Pod ${keyOf(wanted)} does not run: ${why?.message ?? 'no node has taken it'}`));
    }, patience);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      forget();
    }
  }
}
