import { cpus } from 'node:os';
import type { Logger } from 'pino';
import { Clients, ResourceClient } from '../client/resource-client.ts';
import { type Clock, isAborted, systemClock } from '../client/clock.ts';
import { EventSender } from '../client/events/event-sender.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import { PermissionTracker } from '../client/permission-tracker.ts';
import { AvailabilityTracker } from '../client/availability-tracker.ts';
import type { DetectLocal, NodeConfig } from '../flags/node.ts';
import { bgpPeers, configMaps, leases, resourceName } from '../client/resources.ts';
import { holdNames } from '../host/sockets.ts';
import { type Host, type NetlinkHost, ProgramMissingError } from '../host/host.ts';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import { localHost, sysctlIn } from '../host/local-host.ts';
import { forwardingSelectors, NodeAgent, type NodeAgentOptions } from '../node/forwarding/agent.ts';
import { announceSelectors } from '../network/announcing/agent-report.ts';
import type { NodeForwardingOptions } from '../node/forwarding/view.ts';
import { emptyPlan } from '../network/forwarding/forwarding-plan.ts';
import { ipFamilies, type ParsedCidr } from '../objects/address.ts';
import { Conntrack, setSysctls } from '../node/forwarding/conntrack.ts';
import { otherImplementations, workloadNames } from '../runtime/other-implementations.ts';
import { createLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster, startTelemetryServer } from './connect.ts';
import { untilSignal } from './signals.ts';

/**
 * Runs the agent of this process' node until a signal comes. The kernel keeps the rules: the next agent continues
 * from them, and connections are forwarded meanwhile.
 *
 * @throws {OtherProxyError} if another Service proxy is at work.
 * @throws {NftError} if nft is missing, or the kernel refuses it.
 */
export async function node(config: NodeConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const host: NetlinkHost = { ...localHost, sysctl: sysctlIn(config.sysctlFolder) };
  const hasProxy = config.features.includes('proxy');
  const hasAnnounce = config.features.includes('announce');
  const hasPolicy = config.features.includes('policy');
  const hasEgress = config.features.includes('egress');
  if (config.cleanup) {
    await cleanUp(host, config);
    log.info({ features: config.features }, 'removed all that these features wrote into the kernel');
    return;
  }
  if (hasProxy) await setSysctls(host, config.conntrack, cpus().length, log);
  if (config.initOnly) {
    log.info('set the kernel parameters');
    return;
  }
  const signal = untilSignal(log);
  const stopReturning = returnUnusedMemory(log);
  const stop = new AbortController();
  signal.received.then(
    () => stop.abort(),
    () => stop.abort(),
  );
  const following = new AbortController();
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
    labelSelectors: { ...forwardingSelectors, ...announceSelectors },
    fieldSelectors: readsOwnNodeAlone(config) ? { nodes: `metadata.name=${config.nodeName}` } : {},
    namespaces: { [resourceName(leases)]: config.announce.leaseNamespace },
    // A page of slices lives while it is read in pieces: 500 of them would outlive the young generation.
    pageSize: 100,
  });
  const events = new EventSender({ transport, component: 'servicenet-node', clock, random, log, metrics });
  try {
    if (hasEgress && !config.besideOtherEngines) await refuseOtherEgress(new Clients(transport), stop.signal);
    const context = { informers, events, clock, random, log, metrics };
    const { nodeName } = config;
    // Features that are not asked for take no memory.
    const recordsDrops = config.flows.address !== undefined;
    const agents = [
      ...(hasProxy ? [new NodeAgent({ context, host, recordsDrops, ...proxyOptions(config) })] : []),
      ...(hasAnnounce
        ? [
            new (await import('../node/announce/agent.ts')).AnnounceAgent({
              ...{ context, host, nodeName, leases: new ResourceClient(transport, leases) },
              bgpPeers: new ResourceClient(transport, bgpPeers),
              ...config.announce,
              layer2: { on: config.announce.on, arping: config.announce.arping },
              egress: hasEgress,
            }),
          ]
        : []),
      ...(hasPolicy
        ? [
            new (await import('../node/policy/policy-agent.ts')).PolicyAgent({
              ...{ context, host, nodeName, fullSyncMs: config.fullSyncMs },
              besideOtherEngines: config.besideOtherEngines,
              workloads: (signal) => workloadNames(new Clients(transport), signal),
              ...{ clusterCIDRs: clusterCIDRs(config), recordsDrops },
            }),
          ]
        : []),
      ...(hasEgress
        ? [
            new (await import('../node/egress/egress-agent.ts')).EgressAgent({
              ...{ context, host, nodeName, markMask: config.markMask, clusterCIDRs: clusterCIDRs(config) },
            }),
          ]
        : []),
      ...(config.flows.address === undefined
        ? []
        : [
            new (await import('../node/flows/flow-agent.ts')).FlowAgent({
              ...{ context, host, nodeName, transport, hasPolicies: hasPolicy },
              ...{ address: config.flows.address, namespace: config.flows.namespace },
              configMaps: new ResourceClient(transport, configMaps),
              forwarding: forwardingOptions(config),
            }),
          ]),
    ];
    const telemetry = await startTelemetryServer({
      address: config.metrics,
      metrics,
      ready: () => [...informers.healthChecks(), transport.healthCheck()],
      texts: hasProxy ? { '/proxyMode': 'nftables' } : {},
      log,
    });
    let release = (): void => undefined;
    try {
      release = await untilAlone(config.features, clock, log, stop.signal);
      if (isAborted(stop.signal)) return;
      const running = Promise.all(agents.map((agent) => agent.run(stop.signal)));
      // They last longer than the agents: an orderly end waits for other nodes.
      informers.start(following.signal);
      log.info(
        { node: config.nodeName, features: config.features, server: server.server },
        'node agent started',
      );
      await Promise.race([signal.received, running]);
      await running;
    } finally {
      release();
      stop.abort();
      following.abort();
      await Promise.all([informers.finished(), events.close()]);
      await telemetry.close();
    }
  } finally {
    stopReturning();
    await server.close();
    signal.release();
  }
}

