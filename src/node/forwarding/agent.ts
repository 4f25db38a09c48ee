import type { EventReason } from '../../objects/reasons.ts';
import type { Logger } from 'pino';
import type { EventRecorder } from '../../client/events/events.ts';
import type { ServiceChange } from '../../network/forwarding/planner.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { type Host, ProgramMissingError } from '../../host/host.ts';
import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import {
  formerDestinations,
  mayLeaveStaleFlows,
  type UdpDestination,
} from '../../network/forwarding/stale-flows.ts';
import { ipFamilies, type ParsedAddress, parseAddress } from '../../objects/address.ts';
import { isRecord } from '../../objects/json.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext, type ReconcileResult } from '../../runtime/key-loop.ts';
import { Conntrack } from './conntrack.ts';
import { ForwardingView, type NodeForwardingOptions, type Planned } from './view.ts';
import { NodeHealthServer, ServiceHealthServers, SyncHealth } from './health.ts';
import type { BindAddress } from '../listening.ts';
import { Nft } from '../nftables/nft.ts';
import { tableName } from '../nftables/elements.ts';
import { type ForeignChange, repairMs, TableWatch, worse } from '../nftables/table-watch.ts';
import { nftFamily, type SyncResult, NftablesWriter } from '../nftables/writer.ts';
import { otherProxies } from '../nftables/other-proxies.ts';
import { ProxyMetrics } from './metrics.ts';
import { errorMessage } from '../../objects/status.ts';

/** Reports problems of Services and slices to users. */
export class ProblemReports {
  readonly #log: Logger;
  readonly #events: EventRecorder;
  readonly #service: (key: ObjectKey) => Service | undefined;

  /** @param service finds the Service of a key. */
  constructor(log: Logger, events: EventRecorder, service: (key: ObjectKey) => Service | undefined) {
    this.#log = log;
    this.#events = events;
    this.#service = service;
  }

  /** Logs what has come, each once: by its object's key, and in an Event on the Service. */
  report(changes: readonly ServiceChange[]): void {
    for (const { key: service, before, after } of changes) {
      const known = new Set(before?.problems.map(({ message }) => message));
      for (const { kind, key, reason, message } of after?.problems ?? []) {
        if (known.has(message)) continue;
        this.#log.warn({ kind, key, reason }, message);
        this.warn(service, reason, kind === 'Service' ? message : `${kind} ${key}: ${message}`);
      }
    }
  }

  /** Records a Warning Event on a Service, if there is one of the key. */
  warn(key: ObjectKey, reason: EventReason, message: string): void {
    const service = this.#service(key);
    if (service === undefined) return;
    this.#events.event({ ...service, apiVersion: 'v1', kind: 'Service' }, 'Warning', reason, message);
  }
}

/** Programs a node by a forwarding plan. One call at a time. */
export interface DataPath {
  /** @param touched the Services whose plans may have changed since the last sync. */
  sync(plan: ForwardingPlan, touched: Iterable<ObjectKey>): Promise<SyncResult>;
  /** The next sync compares everything with what there is, and restores it. @param isRuined makes it anew. */
  invalidate(isRuined?: boolean): void;
  /** Ends what cannot go on without its agent. */
  close?(): Promise<void>;
}

export interface NodeAgentOptions {
  /**
   * Its informers must not see Services and EndpointSlices of another proxy or with the headless label: the API
   * server filters by {@link forwardingSelectors}.
   */
  readonly context: Pick<ControllerContext, 'informers' | 'events' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly host: Host;
  /** Of the Node object. */
  readonly nodeName: string;
  readonly forwarding: NodeForwardingOptions;
  /** The address of `/healthz` and `/livez`; default none. */
  readonly healthz?: BindAddress;
  /** The bits of the packet mark that are ours (`nftables/marks.ts`). */
  readonly markMask: number;
  /** The kernel counts what it drops and refuses, for flows. Default false. */
  readonly recordsDrops?: boolean;
  /** Forwards without the kernel's help; default: nftables. */
  readonly dataPath?: DataPath;
  /** Between the starts of two syncs, at least. The first change after a pause does not wait. */
  readonly minSyncMs: number;
  /** After this time, everything is compared with the kernel again. */
  readonly fullSyncMs: number;
  /** Start even where another Service proxy is at work. Default false. */
  readonly besideOtherProxies?: boolean;
}

