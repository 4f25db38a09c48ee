import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ResourceClient } from '../../../src/client/resource-client.ts';
import { pods } from '../../../src/client/resources.ts';
import type { Transport } from '../../../src/client/transport.ts';
import type { Pod } from '../../../src/objects/types/core.generated.ts';
import { listAt } from '../../../src/objects/json.ts';
import { StatusError } from '../../../src/objects/status.ts';
import { accountFlags } from '../account.ts';
import { Child } from '../child.ts';

const namespace = 'servicenet-system';
const hostName = fileURLToPath(new URL('host-name.ts', import.meta.url));

/**
 * Stands in for the container runtime of the Deployment's Pods, which simulated nodes do not have: what each container
 * is to run runs here as a process, with the Pod's name for a host name and a token of the Pod's service account. A
 * Pod that ends gets `SIGTERM`; the process of one that is gone at once is killed; one that ends by itself is restarted.
 */
export class PodProcesses {
  readonly #client: Transport;
  readonly #kubeconfig: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'servicenet-pods-'));
  readonly #processes = new Map<string, Child>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(client: Transport, kubeconfig: string) {
    this.#client = client;
    this.#kubeconfig = kubeconfig;
    this.#running = this.#run();
  }

  /** Ends them all. @throws {Error} what the loop failed with. */
  async end(): Promise<void> {
    this.#stop.abort();
    try {
      await this.#running;
    } finally {
      await Promise.all([...this.#processes.values()].map((child) => child.end()));
      rmSync(this.#directory, { recursive: true });
    }
  }

  async #run(): Promise<void> {
    const client = new ResourceClient(this.#client, pods);
    while (!this.#stop.signal.aborted) {
      const { items } = await client.list({ namespace });
      const ending = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
      const present = new Set(items.map(({ metadata }) => metadata.uid));
      for (const [uid, child] of this.#processes) {
        if (!present.has(uid)) this.#end(uid, child, 'SIGKILL');
      }
      for (const { metadata } of ending) {
        const child = this.#processes.get(metadata.uid ?? '');
        if (child !== undefined) this.#end(metadata.uid ?? '', child, 'SIGTERM');
      }
      for (const pod of items) {
        if (pod.status.phase === 'Running' && !ending.includes(pod)) await this.#keep(pod).catch(unlessGone);
      }
      await sleep(200);
    }
  }

  /** Starts the Pod's process where it does not run (any more). */
  async #keep(pod: Pod): Promise<void> {
    const { uid = '', name = '' } = pod.metadata;
    if (this.#processes.get(uid)?.running === true) return;
    const directory = join(this.#directory, uid);
    mkdirSync(directory, { recursive: true });
    const account = { namespace, name: pod.spec.serviceAccountName ?? '', pod: { name, uid } };
    const flags = await accountFlags(this.#client, this.#kubeconfig, directory, account);
    const [container] = listAt(pod, 'spec', 'containers');
    const args = listAt(container, 'args').map((arg) =>
      String(arg)
        .replace('$(POD_NAMESPACE)', namespace)
        // All Pods have one address here.
        .replace(/^(--metrics-bind-address)=.*/, '$1=127.0.0.1:0'),
    );
    const child = new Child(process.execPath, ['--import', hostName, 'src/main.js', ...args, ...flags], {
      HOSTNAME: name,
      KUBECONFIG: '',
    });
    this.#processes.set(uid, child);
  }

  #end(uid: string, child: Child, signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#processes.delete(uid);
    void child.end(signal);
  }
}

/** A Pod may go while it gets its token. */
function unlessGone(error: unknown): void {
  if (!(error instanceof StatusError)) throw error;
}
