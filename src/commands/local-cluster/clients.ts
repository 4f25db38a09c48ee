import { setTimeout as sleep } from 'node:timers/promises';
import { isNotFound } from '../../client/errors.ts';
import type { Transport } from '../../client/transport.ts';
import type { LocalClusterConfig } from '../../flags/up.ts';
import { applyObjects, applyManifests, type Manifest } from '../apply.ts';
import { networkInterfaces } from 'node:os';
import type { MessagePort } from 'node:worker_threads';
import type { Logger } from 'pino';
import { parseAddressRange } from '../../allocation/address-range.ts';
import { createTransport } from '../../client/connect.ts';
import { freeRanges } from '../../flags/addresses.ts';
import { InMemoryCloud } from '../../platforms/openshift/cloud-private-ip/cloud.ts';
import { readServiceCidrs } from '../../flags/shared.ts';
import { loadControllers } from '../../controllers/catalog.ts';
import { runControllers } from '../../controllers/run.ts';
import { allControllers, attachmentsName, type PlatformSettings } from '../../platforms/catalog.ts';
import { lanCidrs } from '../../emulation/lan.ts';
import { announceSelectors } from '../../network/announcing/agent-report.ts';
import { parseAddress } from '../../objects/address.ts';
import { lazyTypeChecker } from '../../registry/admissionregistration/policy/lazy-type-checker.ts';
import { Metrics } from '../../telemetry/metrics.ts';
import { offerAddresses, offerStorage } from '../default-pool.ts';
import { type End, endInReverse } from '../signals.ts';
import { startTelemetryServer } from '../connect.ts';

/** The time between checks whether a kind is served. */
const checkMs = 20;
/** A kind must be served within this time. */
const establishTimeoutMs = 10_000;

/**
 * Defines the kinds of a platform, and waits until they are served: controllers start where they find their kinds. Kinds
 * that another start defined (`--data-dir`) stay.
 *
 * @throws {Error} for a definition that is refused, or not served within ten seconds.
 */
async function installPlatformCRDs(
  client: Transport,
  platform: LocalClusterConfig['platform'],
): Promise<void> {
  if (platform === 'kubernetes') return;
  // Only then, for its memory. hack/generate-definitions.ts writes it from deploy/crds.
  const { default: definitions } = await import('./openshift-definitions.generated.json', {
    with: { type: 'json' },
  });
  await applyObjects(client, definitions);
  const deadline = performance.now() + establishTimeoutMs;
  for (const { spec } of definitions) {
    for (const { name: version } of spec.versions) {
      const path = `/apis/${spec.group}/${version}/${spec.names.plural}?limit=1`;
      for (;;) {
        try {
          await client.request('GET', path);
          break;
        } catch (error) {
          if (!isNotFound(error) || performance.now() > deadline) throw error;
          await sleep(checkMs);
        }
      }
    }
  }
}

/** The way of the clients to their server, as its administrator. */
export interface ServerAccess {
  readonly url: string;
  /** PEM of its authority, which the root CA publisher publishes. */
  readonly ca: string;
  readonly token: string;
  /** A socket of this process that leads to it without TLS; undefined: there is none. */
  readonly socketPath: string | undefined;
  /** Leads to it from one other thread of this process, or from the same. */
  readonly thread: MessagePort | undefined;
}

/**
 * The part of {@link LocalClusterConfig} that the clients need; plain values, which can be sent to another thread.
 */
export type ClientsConfig = Pick<
  LocalClusterConfig,
  | 'nodes'
  | 'clusterCidrs'
  | 'missingImages'
  | 'controllers'
  | 'attachments'
  | 'allocation'
  | 'nodePorts'
  | 'addressPool'
  | 'metrics'
  | 'platform'
> & {
  /** One CIDR, or two with a comma between. */
  readonly serviceClusterIpRange: string;
  /** To be applied when the controllers run. */
  readonly manifests: readonly Manifest[];
};

/** The parts of the started clients. */
export interface ClientsReport {
  /** A line for each object of the manifests, such as `service/catalog`. */
  readonly applied: readonly string[];
  /** The ranges of the pool that was made for Services of type LoadBalancer. */
  readonly addressPool: readonly string[];
}

/** The clients of a local cluster at work. */
export interface RunningClients {
  readonly report: ClientsReport;
  /** Rejects when they die; otherwise never settles. */
  readonly failure: Promise<never>;
  /** Lets running work finish, then ends them. */
  stop(): Promise<void>;
}

