import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ControllerConfig } from '../config/controller.ts';
import { controllersBesideACluster, runControllers } from '../controllers/index.ts';
import { announceSelectors } from '../network/announcing/announcer-lease.ts';
import { matchesLabels } from '../objects/labels/labels.ts';
import { createLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster } from './cluster.ts';
import { warnOfOtherWriters } from './other-writers.ts';
import { untilSignal } from './signals.ts';
import { startTelemetryServer } from './telemetry-server.ts';

/**
 * Runs controllers against an API server until a signal comes.
 *
 * @throws {Error} when the lease is lost: another process may lead, and this one must end.
 */
export async function controller(config: ControllerConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  const metrics = new Metrics();
  const transport = await connectCluster(config.cluster, metrics);
  try {
    const { nodePorts, allocation, serviceCidrs, serviceSelector } = config;
    const running = runControllers({
      transport,
      catalog: controllersBesideACluster(
        { transport, allocation, nodePorts, ...(serviceCidrs === undefined ? {} : { serviceCidrs }) },
        { transport, loadBalancer: config.loadBalancer, attachmentRules: config.attachments },
      ),
      controllers: config.controllers,
      log,
      metrics,
      labelSelectors: announceSelectors,
      serves: ({ metadata }) => matchesLabels(serviceSelector, metadata.labels),
      ...(config.leaderElection === undefined
        ? {}
        : { leaderElection: { ...config.leaderElection, identity: `${hostname()}_${randomUUID()}` } }),
    });
    const telemetry = await startTelemetryServer({
      address: config.metrics,
      metrics,
      ready: () => running.healthChecks(),
      log,
    }).catch(async (error: unknown) => {
      await running.stop();
      throw error;
    });
    try {
      log.info({ server: transport.server, controllers: running.names, allocation }, 'controllers started');
      const warned = warnOfOtherWriters(transport, running.names, Date.now(), log);
      const end = await Promise.race([signal.received, running.ended]);
      await warned;
      if (end === 'lost') throw new Error('lost the lease of the leader election');
    } finally {
      await running.stop();
      await telemetry.close();
    }
  } finally {
    await transport.close();
    signal.release();
  }
}
