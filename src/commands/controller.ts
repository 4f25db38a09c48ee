import type { Logger } from 'pino';
import { ResourceClient } from '../client/resource-client.ts';
import { endpoints, endpointSlices, leases, type ResourceType } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import {
  endpointSliceController,
  managedByLabel,
} from '../controllers/service-endpoints/slices/slice-writer.ts';
import { mirroringController } from '../controllers/service-endpoints/endpoint-slice-mirroring/plan.ts';
import { isRecord } from '../objects/json.ts';
import type { Lease } from '../objects/types/coordination.generated.ts';
import { parseTime } from '../objects/formats/time.ts';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ControllerConfig } from '../flags/controller.ts';
import { loadControllers } from '../controllers/catalog.ts';
import { runControllers } from '../controllers/run.ts';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import { allControllers } from '../platforms/catalog.ts';
import { announceSelectors } from '../network/announcing/agent-report.ts';
import { matchesLabels } from '../objects/selectors/labels.ts';
import { createLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { connectCluster, startTelemetryServer } from './connect.ts';
import { untilSignal } from './signals.ts';

/** The Lease of kube-controller-manager, also where it is part of another program. */
const leaseName = 'kube-controller-manager';
/** The field managers of programs that contain kube-controller-manager. */
const programs = new Set(['kube-controller-manager', 'k3s', 'kubelite']);

/** Kinds that both a controller here and kube-controller-manager write. */
interface SharedKind {
  readonly resource: ResourceType;
  /** Selects the objects that the controller writes. */
  readonly labelSelector?: string;
}

const sharedKinds: ReadonlyMap<string, SharedKind> = new Map([
  ['endpoints-controller', { resource: endpoints }],
  [
    'endpointslice-controller',
    { resource: endpointSlices, labelSelector: managedBy(endpointSliceController) },
  ],
  [
    'endpointslice-mirroring-controller',
    { resource: endpointSlices, labelSelector: managedBy(mirroringController) },
  ],
]);

function managedBy(controller: string): string {
  return `${managedByLabel}=${controller}`;
}

/** The number of objects that are checked. */
const sample = 100;

/**
 * Warns, with what to do, when kube-controller-manager is alive and writes the objects of a chosen controller. With two
 * writers each undoes the other's changes; no lasting damage follows. A failed check does not prevent the start.
 */
export async function warnOfConflicts(
  transport: Transport,
  chosen: readonly string[],
  now: number,
  log: Logger,
): Promise<readonly string[]> {
  const ours = chosen.filter((name) => sharedKinds.has(name));
  if (ours.length === 0) return [];
  try {
    if (!(await isAlive(transport, now))) return [];
    const found: string[] = [];
    const writers = new Set<string>();
    for (const name of ours) {
      const what = sharedKinds.get(name);
      const writer = what === undefined ? undefined : await writerOf(transport, what);
      if (writer === undefined) continue;
      found.push(name);
      writers.add(writer);
    }
    if (found.length > 0) {
      const off = `--controllers=*,${found.map((name) => `-${name}`).join(',')}`;
      const writer = [...writers].join(', ');
      log.warn(
        { controllers: found, writer },
        `${writer} writes the same objects: start its kube-controller-manager with ${off}, or leave those controllers out here, or name the Services to serve with --service-selector`,
      );
    }
    return found;
  } catch (error) {
    log.info({ err: error }, 'could not find out whether others write the same objects');
    return [];
  }
}

/** True when its Lease was renewed recently. With a wrong clock here the warning is missing or superfluous. */
async function isAlive(transport: Transport, now: number): Promise<boolean> {
  const { items } = await new ResourceClient(transport, leases).list({
    namespace: 'kube-system',
    fieldSelector: `metadata.name=${leaseName}`,
  });
  return items.some(({ spec }: Lease) => {
    const renewed = spec.renewTime === undefined ? undefined : parseTime(spec.renewTime);
    const lasts = (spec.leaseDurationSeconds ?? 15) * 1000;
    return (spec.holderIdentity ?? '') !== '' && renewed !== undefined && now - renewed < 4 * lasts;
  });
}

/** The other program that writes such objects, if any. */
async function writerOf(
  transport: Transport,
  { resource, labelSelector }: SharedKind,
): Promise<string | undefined> {
  const { items } = await new ResourceClient(transport, resource).list({
    limit: sample,
    ...(labelSelector === undefined ? {} : { labelSelector }),
  });
  for (const { metadata } of items) {
    // That manager is the API server's, which may be part of the same program.
    if (metadata.namespace === 'default' && metadata.name === 'kubernetes') continue;
    const managers: unknown = metadata.managedFields;
    for (const entry of Array.isArray(managers) ? managers : []) {
      const name: unknown = isRecord(entry) ? entry['manager'] : undefined;
      if (typeof name === 'string' && programs.has(name)) return name;
    }
  }
  return undefined;
}

/**
 * Runs controllers against an API server until a signal comes.
 *
 * @throws {Error} when the lease is lost: another process may lead, and this one must end.
 */
export async function controller(config: ControllerConfig): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  const stopReturning = returnUnusedMemory(log);
  const metrics = new Metrics();
  const transport = await connectCluster(config.cluster, metrics);
  try {
    const { nodePorts, allocation, serviceCidrs, serviceSelector } = config;
    const chosen = allControllers.filter(({ name }) => config.controllers.includes(name));
    const makeControllers = await loadControllers(chosen);
    const ranges = { nodePorts, ...(serviceCidrs === undefined ? {} : { serviceCidrs }) };
    const running = runControllers({
      transport,
      controllers: makeControllers({
        transport,
        loadBalancer: config.loadBalancer,
        attachmentRules: config.attachments,
        serviceAllocation: { allocation, ...ranges },
      }),
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
      const warned = warnOfConflicts(transport, running.names, Date.now(), log);
      const end = await Promise.race([signal.received, running.ended]);
      await warned;
      if (end === 'lost') throw new Error('lost the lease of the leader election');
    } finally {
      await running.stop();
      await telemetry.close();
    }
  } finally {
    await transport.close();
    stopReturning();
    signal.release();
  }
}
