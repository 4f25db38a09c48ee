import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { isAborted, systemClock } from '../client/clock.ts';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import { Clients } from '../client/resource-client.ts';
import { EventSender } from '../client/events/event-sender.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import { PermissionTracker } from '../client/permission-tracker.ts';
import { leases } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import type { RouterConfig } from '../flags/router.ts';
import { textAt } from '../objects/json.ts';
import { gatewayClassLoop, GatewayWriter } from '../router/gateway/writer.ts';
import { RouterStatus } from '../router/router-status.ts';
import { Router, type RoutingOptions } from '../router/router.ts';
import { Leadership, runTogether } from '../runtime/leadership.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster } from './connect.ts';
import { firstWorker, type Worker } from './workers/worker.ts';

/** The end of a router may take so long to clear the status of its Ingresses. */
const clearTimeoutMs = 5000;

/**
 * Routes HTTP to the Services of a cluster until a signal comes; then is not ready for `--lameduck`, and ends what runs
 * within `--drain-timeout`.
 *
 * @param worker which of its processes this is; the first one alone writes status.
 * @throws the system's error where it cannot listen.
 */
export async function router(
  config: RouterConfig,
  worker: Worker = firstWorker({ command: 'router', config }),
): Promise<void> {
  const { log, host, signal } = worker;
  const stopReturning = returnUnusedMemory(log);
  const stop = new AbortController();
  const writing = new AbortController();
  const metrics = new Metrics();
  const server = await connectCluster(config.cluster, metrics);
  const clock = systemClock;
  const random = Math.random;
  const transport = new PermissionTracker(new AvailabilityTracker(server, log, clock), log, clock);
  const informers = new InformerFactory({ transport, clock, random, log, metrics });
  const { addresses, httpPort, httpsPort } = config;
  const http = new Router({
    ...{ informers, host, clock, random, log, metrics, addresses, httpPort, httpsPort },
    routing: routingOf(config),
  });
  const clients = new Clients(transport);
  const events = new EventSender({ transport, component: 'servicenet-router', clock, random, log, metrics });
  const context = { clients, informers, events, clock, random, log, metrics, serves: () => true };
  const { publishService, publishAddresses, routerName: name, canonicalHostname } = config;
  const published = {
    publishService,
    publishAddresses,
    router: { name, canonicalHostname },
    podName: hostname(),
  };
  const leadership = new Leadership({
    ...{ client: clients.for(leases), namespace: config.leaseNamespace },
    name: `servicenet-router-${name}`,
    ...{ identity: `${hostname()}_${randomUUID()}`, clock, random, log, metrics },
  });
  // A router that loses its Lease, with the API server for example, serves on, and writes again when it leads again.
  const writeStatus = async (): Promise<void> => {
    while (!isAborted(writing.signal)) {
      const status = new RouterStatus(context, http.view, http.table, published);
      const gateways =
        http.gateways === undefined
          ? []
          : [new GatewayWriter(context, http.gateways, publishService), gatewayClassLoop(context)];
      const run = async (leading: AbortSignal): Promise<void> => {
        await runTogether([status, ...gateways], leading);
        if (isAborted(writing.signal)) await status.clear(AbortSignal.timeout(clearTimeoutMs));
      };
      await leadership.run([{ run }], writing.signal);
    }
  };
  try {
    const telemetry = await worker.serveTelemetry({
      address: config.metrics,
      metrics,
      ready: () => [
        ...informers.healthChecks(),
        transport.healthCheck(),
        http.healthCheck,
        ...(worker.isFirst ? [leadership.healthCheck()] : []),
      ],
      log,
    });
    try {
      informers.start(stop.signal);
      // A signal during the wait for the API server ends it.
      const starting = http.start();
      const received = await Promise.race([signal.received, starting.then(() => undefined)]);
      if (received === undefined) {
        worker.startOthers();
        const led = worker.isFirst ? writeStatus() : undefined;
        if (worker.isFirst) await warnOfSimulatedPods(transport, log);
        await signal.received;
        http.lameduck();
        writing.abort();
        await Promise.all([led, clock.sleep(config.lameduckMs)]);
      }
      await http.close(config.drainTimeoutMs);
      await starting;
    } finally {
      writing.abort();
      stop.abort();
      await http.close(0);
      await events.close();
      await informers.finished();
      await worker.endOthers();
      await telemetry.close();
    }
  } finally {
    await server.close();
    stopReturning();
    signal.release();
  }
}

/** The addresses of simulated Pods exist in the cluster network of `up`; outside of it, other hosts may have them. */
async function warnOfSimulatedPods(transport: Transport, log: Logger): Promise<void> {
  let version = '';
  try {
    version = textAt((await transport.request('GET', '/version')).json(), 'gitVersion');
  } catch (error) {
    log.debug({ err: error }, 'the version of the API server is not known');
  }
  if (version.includes('+servicenet')) {
    log.warn(
      { reason: 'SimulatedPods', version },
      'the Pods of this API server answer in its cluster network alone, and requests may reach other hosts: use the router that servicenet up runs',
    );
  }
}

function routingOf(config: RouterConfig): RoutingOptions {
  const { domain, allowedDomains, deniedDomains, wildcards, ownership } = config;
  return {
    selection: { className: config.ingressClass, withoutClass: config.withoutClass },
    routes: config.routes,
    gateways: config.gateways,
    claims: { domain, allowedDomains, deniedDomains, wildcards, ownership },
    defaultCertificate: config.defaultCertificate,
    forwardedPolicy: config.forwardedPolicy,
    maxClientRequests: config.maxClientRequests,
    upgrades: config.upgrades,
    accessLog: config.accessLog,
    connectTimeoutMs: config.connectTimeoutMs,
    backendTimeoutMs: config.backendTimeoutMs,
  };
}