/**
 * Requests of all controllers together that are in flight at once. The server takes requests in the order in which they
 * come: beside 16 clients that send one after the other, controllers get a fifth of its turns. Four keep it busy
 * without other clients.
 */
const connections = 4;

/** Clients in this thread. */
export interface LocalClients extends RunningClients {
  /** Their way to the server. */
  readonly transport: Transport;
}

/**
 * Runs the clients of a local cluster in this thread: offers addresses, starts the controllers, applies the manifests.
 *
 * @throws {Error} when one of these fails; then nothing of them is left.
 */
export async function startClients(
  config: ClientsConfig,
  server: ServerAccess,
  log: Logger,
): Promise<LocalClients> {
  const started: End[] = [];
  try {
    // Their code is loaded while the server answers.
    const loading = loadControllers(allControllers.filter(({ name }) => config.controllers.includes(name)));
    loading.catch(() => undefined);
    const metrics = new Metrics();
    const transport = await createTransport({ kind: 'endpoint', ...server, connections }, metrics);
    started.push(() => transport.close());
    await installPlatformCRDs(transport, config.platform);
    const binds = config.nodes > 0 && config.controllers.includes('persistentvolume-binder-controller');
    if (binds) await offerStorage(transport);
    // Before the controllers, so that the first Services find the pool there.
    const balanced = config.controllers.includes('load-balancer-controller');
    const addressPool = balanced ? await offerAddresses(transport, poolRanges(config)) : [];
    const controllers = runControllers({
      transport,
      controllers: (await loading)(settingsOf(config, transport, server.ca)),
      log,
      metrics,
      labelSelectors: announceSelectors,
    });
    started.push(() => controllers.stop());
    const telemetry = await startTelemetryServer({
      address: config.metrics,
      metrics,
      ready: () => controllers.healthChecks(),
      log,
    });
    started.push(() => telemetry.close());
    const applied = await applyManifests(transport, config.manifests);
    // What ends one controller ends all of them. `runControllers` logs it.
    const failure = controllers.ended.then(() => new Promise<never>(() => undefined));
    failure.catch(() => undefined);
    return {
      transport,
      report: { applied, addressPool },
      failure,
      stop: () => endInReverse(started),
    };
  } catch (error) {
    await endInReverse(started);
    throw error;
  }
}

function poolRanges({ addressPool, serviceClusterIpRange }: ClientsConfig): readonly string[] {
  if (addressPool !== undefined) return addressPool;
  const families = readServiceCidrs(serviceClusterIpRange).map(({ range }) => range.family);
  return freeRanges(networksOfInterfaces(), families);
}

/** Addresses of this machine with the prefix lengths of their networks: `192.168.1.7/24`. */
function networksOfInterfaces(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ cidr }) => cidr ?? []),
  );
}

/** The simulated ranges: of Pods, Services, nodes and load balancers. */
function simulatedRanges(config: ClientsConfig): readonly string[] {
  const { clusterCidrs, serviceClusterIpRange } = config;
  const families = ['IPv4', 'IPv6'] as const;
  return [...clusterCidrs, ...serviceClusterIpRange.split(','), ...lanCidrs(families), ...poolRanges(config)];
}

/** Whether an address is in one of these CIDRs and ranges. */
function isInAny(texts: readonly string[]): (address: string) => boolean {
  const ranges = texts.flatMap((text) => parseAddressRange(text.trim()) ?? []);
  return (address) => {
    const parsed = parseAddress(address);
    return parsed !== undefined && ranges.some((range) => range.contains(parsed.family, parsed.value));
  };
}

/** What the controllers are made with. */
function settingsOf(config: ClientsConfig, transport: Transport, rootCa: string): PlatformSettings {
  const { nodes: count, clusterCidrs, missingImages, allocation, nodePorts, platform } = config;
  const awaitsNetworks = config.controllers.includes(attachmentsName);
  return {
    transport,
    rootCa,
    checkPolicyTypes: lazyTypeChecker,
    cloud: new InMemoryCloud(),
    attachmentRules: config.attachments,
    connectivityChecker: { isSimulated: isInAny(simulatedRanges(config)) },
    serviceAllocation: {
      allocation,
      nodePorts,
      serviceCidrs: readServiceCidrs(config.serviceClusterIpRange),
    },
    ...(count === 0 ? {} : { simulation: { count, clusterCidrs, awaitsNetworks, missingImages } }),
    ...(platform === 'openshift' ? { ingressToRoute: true } : {}),
  };
}
