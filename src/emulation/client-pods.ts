import type { Logger } from 'pino';
import { whenAborted, type Clock } from '../client/clock.ts';
import { isNotFound } from '../client/errors.ts';
import type { Informer } from '../client/informers/informer.ts';
import type { ResourceClient } from '../client/resource-client.ts';
import { pods as podsResource } from '../client/resources.ts';
import type { Pod } from '../objects/types/core.generated.ts';
import { keyOf } from '../objects/meta.ts';
import type { ControllerContext, Runnable } from '../runtime/context.ts';
import { decode } from 'dns-packet';
import { Forwarder } from '../dns/forwarder.ts';
import { maxUdpSize } from '../dns/message.ts';
import type { Host } from '../host/host.ts';
import { parseResolvConf } from '../network/dns/resolv-conf.ts';

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

const types = { A: 1, AAAA: 28 } as const;

/**
 * Resolves a name as a program in a Pod does: from the Pod's network, with the servers and the search list of its
 * `/etc/resolv.conf`. IPv4 addresses come first.
 *
 * @param text the file.
 * @throws {Error} `no such host` if no server has the name, or why none answers.
 */
export async function lookUpInPod(
  pod: { readonly host: Host; readonly clock: Clock },
  text: string,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { nameservers, searches, options } = parseResolvConf(text);
  const forwarder = new Forwarder({
    ...pod,
    upstreams: nameservers.map((address) => ({ address, port: 53 })),
  });
  const dots = name.split('.').length - 1;
  const ndots = Number(options.find((option) => option.startsWith('ndots:'))?.slice(6) ?? 1);
  const searched = searches.map((domain) => `${name}.${domain}`);
  const candidates = name.endsWith('.') ? [name] : dots >= ndots ? [name, ...searched] : [...searched, name];
  for (const candidate of candidates) {
    const found = await Promise.all([
      ask(forwarder, candidate, 'A', signal),
      ask(forwarder, candidate, 'AAAA', signal),
    ]);
    if (found.flat().length > 0) return found.flat();
  }
  throw new Error('no such host');
}

async function ask(
  forwarder: Forwarder,
  name: string,
  type: keyof typeof types,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const labels = name.replace(/\.$/, '').split('.');
  const questionBytes = Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)])),
    Buffer.from([0, 0, types[type], 0, 1]),
  ]);
  const query = { questionBytes, checkingDisabled: false, edns: undefined, udpSize: maxUdpSize };
  const { answers = [] } = decode(await forwarder.ask(query, 'udp', signal));
  return answers.flatMap((answer) => (answer.type === type ? [answer.data] : []));
}
