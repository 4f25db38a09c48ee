/** `servicenet/testing`: a Kubernetes API server in the process of a test. */
import { pino } from 'pino';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import { startClients } from '../commands/local-cluster/clients.ts';
import { startLocalCluster } from '../commands/local-cluster/cluster.ts';
import { openNetwork } from '../commands/local-cluster/network.ts';
import { run } from '../host/local-host.ts';
import type { Target } from '../emulation/protocol.ts';
import { podNamed } from '../flags/run.ts';
import { createLog } from '../telemetry/log.ts';
import { testServerConfig, type TestServerOptions } from './options.ts';

export type { TestServerOptions } from './options.ts';

/** An API server in this process, for tests. */
export interface TestServer {
  readonly url: string;
  /** The administrator's bearer token. */
  readonly token: string;
  /** PEM of the server's authority. */
  readonly ca: string;
  /** A kubeconfig as text. */
  readonly kubeconfig: string;
  /** Sends requests as the administrator. */
  readonly client: Transport;
  /**
   * Runs a program of this machine in the cluster network (`network: true`) to its end: by default in a client Pod of
   * namespace `default`, which exists for the program alone.
   *
   * @throws {Error} where there is no network, or no such place in it.
   */
  run(program: readonly string[], where?: RunPlace): Promise<ProgramResult>;
  /** Ends the controllers and open watches, closes the client and the server. */
  stop(): Promise<void>;
}

/** Where a program runs: in a client Pod of a namespace, in a Pod by `namespace/name` or in one of a workload by `deploy/namespace/name`, on a node, or outside of the cluster. */
export type RunPlace =
  | { readonly namespace: string }
  | { readonly pod: string }
  | { readonly node: string }
  | { readonly outside: true };

/** How a program ended. */
export interface ProgramResult {
  /** 0 to 255; 128 and the signal's number where a signal ended it. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Starts an API server and the chosen controllers in this process. Any number may run at once.
 *
 * @throws {Error} naming the option that is unknown or has a wrong value, with what it takes; when the server or a
 *   controller cannot start. Then nothing of it is left.
 */
export async function startApiServer(options: TestServerOptions = {}): Promise<TestServer> {
  const config = testServerConfig(options);
  const { logLevel: level } = config;
  const log = level === 'silent' ? pino({ enabled: false }) : createLog({ level, format: 'pretty' });
  const open = await openNetwork(config, log);
  const cluster = await startLocalCluster({
    config,
    log,
    network: open === undefined ? undefined : { open, log: { logLevel: level, logFormat: 'pretty' } },
    ...(config.refuse === undefined ? {} : { refuse: config.refuse }),
    startClients: (clients, server) => startClients(clients, server, log),
  }).catch(async (error: unknown) => {
    await open?.close();
    throw error;
  });
  const { url, token, ca, kubeconfig } = cluster.server;
  let client: Transport;
  try {
    client = await createTransport({ kind: 'endpoint', url, ca, token });
    await cluster.networkReady;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return {
    url,
    token,
    ca,
    kubeconfig,
    client,
    run: async (program, where = { namespace: 'default' }) => {
      if (open === undefined)
        throw new Error('there is no cluster network: startApiServer({ network: true })');
      const entered = await open.enter(targetOf(where));
      const [first = '', ...rest] = [...entered.argv, ...program];
      try {
        return await run(first, rest);
      } finally {
        await entered.release();
      }
    },
    stop: async () => {
      await client.close();
      await cluster.stop();
    },
  };
}

function targetOf(where: RunPlace): Target {
  if ('outside' in where) return { kind: 'outside' };
  if ('node' in where) return { kind: 'node', name: where.node };
  if ('namespace' in where) return { kind: 'client', namespace: where.namespace };
  return podNamed(where.pod, 'default');
}