/** The label selectors of kube-proxy's informers, by resource: for `InformerFactoryOptions.labelSelectors`. */
export const forwardingSelectors = {
  services: '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name',
  'endpointslices.discovery.k8s.io':
    '!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name',
} as const;

/** Another Service proxy works on this node. */
export class OtherProxyError extends Error {
  override readonly name = 'OtherProxyError';
}

/** The one key of the work queue. */
const everything = 'node';

/** The time until a health check whose port was taken is tried again, if no other sync comes first. */
const healthCheckRetryMs = 30_000;

/**
 * The agent of one node: it keeps the node's kernel in line with the plan. One process may have several, a Host
 * each, on shared informers.
 */
export class NodeAgent implements Runnable {
  readonly #options: NodeAgentOptions;
  readonly #view: ForwardingView;
  readonly #dataPath: DataPath;
  readonly #conntrack: Conntrack;
  /** Undefined without nftables. */
  readonly #watch: TableWatch | undefined;
  /** What others have done to the tables since the last sync. */
  #foreign: ForeignChange | undefined;
  readonly #loop: KeyLoop<LoopContext>;
  readonly #metrics: ProxyMetrics;
  readonly #problems: ProblemReports;
  readonly #health: SyncHealth;
  readonly #healthChecks: ServiceHealthServers;
  /** Health checks whose ports are taken, as they were reported. */
  #takenPorts = new Set<string>();
  #addresses: readonly ParsedAddress[] = [];
  #lastSyncMs = Number.NEGATIVE_INFINITY;
  #nextFullSyncMs = Number.NEGATIVE_INFINITY;
  /** Since 1970: when the causes occurred of the changes that wait to be written. */
  #triggeredMs: number[] = [];
  /** UDP endpoints have changed since stale flows were last looked for. */
  #mayHaveStaleFlows = false;
  /** UDP destinations that Services had at some time since then, by address and port. */
  readonly #formerDestinations = new Map<string, UdpDestination>();
  /** Without nftables there are no flows to delete; without the program, they cannot be. */
  #hasConntrack: boolean;

