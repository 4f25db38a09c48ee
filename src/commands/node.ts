import { cpus } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { systemClock } from '../client/clock.ts';
import { EventSender } from '../client/event-sender.ts';
import { InformerFactory } from '../client/informer-factory.ts';
import { PermissionTracker } from '../client/permission-tracker.ts';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import type { DetectLocal, NodeConfig } from '../config/node.ts';
import { localHost } from '../host/local-host.ts';
import { forwardingSelectors, NodeAgent } from '../node/agent.ts';
import type { NodeForwardingOptions } from '../node/forwarding-view.ts';
import { NftablesWriter } from '../node/nftables/nftables-writer.ts';
import { setSysctls } from '../node/sysctls.ts';
import { createLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster } from './cluster.ts';
import { untilSignal } from './signals.ts';
import { startTelemetryServer } from './telemetry-server.ts';

/**
 * Runs the agent of the node that this process is on until a signal comes. What it wrote into the kernel stays: the
 * next agent goes on from it, and connections are forwarded meanwhile.
 *
 * @throws {OtherProxyError} where another Service proxy is at work.
 * @throws {NftError} where nft is missing, or the kernel refuses it.
 */
export async function node(config: NodeConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  if (config.cleanup) {
    await new NftablesWriter({ host: localHost }).cleanUp();
    log.info('removed all that the agent wrote into the kernel');
    return;
  }
  await setSysctls(localHost, config.conntrack, cpus().length, log);
  if (config.initOnly) {
    log.info('set the kernel parameters');
    return;
  }
  // Collects garbage when the heap has grown by a tenth, not when it has doubled: at 10,000 Services it takes 194 MiB
  // instead of 247, for 1 to 2 s of CPU at the start.
  setFlagsFromString('--heap-growing-percent=10');
  const signal = untilSignal(log);
  const stop = new AbortController();
  const metrics = new Metrics();
  const server = await connectCluster(config.cluster, metrics);
  const clock = systemClock;
  const random = Math.random;
  const transport = new PermissionTracker(new AvailabilityTracker(server, log, clock), log, clock);
  const informers = new InformerFactory({
    transport,
    clock,
    random,
    log,
    metrics,
    labelSelectors: forwardingSelectors,
    // A page of slices lives while it is read in pieces: 500 of them would outlive the young generation.
    pageSize: 100,
  });
  const events = new EventSender({ transport, component: 'servicenet-node', clock, random, log, metrics });
  try {
    const agent = new NodeAgent({
      context: { informers, events, clock, random, log, metrics },
      host: localHost,
      nodeName: config.nodeName,
      forwarding: forwardingOptions(config),
      markMask: config.markMask,
      minSyncPeriod: config.minSyncPeriod,
      fullSyncPeriod: config.syncPeriod,
      besideOtherProxies: config.besideOtherProxies,
      ...(config.healthz === undefined ? {} : { healthz: config.healthz }),
    });
    const telemetry = await startTelemetryServer({
      address: config.metrics,
      metrics,
      ready: () => [...informers.healthChecks(), transport.healthCheck()],
      texts: { '/proxyMode': 'nftables' },
      log,
    });
    try {
      const running = agent.run(stop.signal);
      informers.start(stop.signal);
      log.info(
        { node: config.nodeName, features: config.features, server: server.server },
        'node agent started',
      );
      await Promise.race([signal.received, running]);
      stop.abort();
      await running;
    } finally {
      stop.abort();
      await Promise.all([informers.finished(), events.close()]);
      await telemetry.close();
    }
  } finally {
    await server.close();
    signal.release();
  }
}

function forwardingOptions(config: NodeConfig): NodeForwardingOptions {
  return {
    families: ['IPv4', 'IPv6'],
    masqueradeAll: config.masqueradeAll,
    nodePortAddresses: config.nodePortAddresses,
    podDetection: podDetection(config.detectLocal),
    allowExternalIPs: true,
  };
}

function podDetection(detect: DetectLocal): NodeForwardingOptions['podDetection'] {
  switch (detect.mode) {
    case 'ClusterCIDR':
      return detect.cidrs.length === 0 ? undefined : { by: 'cidr', cidrs: detect.cidrs };
    case 'NodeCIDR':
      return { by: 'nodeCIDR' };
    case 'BridgeInterface':
      return { by: 'bridge', interface: detect.interface };
    case 'InterfaceNamePrefix':
      return { by: 'interfacePrefix', prefix: detect.prefix };
  }
}
