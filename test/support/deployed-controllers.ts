import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { warnOfConflicts } from '../../src/commands/controller.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { controllersOf } from './all-controllers.ts';
import type { KubeObject } from '../../src/objects/meta.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { fastClock } from './fast-clock.ts';
import { applyStrictly } from './manifests.ts';
import { PermissionRecorder } from './permission-recorder.ts';
import { textsAt } from './role-rules.ts';
import { call } from './test-server.ts';

const deployedNamespace = 'servicenet-system';

/** Which controllers run, with the ClusterRole of that name and the Roles, and nothing else. */
export interface Chosen {
  readonly role: string;
  readonly controllers: readonly string[];
  /** How much faster their time is than the test's; default 1. */
  readonly haste?: number;
  /** A resource whose watches are late. */
  readonly lagging?: string;
}

/** What happens in a cluster while the controllers run, to make them use every right. */
export interface Provocation {
  /** Steps after which all that it provokes has happened. */
  readonly rounds: number;
  begin(client: Transport): Promise<void>;
  /** Again and again, until the test has seen enough. */
  step(client: Transport, round: number): Promise<void>;
  end(client: Transport): Promise<void>;
}

/** A server with RBAC and the manifests, and some controllers as the service account of the Deployment. */
export class DeployedControllers {
  readonly server: TestServer;
  /** Of the service account. */
  readonly token: string;
  readonly #chosen: Chosen | undefined;

  private constructor(server: TestServer, token: string, chosen: Chosen | undefined) {
    this.server = server;
    this.token = token;
    this.#chosen = chosen;
  }

  /** @param chosen absent: all ClusterRoles, and the controllers that are on by default. */
  static async start(objects: readonly KubeObject[], chosen?: Chosen): Promise<DeployedControllers> {
    const server = await startApiServer({ authorizationMode: 'RBAC' });
    await applyStrictly(
      server.client,
      objects.filter(
        ({ kind, metadata }) =>
          chosen === undefined || kind !== 'ClusterRole' || metadata.name === chosen.role,
      ),
    );
    const account = `/api/v1/namespaces/${deployedNamespace}/serviceaccounts/servicenet/token`;
    const answer = await call(server.client, 'POST', account, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    });
    await call(server.client, 'POST', '/apis/servicenet.dev/v1alpha1/addresspools', {
      body: {
        apiVersion: 'servicenet.dev/v1alpha1',
        kind: 'AddressPool',
        metadata: { name: 'pool' },
        spec: { addresses: ['192.0.2.0/24'] },
      },
    });
    return new DeployedControllers(server, textAt(answer.body, 'status', 'token'), chosen);
  }

  stop(): Promise<void> {
    return this.server.stop();
  }

  /**
   * Runs the controllers until the condition holds, which gets what they asked for and what they were refused.
   *
   * @param watchList whether the server streams lists: old ones do not, and then controllers list.
   */
  async exercise(
    watchList: boolean,
    provocation: Provocation,
    done: (transport: PermissionRecorder, refused: readonly string[]) => boolean,
  ): Promise<void> {
    const { url, ca, client } = this.server;
    const refused: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => refused.push(...refusalsIn(line)) });
    const inner = await createTransport({ kind: 'endpoint', url, ca, token: this.token });
    const serviceAllocation = { allocation: 'server', nodePorts: { first: 30000, last: 32767 } } as const;
    const transport = new PermissionRecorder(inner, { watchList, lagging: this.#chosen?.lagging });
    const running = runControllers({
      transport,
      controllers: controllersOf({ transport, serviceAllocation }, this.#chosen?.controllers ?? []),
      log,
      clock: fastClock(this.#chosen?.haste ?? 1),
      leaderElection: {
        namespace: deployedNamespace,
        name: 'servicenet-controller',
        identity: 'test',
        // However fast the clock is, the one process that there is never loses its lease.
        ...{ leaseDurationMs: 3_600_000, renewDeadlineMs: 1_800_000, retryPeriodMs: 200 },
      },
    });
    await provocation.begin(client);
    try {
      await warnOfConflicts(transport, running.names, Date.now(), log);
      const deadline = Date.now() + 90_000;
      for (let round = 0; !done(transport, refused); round++) {
        if (Date.now() > deadline) {
          throw new Error(`refused: ${refused.join(', ')}; asked: ${transport.phrases().join(', ')}`);
        }
        await provocation.step(client, round);
        await sleep(30);
      }
    } finally {
      await running.stop();
      await transport.close();
      await provocation.end(client);
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${deployedNamespace}/leases`;
      await call(client, 'DELETE', `${leases}/servicenet-controller`);
    }
  }
}

/** The arguments of the Deployment's container. */
export function argumentsOf(objects: readonly KubeObject[]): string[] {
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  const [container] = listAt(deployment, 'spec', 'template', 'spec', 'containers');
  return textsAt(container, 'args').map((arg) => arg.replace('$(POD_NAMESPACE)', deployedNamespace));
}

/** What a log line says was refused: `patch services/status`. */
function refusalsIn(line: string): string[] {
  if (line.includes('could not find out whether others write')) return ['list leases.coordination.k8s.io'];
  const [, phrase] = /not allowed to (\S+ [^: ]+)/.exec(line) ?? [];
  if (phrase !== undefined) return [phrase];
  return /"level":"?(error|fatal|50|60)/.test(line) ? [line] : [];
}