  constructor(options: NodeAgentOptions) {
    const {
      context,
      host,
      nodeName,
      forwarding,
      markMask,
      recordsDrops = false,
      dataPath,
      minSyncMs,
    } = options;
    const { clock, events, informers, log, metrics } = context;
    this.#options = options;
    this.#watch =
      dataPath === undefined
        ? new TableWatch({
            ...{ host, clock, log, tables: ipFamilies.map((family) => `${nftFamily(family)} ${tableName}`) },
            changed: (change) => {
              this.#foreign = worse(this.#foreign, change);
              this.#loop.enqueue(everything, { afterMs: repairMs });
            },
          })
        : undefined;
    this.#dataPath =
      dataPath ??
      new NftablesWriter({
        host,
        markMask,
        recordsDrops,
        ...(this.#watch === undefined ? {} : { watch: this.#watch }),
      });
    this.#hasConntrack = dataPath === undefined;
    this.#conntrack = new Conntrack(host);
    this.#metrics = ProxyMetrics.of(metrics);
    this.#health = new SyncHealth(clock);
    this.#healthChecks = new ServiceHealthServers(host, this.#health);
    const started = clock.now();
    // Before the view: caches that are full already report their objects at once.
    this.#loop = new KeyLoop(
      context,
      `node_${nodeName}`,
      { workers: 1, backoff: { base: 1000, max: 30_000 } },
      () => () => this.#sync(),
    );
    this.#view = new ForwardingView(informers, nodeName, forwarding, ({ kind, triggeredMs }) => {
      const now = clock.now();
      if (kind === 'other') this.#metrics.queued(forwarding.families, now);
      else this.#metrics.changed(kind, forwarding.families, now);
      if (triggeredMs !== undefined && triggeredMs > started) this.#triggeredMs.push(triggeredMs);
      this.#health.queued();
      const afterMs = Math.max(0, this.#lastSyncMs + minSyncMs - clock.monotonic());
      this.#loop.enqueue(everything, { afterMs });
    });
    this.#loop.waitFor(this.#view);
    this.#problems = new ProblemReports(log, events, (key) => this.#view.service(key));
    this.#loop.enqueue(everything);
  }

  /**
   * Follows the API until the signal aborts, and leaves what it wrote: connections go on being forwarded.
   *
   * @throws {OtherProxyError} before anything is written.
   * @throws {NftError} where nft is missing, or the kernel refuses it.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { context, host, healthz, forwarding } = this.#options;
    const { clock, log, metrics } = context;
    const isKernel = this.#options.dataPath === undefined;
    if (isKernel) await this.#checkOtherProxies();
    const { families } = forwarding;
    const health = new NodeHealthServer({
      ...{ host, clock, log, families, health: this.#health, metrics: this.#metrics },
      isEligible: () => this.#view.isNodeEligible,
    });
    const forget = metrics.beforeScrape(() => {
      if (this.#view.plan !== undefined) this.#metrics.refusing(this.#view.plan, families);
    });
    this.#watch?.start();
    try {
      await Promise.all([
        this.#loop.run(signal),
        ...(healthz === undefined ? [] : [health.run(healthz, signal)]),
      ]);
    } finally {
      forget();
      this.#watch?.stop();
      await this.#healthChecks.close();
      await this.#dataPath.close?.();
    }
  }

  /** @throws {OtherProxyError} */
  async #checkOtherProxies(): Promise<void> {
    const { context, host, besideOtherProxies = false } = this.#options;
    const { found, unclear } = await otherProxies(host, new Nft(host));
    for (const what of unclear) {
      context.log.warn(
        { what },
        'cannot tell whether kube-proxy works on this node: make sure that it does not',
      );
    }
    if (found.length === 0 || besideOtherProxies) return;
    throw new OtherProxyError(
      `another Service proxy works on this node (${found.join(', ')}): remove kube-proxy first, with what "kube-proxy --cleanup" takes away`,
    );
  }

  async #sync(): Promise<ReconcileResult> {
    const { context, host, forwarding, nodeName, fullSyncMs } = this.#options;
    const { clock, log } = context;
    this.#lastSyncMs = clock.monotonic();
    // The first sync reads everything in any case.
    const foreign = this.#nextFullSyncMs === Number.NEGATIVE_INFINITY ? undefined : this.#foreign;
    this.#foreign = undefined;
    const isFull = foreign !== undefined || this.#lastSyncMs >= this.#nextFullSyncMs;
    if (isFull) {
      this.#addresses = await interfaceAddresses(host);
      this.#dataPath.invalidate(foreign === 'rules');
    }
    this.#health.begin();
    this.#metrics.began();
    const triggeredMs = this.#triggeredMs;
    this.#triggeredMs = [];
    const planned = this.#view.update(this.#addresses);
    if (planned === undefined) {
      log.warn({ node: nodeName }, 'the API knows no such node yet: nothing is forwarded');
      this.#health.skipped();
      return {};
    }
    this.#problems.report(planned.changes);
    // With a full sync also what could not be deleted before, or came while no agent ran.
    if (isFull || mayLeaveStaleFlows(planned.changes)) this.#mayHaveStaleFlows = true;
    this.#remember(formerDestinations(planned.changes));
    try {
      await this.#program(planned, foreign);
    } catch (error) {
      this.#triggeredMs = [...triggeredMs, ...this.#triggeredMs];
      if (foreign !== undefined) this.#foreign = worse(this.#foreign, foreign);
      this.#metrics.failed(forwarding.families);
      const message = `Services are forwarded as they were before: ${errorMessage(error)}`;
      // By its name as kube-proxy has it in its Events, which reads no uid either.
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
      context.events.event(node, 'Warning', 'FailedToForward', message);
      throw error;
    }
    this.#health.synced();
    const seconds = (clock.monotonic() - this.#lastSyncMs) / 1000;
    this.#metrics.synced(forwarding.families, isFull, seconds, triggeredMs, clock.now());
    if (isFull) this.#nextFullSyncMs = this.#lastSyncMs + fullSyncMs;
    await this.#deleteStaleFlows(planned.plan);
    await this.#serveHealthChecks(planned.plan);
    const untilFullSync = Math.max(0, this.#nextFullSyncMs - clock.monotonic());
    return {
      requeueAfterMs:
        this.#takenPorts.size === 0 ? untilFullSync : Math.min(healthCheckRetryMs, untilFullSync),
    };
  }

  async #program({ plan, changes }: Planned, foreign: ForeignChange | undefined): Promise<void> {
    const { clock, log } = this.#options.context;
    const started = clock.monotonic();
    const { transactions, elements, former } = await this.#dataPath.sync(
      plan,
      changes.map(({ key }) => key),
    );
    this.#remember(former);
    if (transactions === 0) return;
    const milliseconds = Math.round(clock.monotonic() - started);
    if (foreign !== undefined && (foreign !== 'perhaps' || changes.length === 0)) {
      log.warn(
        { reason: 'TableChanged', transactions, elements, milliseconds },
        'somebody else has changed the rules of Services in the kernel: restored them',
      );
      return;
    }
    log.debug({ transactions, elements, milliseconds }, 'wrote Services into the kernel');
  }

  #remember(former: readonly UdpDestination[]): void {
    if (!this.#hasConntrack) return;
    for (const each of former) {
      this.#formerDestinations.set(`${each.address ?? each.family} ${each.port}`, each);
    }
  }

  /** Only once the kernel leads new flows to the right endpoints. Rules without it are better than none: errors are logged. */
  async #deleteStaleFlows(plan: ForwardingPlan): Promise<void> {
    if (!this.#mayHaveStaleFlows || !this.#hasConntrack) return;
    const { clock, log } = this.#options.context;
    try {
      for (const family of this.#options.forwarding.families) {
        const started = clock.monotonic();
        const former = this.#formerDestinations.values();
        const deleted = await this.#conntrack.deleteStaleFlows(plan, former, family);
        this.#metrics.deletedFlows(family, deleted, (clock.monotonic() - started) / 1000);
        if (deleted > 0) log.debug({ family, deleted }, 'deleted stale UDP flows');
      }
      this.#mayHaveStaleFlows = false;
      this.#formerDestinations.clear();
    } catch (error) {
      if (error instanceof ProgramMissingError) {
        this.#hasConntrack = false;
        this.#formerDestinations.clear();
        log.warn(
          'there is no program conntrack, so that UDP clients may stay with endpoints that are gone: install the package conntrack',
        );
      } else {
        log.warn({ err: error }, 'cannot delete stale UDP flows, will retry with the next change');
      }
    }
  }

  async #serveHealthChecks(plan: ForwardingPlan): Promise<void> {
    const taken = new Set<string>();
    for (const { service, port, error } of await this.#healthChecks.sync(plan)) {
      const id = `${service} ${port}`;
      taken.add(id);
      if (this.#takenPorts.has(id)) continue;
      const { log } = this.#options.context;
      log.warn({ key: service, port, err: error }, 'cannot serve the health check of a Service yet');
      const why = errorMessage(error);
      const message = `node ${this.#options.nodeName} cannot serve health checks on port ${port}: ${why}`;
      this.#problems.warn(service, 'FailedToStartServiceHealthcheck', message);
    }
    this.#takenPorts = taken;
  }
}

/** The addresses of all interfaces of a machine, by `ip` (package iproute2). @throws {Error} where it fails. */
async function interfaceAddresses(host: Host): Promise<readonly ParsedAddress[]> {
  const { exitCode, stdout, stderr } = await host.exec('ip', ['-json', 'address', 'show']);
  if (exitCode !== 0) throw new Error(`ip address show: ${stderr.trim()}`);
  const links: unknown = JSON.parse(stdout);
  if (!Array.isArray(links)) return [];
  return links.flatMap((link: unknown) => {
    const addresses: unknown = isRecord(link) ? link['addr_info'] : undefined;
    if (!Array.isArray(addresses)) return [];
    return addresses.flatMap((address: unknown) => {
      const local: unknown = isRecord(address) ? address['local'] : undefined;
      return typeof local === 'string' ? (parseAddress(local) ?? []) : [];
    });
  });
}