/** How long an agent that waits for another one's end takes to see it. */
const aloneMs = 1000;

/**
 * Waits until no other agent on the node has one of the features: two would write the same tables, and renew one Lease.
 *
 * @returns lets the next one begin.
 */
async function untilAlone(
  features: NodeConfig['features'],
  clock: Clock,
  log: Logger,
  stop: AbortSignal,
): Promise<() => void> {
  for (let round = 0; !isAborted(stop); round++) {
    const holding = await holdNames(features.map((feature) => `servicenet-${feature}`));
    if ('release' in holding) return holding.release;
    if (round === 0) {
      const message = 'another agent on this node has the feature: waiting until it ends';
      log.warn({ reason: 'OtherAgent', feature: holding.taken.slice('servicenet-'.length) }, message);
    }
    await clock.sleep(aloneMs, stop);
  }
  return () => undefined;
}

/** @throws {OtherEgressError} where another project assigns and uses egress addresses in the cluster. */
async function refuseOtherEgress(clients: Clients, signal: AbortSignal): Promise<void> {
  const others = otherImplementations('egress addresses', {
    workloads: await workloadNames(clients, signal),
  });
  if (others.length > 0) {
    throw new OtherEgressError(
      `${others.join(', ')} uses egress addresses in this cluster: leave EgressIPs to it, or remove it first`,
    );
  }
}

/** Another project uses egress addresses in the cluster. */
class OtherEgressError extends Error {
  override readonly name = 'OtherEgressError';
}

/**
 * Takes away what the named features have written, and nothing of others, whose agents may work on.
 *
 * @throws {NftError} where nft is missing: they have written nothing.
 */
async function cleanUp(host: Host, { features, markMask }: NodeConfig): Promise<void> {
  if (features.includes('announce')) {
    await (await import('../node/announce/layer2/links.ts')).removeAnnounced(host);
  }
  if (features.includes('proxy')) await removeForwarding(host);
  if (features.includes('policy')) {
    const { PolicyTable } = await import('../node/policy/policy-table.ts');
    const { Nft } = await import('../node/nftables/nft.ts');
    await new PolicyTable(new Nft(host)).cleanUp();
  }
  if (features.includes('egress')) {
    await (await import('../node/egress/egress-agent.ts')).removeEgress(host, markMask);
  }
  const { removeFlowsTable } = await import('../node/flows/node-flows.ts');
  await removeFlowsTable(new (await import('../node/nftables/nft.ts')).Nft(host));
}

/** The table of Services, and the flows that it has led somewhere. */
async function removeForwarding(host: Host): Promise<void> {
  const { NftablesWriter } = await import('../node/nftables/writer.ts');
  const former = await new NftablesWriter({ host }).cleanUp();
  if (former.length === 0) return;
  try {
    for (const family of ipFamilies) await new Conntrack(host).deleteStaleFlows(emptyPlan, former, family);
  } catch (error) {
    if (!(error instanceof ProgramMissingError)) throw error;
  }
}

/** Forwarding needs no other Node. As kube-proxy, which reads its own alone: kubelets write all of them all the time. */
function readsOwnNodeAlone({ features, flows }: NodeConfig): boolean {
  return features.every((feature) => feature === 'proxy') && flows.address === undefined;
}

function clusterCIDRs({ detectLocal }: NodeConfig): readonly ParsedCidr[] {
  return detectLocal.mode === 'ClusterCIDR' ? detectLocal.cidrs : [];
}

function proxyOptions(config: NodeConfig): Omit<NodeAgentOptions, 'context' | 'host'> {
  return {
    nodeName: config.nodeName,
    forwarding: forwardingOptions(config),
    markMask: config.markMask,
    minSyncMs: config.minSyncMs,
    fullSyncMs: config.fullSyncMs,
    besideOtherProxies: config.besideOtherProxies,
    ...(config.healthz === undefined ? {} : { healthz: config.healthz }),
  };
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
