import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { leases, pods } from '../../src/client/resources.ts';
import { isNotFound } from '../../src/client/errors.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { Pod } from '../../src/objects/types/core.generated.ts';
import { numberAt } from '../../src/objects/json.ts';
import { StatusError } from '../../src/objects/status.ts';
import { call } from '../support/test-server.ts';
import { Child } from './child.ts';
import { type ControllerCommand, controllerCommand } from './controller-command.ts';
import type { Target } from './targets/target.ts';

/** servicenet's controllers on the target: two that compete for the lease. */
export interface Controllers {
  start(): Promise<void>;
  /** Ends all, as a signal does, until the next start. */
  stop(): Promise<void>;
  /** The suite is over: what it has started ends. */
  end(): Promise<void>;
  /** Ends the one that leads, as a crash would. Answers its identity. */
  killLeader(): Promise<string>;
  /** Who leads; "" without a leader. */
  leader(): Promise<string>;
  /** What they wrote of requests that the API server did not allow them (403). */
  refusals(): string[] | Promise<string[]>;
}

/** Two processes beside the suite. */
export class OwnControllers implements Controllers {
  readonly #target: Target;
  readonly #client: Transport;
  #command: ControllerCommand | undefined;
  #children: Child[] = [];
  /** Those that ended: they may have something to say, too. */
  readonly #ended: Child[] = [];

  constructor(target: Target, client: Transport) {
    this.#target = target;
    this.#client = client;
  }

  async start(): Promise<void> {
    this.#command ??= await controllerCommand(this.#target, this.#client);
    const { args } = this.#command;
    while (this.#children.length < 2) {
      const child = this.#launch(args);
      await child.until(() => child.output.includes('serving health'));
    }
    await this.#children[0]?.until(async () => (await this.leader()) !== '');
  }

  /** Starts one, and another when that one ends by itself: on a busy machine it may lose its lease. So a Deployment does. */
  #launch(args: readonly string[]): Child {
    const child = new Child(process.execPath, ['src/main.js', ...args], { KUBECONFIG: '' });
    this.#children.push(child);
    void child.closed.then(() => {
      if (!this.#children.includes(child)) return;
      this.#leave(child);
      this.#launch(args);
    });
    return child;
  }

  /** From now on its end is wanted. */
  #leave(child: Child): void {
    this.#children = this.#children.filter((other) => other !== child);
    this.#ended.push(child);
  }

  refusals(): string[] {
    return [...this.#ended, ...this.#children].flatMap(({ output }) => refusalsIn(output));
  }

  async stop(): Promise<void> {
    const children = this.#children;
    for (const child of children) this.#leave(child);
    await Promise.all(children.map((child) => child.end()));
  }

  async end(): Promise<void> {
    await this.stop();
    const directory = this.#command?.directory;
    if (directory !== undefined) rmSync(directory, { recursive: true });
  }

  async killLeader(): Promise<string> {
    for (;;) {
      const identity = await this.leader();
      const leading = this.#children.find(({ output }) =>
        output.includes(`"identity":"${identity}","msg":"leading"`),
      );
      // There is none for as long as one that lost its lease still stands in it.
      if (leading === undefined) {
        await sleep(50);
        continue;
      }
      this.#leave(leading);
      await leading.end('SIGKILL');
      return identity;
    }
  }

  leader(): Promise<string> {
    return this.#command === undefined ? Promise.resolve('') : holderOf(this.#client, this.#command.lease);
  }
}

const deployment = { namespace: 'servicenet-system', name: 'servicenet' };
const scalePath = `/apis/apps/v1/namespaces/${deployment.namespace}/deployments/${deployment.name}/scale`;

/** The Pods of deploy/overlays/kind. */
export class DeployedControllers implements Controllers {
  readonly #client: Transport;
  readonly #lease = { namespace: deployment.namespace, name: 'servicenet-controller' };
  /** Replicas to go back to; undefined: they were never taken away. */
  #replicas: number | undefined;
  readonly #refused = new Set<string>();

  constructor(client: Transport) {
    this.#client = client;
  }

  async start(): Promise<void> {
    if (this.#replicas !== undefined) await this.#scale(this.#replicas);
    const wanted = this.#replicas ?? 1;
    await this.#until(async () => (await this.#ready()) >= wanted && (await this.leader()) !== '');
  }

  async stop(): Promise<void> {
    const { body } = await call(this.#client, 'GET', scalePath);
    this.#replicas ??= numberAt(body, 'spec', 'replicas');
    await this.#readLogs();
    await this.#scale(0);
    await this.#until(async () => (await this.#pods()).length === 0);
  }

  end(): Promise<void> {
    return Promise.resolve();
  }

  async killLeader(): Promise<string> {
    await this.#readLogs();
    let identity = '';
    // The lease may still name one that is gone.
    await this.#until(async () => {
      identity = await this.leader();
      return identity !== '' && (await this.#kill(identity.split('_')[0] ?? ''));
    });
    return identity;
  }

  leader(): Promise<string> {
    return holderOf(this.#client, this.#lease);
  }

  /** What their logs say; and a Pod to which something is refused is not ready. */
  async refusals(): Promise<string[]> {
    await this.#readLogs();
    const unready = (await this.#pods()).filter((pod) => !isReady(pod));
    return [...this.#refused, ...unready.map(({ metadata }) => `${metadata.name ?? ''} is not ready`)];
  }

  /** Pods take their logs with them: they are read before. Simulated nodes have none. */
  async #readLogs(): Promise<void> {
    for (const { metadata } of await this.#pods()) {
      const path = `/api/v1/namespaces/${deployment.namespace}/pods/${metadata.name ?? ''}/log`;
      try {
        const { bytes } = await this.#client.request('GET', path);
        for (const line of refusalsIn(bytes.toString('utf8'))) this.#refused.add(line);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
      }
    }
  }

  async #kill(pod: string): Promise<boolean> {
    try {
      await new ResourceClient(this.#client, pods).delete(deployment.namespace, pod, {
        gracePeriodSeconds: 0,
      });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #scale(replicas: number): Promise<void> {
    await this.#client.request('PATCH', scalePath, {
      contentType: 'application/merge-patch+json',
      body: { spec: { replicas } },
    });
  }

  async #ready(): Promise<number> {
    return (await this.#pods()).filter(isReady).length;
  }

  async #pods(): Promise<readonly Pod[]> {
    const labelSelector = `app.kubernetes.io/name=${deployment.name}`;
    const { namespace } = deployment;
    return (await new ResourceClient(this.#client, pods).list({ namespace, labelSelector })).items;
  }

  async #until(condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + 120_000;
    while (!(await condition())) {
      if (Date.now() > deadline) throw new Error('the Deployment does not come to what it was scaled to');
      await sleep(200);
    }
  }
}

/** Lines about requests that were not allowed, whether the controllers depend on them or not. */
function refusalsIn(log: string): string[] {
  return log.split('\n').filter((line) => /not allowed to|forbidden: User|could not find out/.test(line));
}

function isReady({ status }: Pod): boolean {
  return (
    status.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true
  );
}

async function holderOf(client: Transport, { namespace, name }: ControllerCommand['lease']): Promise<string> {
  const { items } = await new ResourceClient(client, leases).list({ namespace });
  return items.find(({ metadata }) => metadata.name === name)?.spec.holderIdentity ?? '';
}
