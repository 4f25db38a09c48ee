import type { Logger } from 'pino';
import { createTransport } from '../client/connect.ts';
import type { EndpointSource, Transport } from '../client/transport.ts';
import type { UpConfig } from '../config/up.ts';
import {
  type CatalogEntry,
  clusterControllers,
  runControllers,
  serviceAllocation,
} from '../controllers/index.ts';
import { selectControllers } from '../runtime/selection.ts';
import { checkTypesOnDemand } from '../registry/admissionregistration/admissionpolicy/check-types-on-demand.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { applyFiles } from './apply.ts';
import { offerAddresses, untilServed } from './default-pool.ts';
import { serviceTable } from './service-table.ts';
import { startTelemetryServer } from './telemetry-server.ts';

/** Milliseconds that the introduction waits for the addresses of LoadBalancer Services. */
const patience = 2000;
const loadBalancer = 'load-balancer-controller';

export interface ClientsOptions {
  readonly config: UpConfig;
  /** The way to the server; `ca` is what the root CA publisher publishes. */
  readonly server: EndpointSource & { readonly ca: string };
  readonly log: Logger;
  /** What is to be ended in reverse is added here, however far the start comes. */
  readonly started: (() => Promise<void>)[];
}

/**
 * All that `up` does as a client of its own server: runs controllers, applies files.
 *
 * @returns its introduction: what there is, and what to try.
 */
export async function runClients({ config, server, log, started }: ClientsOptions): Promise<string> {
  const metrics = new Metrics();
  const client = await createTransport(server, metrics);
  started.push(() => client.close());
  const known = catalog(config, client, server.ca);
  const balancing = selectControllers(config.controllers, known).includes(loadBalancer);
  // Before the controllers, so that the first Services find the pool there.
  if (balancing) await offerAddresses(client, config.defaultPool);
  const controllers = runControllers({
    transport: client,
    catalog: known,
    controllers: config.controllers,
    log,
    metrics,
  });
  started.push(() => controllers.stop());
  const telemetry = await startTelemetryServer({
    address: config.metricsBindAddress,
    metrics,
    ready: () => controllers.healthChecks(),
    log,
  });
  started.push(() => telemetry.close());
  const applied = await applyFiles(client, config.apply);
  if (balancing && applied.length > 0) await untilServed(client, patience);
  return introduction(config, applied, await serviceTable(client));
}

/** The controllers that may run; those of a cluster all do by default. */
function catalog(config: UpConfig, transport: Transport, rootCa: string): readonly CatalogEntry[] {
  const { nodes: count, clusterCidrs, allocation, serviceCidrs, nodePorts } = config;
  const simulation = count === 0 ? {} : { simulation: { count, clusterCidrs } };
  const options = { transport, allocation, serviceCidrs, nodePorts };
  const cluster = clusterControllers({
    transport,
    rootCa,
    checkPolicyTypes: checkTypesOnDemand,
    ...simulation,
  });
  return [
    // The load balancer too: offerAddresses brings what it needs.
    ...cluster.map((entry) => (entry.name === loadBalancer ? { ...entry, onByDefault: true } : entry)),
    // Our own server needs no audit.
    serviceAllocation(options, allocation === 'controller'),
  ];
}

function introduction(config: UpConfig, applied: readonly string[], services: string): string {
  const lines = applied.map((line) => `  ${line}`);
  // Workloads need nodes, and what gives a LoadBalancer its address.
  const workload =
    config.nodes === 0
      ? ['  kubectl create service nodeport hello --tcp=80:8080']
      : [
          '  kubectl create deployment web --image=nginx --replicas=3',
          '  kubectl expose deployment web --port=80 --type=LoadBalancer',
        ];
  return [
    ...(lines.length === 0 ? [] : ['', 'Applied:', ...lines]),
    '',
    services,
    'Try it:',
    `  export KUBECONFIG=${config.kubeconfigPath}`,
    '  kubectl get services --all-namespaces',
    ...workload,
    '  kubectl explain service.spec.ports',
    '  kubectl get services --watch',
    '',
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}
