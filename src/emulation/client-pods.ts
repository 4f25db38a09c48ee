import type { Logger } from 'pino';
import { whenAborted } from '../client/abort.ts';
import { isNotFound } from '../client/errors.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { pods as podsResource } from '../client/resources.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import { keyOf } from '../objects/key.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';

/** Milliseconds that a client Pod has to run. */
const timeoutMs = 30_000;

const labels = { 'app.kubernetes.io/name': 'servicenet-run', 'app.kubernetes.io/managed-by': 'servicenet' };

/** Pods for programs of `servicenet run`: real objects, so that policies and Services treat them as any Pod. */
export class ClientPods implements Runnable {
  readonly #client: ResourceClient<Pod>;
  readonly #pods: Informer<Pod>;
  readonly #log: Logger;
  /** By uid. */
  readonly #made = new Map<string, Pod>();
  readonly #swept = Promise.withResolvers<undefined>();

  constructor({ clients, informers, log }: ControllerContext) {
    this.#client = clients.for(podsResource);
    this.#pods = informers.informer(podsResource);
    this.#log = log;
  }

  /** Removes the Pods of programs that ended with an earlier network: `up` was killed, or runs again on its data. */
  async run(signal: AbortSignal): Promise<void> {
    if (await this.#pods.synced(signal)) {
      for (const pod of this.#pods.cache.values()) {
        if (!Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value)) continue;
        await this.#delete(pod).catch((error: unknown) => {
          this.#log.warn(
            { err: error, pod: keyOf(pod) },
            'cannot delete the Pod of a program that has ended',
          );
        });
      }
    }
    this.#swept.resolve(undefined);
    await whenAborted(signal);
  }

  /** Makes a Pod without ports. @returns it once it runs. @throws {Error} of the API server, or after 30 s. */
  async create(namespace: string): Promise<Pod> {
    await this.#swept.promise;
    const pod = await this.#client.create({
      metadata: { namespace, generateName: 'run-', labels },
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
    await this.#delete(pod);
  }

  async #delete({ metadata: { namespace = '', name = '', uid = '' } }: Pod): Promise<void> {
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
    }, timeoutMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      forget();
    }
  }
}
