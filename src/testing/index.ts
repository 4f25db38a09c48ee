import { pino } from 'pino';
import { type Embedded, startEmbedded } from '../apiserver/embedded.ts';
import type { RefuseRequest } from '../apiserver/http/refusal.ts';
import type { AuthorizationMode } from '../apiserver/server.ts';
import { createTransport } from '../client/connect.ts';
import type { Transport } from '../client/transport.ts';
import { clusterControllers, runControllers, serviceAllocation } from '../controllers/index.ts';
import { clusterCidrs } from '../config/cluster-cidrs.ts';
import { nodePortRange, serviceCidrs } from '../config/service-ranges.ts';
import { checkTypesOnDemand } from '../registry/admissionregistration/admissionpolicy/check-types-on-demand.ts';
import { createLog, type LogLevel } from '../telemetry/log.ts';

/** Options of {@link startApiServer}; all have defaults. */
export interface TestServerOptions {
  /** One CIDR, or two of different families; default `10.96.0.0/16`. */
  readonly serviceClusterIpRange?: string;
  /** Default `30000-32767`. */
  readonly serviceNodePortRange?: string;
  /** Default `AlwaysAllow`. */
  readonly authorizationMode?: AuthorizationMode;
  /**
   * Who gives Services their addresses and node ports; default `server`. With `controller` they are stored without,
   * and the controller `service-allocation` gives them, if it runs.
   */
  readonly allocation?: 'server' | 'controller';
  /** Default: a random token. */
  readonly token?: string;
  /** Keeps everything in this directory; default: in memory. */
  readonly dataDirectory?: string;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /**
   * The controllers to run beside the server, as kube-controller-manager's `--controllers` (`*`, `name`, `-name`).
   * Default: none.
   */
  readonly controllers?: readonly string[];
  /**
   * Simulated nodes, on which Deployments and other workloads run; default 0. With nodes, `controllers` defaults to
   * all.
   */
  readonly nodes?: number;
  /** Where simulated Pods get their addresses; default `10.244.0.0/16`, and `fd00:10:244::/56` with dual-stack. */
  readonly clusterCidr?: string;
  /**
   * Answers requests with 429 or 503 and `Retry-After`, as kube-apiserver does when it is busy; undefined lets one
   * through. Default: none is refused.
   */
  readonly refuse?: RefuseRequest;
  /** Default `silent`. */
  readonly logLevel?: LogLevel;
}

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
  /** Ends open watches, closes the client and the server. */
  stop(): Promise<void>;
}

/** Starts an API server in this process. Any number may run at once. */
export async function startApiServer(options: TestServerOptions = {}): Promise<TestServer> {
  const level = options.logLevel ?? 'silent';
  const log = level === 'silent' ? pino({ enabled: false }) : createLog({ level, format: 'pretty' });
  const serviceRanges = serviceCidrs(options.serviceClusterIpRange ?? '10.96.0.0/16');
  const podCidrs = clusterCidrs(
    options.clusterCidr,
    serviceRanges.map(({ range }) => range.family),
  );
  const nodePorts = nodePortRange(options.serviceNodePortRange ?? '30000-32767');
  const allocation = options.allocation ?? 'server';
  const server: Embedded = await startEmbedded({
    bindAddress: '127.0.0.1',
    port: options.port ?? 0,
    serviceCidrs: serviceRanges,
    nodePorts,
    authorizationMode: options.authorizationMode ?? 'AlwaysAllow',
    allocation,
    log,
    ...(options.refuse === undefined ? {} : { refuse: options.refuse }),
    ...(options.token === undefined ? {} : { adminToken: options.token }),
    ...(options.dataDirectory === undefined ? {} : { dataDirectory: options.dataDirectory }),
  });
  const { url, token, ca } = server;
  const client = await createTransport({ kind: 'endpoint', url, ca, token });
  const count = options.nodes ?? 0;
  const chosen = options.controllers ?? (count === 0 ? [] : ['*']);
  const controllers =
    chosen.length === 0
      ? undefined
      : runControllers({
          transport: client,
          catalog: [
            ...clusterControllers({
              transport: client,
              rootCa: ca,
              checkPolicyTypes: checkTypesOnDemand,
              ...(count === 0 ? {} : { simulation: { count, clusterCidrs: podCidrs } }),
            }),
            serviceAllocation(
              { transport: client, allocation, serviceCidrs: serviceRanges, nodePorts },
              allocation === 'controller',
            ),
          ],
          controllers: chosen,
          log,
        });
  return {
    url,
    token,
    ca,
    kubeconfig: server.kubeconfig,
    client,
    stop: async () => {
      await controllers?.stop();
      await client.close();
      await server.close();
    },
  };
}
