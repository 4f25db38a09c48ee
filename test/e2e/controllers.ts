import { ResourceClient } from '../../src/client/resource-client.ts';
import { leases, pods } from '../../src/client/resources.ts';
import type { Transport } from '../../src/client/transport.ts';
import { Child } from './child.ts';
import type { Target } from './targets/target.ts';

/** servicenet's controllers on the target: two that compete for the lease. */
export interface Controllers {
  /** Where they run: `ability` of the report. */
  readonly canStop: boolean;
  start(): Promise<void>;
  /** Ends both, as a signal does. Only when they can be stopped. */
  stop(): Promise<void>;
  /** Ends the one that leads, as a crash would. Answers its identity. */
  killLeader(): Promise<string>;
  /** Who leads; "" for nobody. */
  leader(): Promise<string>;
}

const lease = { namespace: 'kube-system', name: 'servicenet-e2e' };
const endpointsFamily = 'endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller';

/** Two processes beside the suite. */
export class OwnControllers implements Controllers {
  readonly canStop = true;
  readonly #args: readonly string[];
  readonly #client: Transport;
  #children: Child[] = [];

  constructor(target: Target, client: Transport) {
    this.#client = client;
    this.#args = [
      ...['src/main.ts', 'controller', '--kubeconfig', target.kubeconfig, '--log-format', 'json'],
      ...['--metrics-bind-address', '127.0.0.1:0', '--log-level', 'debug'],
      `--controllers=*${target.endpoints === 'nobody' ? `,${endpointsFamily}` : ''}`,
      ...['--leader-elect-resource-namespace', lease.namespace, '--leader-elect-resource-name', lease.name],
      ...['--leader-elect-lease-duration', '3s', '--leader-elect-renew-deadline', '2s'],
      ...['--leader-elect-retry-period', '500ms'],
    ];
  }

  async start(): Promise<void> {
    while (this.#children.filter(({ running }) => running).length < 2) {
      const child = new Child(process.execPath, this.#args, { KUBECONFIG: '' });
      this.#children.push(child);
      await child.until(() => child.output.includes('serving health'));
    }
    await this.#children[0]?.until(async () => (await this.leader()) !== '');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.end()));
    this.#children = [];
  }

  async killLeader(): Promise<string> {
    const identity = await this.leader();
    const leading = this.#children.find(({ output }) =>
      output.includes(`"identity":"${identity}","msg":"leading"`),
    );
    if (leading === undefined) throw new Error(`no process of ours is ${identity}`);
    await leading.end('SIGKILL');
    this.#children = this.#children.filter((child) => child !== leading);
    return identity;
  }

  leader(): Promise<string> {
    return holderOf(this.#client, lease);
  }
}

/** The Pods of deploy/overlays/kind. */
export class DeployedControllers implements Controllers {
  readonly canStop = false;
  readonly #client: Transport;
  readonly #lease = { namespace: 'servicenet-system', name: 'servicenet-controller' };

  constructor(client: Transport) {
    this.#client = client;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  async killLeader(): Promise<string> {
    const identity = await this.leader();
    const pod = identity.split('_')[0] ?? '';
    await new ResourceClient(this.#client, pods).delete(this.#lease.namespace, pod, {
      gracePeriodSeconds: 0,
    });
    return identity;
  }

  leader(): Promise<string> {
    return holderOf(this.#client, this.#lease);
  }
}

async function holderOf(client: Transport, { namespace, name }: typeof lease): Promise<string> {
  const { items } = await new ResourceClient(client, leases).list({ namespace });
  return items.find(({ metadata }) => metadata.name === name)?.spec.holderIdentity ?? '';
}
