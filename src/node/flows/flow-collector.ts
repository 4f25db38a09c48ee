import { decode } from 'dns-packet';
import type { Logger } from 'pino';
import type { Clock } from '../../client/clock.ts';
import type { Informers } from '../../client/informers/informer.ts';
import {
  egressFirewalls,
  endpointSlices,
  namespaces,
  networkPolicies,
  nodes,
  pods,
  services,
} from '../../client/resources.ts';
import type { NetlinkHost } from '../../host/host.ts';
import { type Flow, type FlowFilter, type FlowNews, matchesFlow } from '../../network/flows/flow.ts';
import { MissingNames, FlowNames } from '../../network/flows/names.ts';
import { FlowTracker, type RefusedRequest } from '../../network/flows/tracker.ts';
import type { IPFamily } from '../../objects/address.ts';
import type { ForwardingOptions } from '../../network/forwarding/node-plan.ts';
import { ClusterView } from '../../network/path/cluster-view.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { errorMessage } from '../../objects/status.ts';
import { runInSlices } from '../../telemetry/time-slice.ts';
import { trimNode, trimPod, trimService, trimSlice } from '../forwarding/view.ts';
import { NodeFlows } from './node-flows.ts';

/** Between two looks at what was denied. */
const pollMs = 1000;
/** Flows are told to a viewer together. */
const batchMs = 200;
/** Flows of a batch; beyond, they are counted. */
const maxBatch = 2000;
/** Objects that have changed are taken into account after this time; in a large cluster, after a longer one. */
const namesMs = 200;
/** What taking them into account may cost: one part of the time. */
const namesParts = 20;

/** A node whose kernel is asked. */
export interface FlowNode {
  readonly name: string;
  readonly host: NetlinkHost;
  /** The addresses of the other nodes, and the ranges of their Pods: their connections are told there. */
  readonly elsewhere: readonly string[];
}

export interface FlowSources {
  readonly informers: Informers;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodes: () => readonly FlowNode[];
  readonly families: readonly IPFamily[];
  readonly forwarding: () => ForwardingOptions;
  /** Whether NetworkPolicies and EgressFirewalls are ours: who decided is known then. */
  readonly hasPolicies: boolean;
  readonly controlPlane: readonly string[];
  readonly domain: string;
  /** Has answers of DNS told to a function, or no longer; absent: none are seen. */
  readonly onDnsAnswer?: (tell: ((answer: Buffer, client: string) => void) | undefined) => void;
  /** Has requests that the router refused told to a function, or no longer; absent: none are seen. */
  readonly onRefusedRequest?: (tell: ((request: RefusedRequest) => void) | undefined) => void;
}

interface Viewer {
  readonly filter: FlowFilter;
  readonly tell: (news: FlowNews) => void;
  batch: Map<number, Flow>;
  /** Flows that it was not told. */
  untold: number;
  /** Connections that had been lost when it came. */
  lostBefore: number;
  toldLost: number;
}

/** The caches by which flows are named. */
export function flowInformers(informers: Informers, hasPolicies: boolean) {
  return [
    informers.informer(pods, { transform: trimPod }),
    informers.informer(services, { transform: trimService }),
    informers.informer(endpointSlices, { transform: trimSlice }),
    informers.informer(nodes, { transform: trimNode }),
    informers.informer(namespaces),
    ...(hasPolicies ? [informers.informer(networkPolicies), informers.informer(egressFirewalls)] : []),
  ];
}

/** What names flows by the objects as they are, in steps: a cluster may have many. */
function* nameSteps(sources: FlowSources): Generator<undefined, FlowNames, undefined> {
  const { informers, hasPolicies, controlPlane } = sources;
  const all = <T extends KubeObject>(informer: {
    readonly cache: { values(): Iterable<T> };
  }): readonly T[] => [...informer.cache.values()];
  const view = yield* ClusterView.steps(
    {
      pods: all(informers.informer(pods, { transform: trimPod })),
      services: all(informers.informer(services, { transform: trimService })),
      slices: all(informers.informer(endpointSlices, { transform: trimSlice })),
      nodes: all(informers.informer(nodes, { transform: trimNode })),
      namespaces: all(informers.informer(namespaces)),
      policies: hasPolicies ? all(informers.informer(networkPolicies)) : [],
      firewalls: hasPolicies ? all(informers.informer(egressFirewalls)) : [],
    },
    sources.forwarding(),
  );
  // Each connection is asked about by the plan of the node that has seen it.
  for (const { name } of sources.nodes()) {
    const node = view.node(name);
    if (node !== undefined) yield* view.forwardingPlanSteps(node);
  }
  return new FlowNames(view, controlPlane);
}

/** Collects flows while there are viewers; without one, nothing of it runs. */
export class FlowCollector {
  readonly #sources: FlowSources;
  readonly #viewers = new Set<Viewer>();
  #running: Running | undefined;
  /** Starts and stops come one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(sources: FlowSources) {
    this.#sources = sources;
  }

  /**
   * Looks at flows: resolves with those that are known, then tells each that comes.
   *
   * @throws {Error} where the kernel's connection tracking cannot be followed.
   */
  async watch(
    filter: FlowFilter,
    tell: Viewer['tell'],
  ): Promise<{ readonly known: readonly Flow[]; readonly end: () => Promise<void> }> {
    const viewer: Viewer = { filter, tell, batch: new Map(), untold: 0, lostBefore: 0, toldLost: 0 };
    return await this.#inTurn(async () => {
      this.#running ??= await Running.start(this.#sources, this.#viewers);
      // What is decided by now is known, and no news.
      const known = this.#running.known().filter((flow) => matchesFlow(flow, filter));
      viewer.lostBefore = this.#running.lost;
      this.#viewers.add(viewer);
      return { known, end: () => this.#inTurn(() => this.#leave(viewer)) };
    });
  }

  /** Ends what runs, also where viewers have not left yet. */
  async close(): Promise<void> {
    await this.#inTurn(async () => {
      this.#viewers.clear();
      await this.#stop();
    });
  }

  async #leave(viewer: Viewer): Promise<void> {
    this.#viewers.delete(viewer);
    if (this.#viewers.size === 0) await this.#stop();
  }

  async #stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.stop();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

/** What there is while somebody looks. */
class Running {
  readonly #sources: FlowSources;
  readonly #viewers: ReadonlySet<Viewer>;
  readonly #tracker: FlowTracker;
  readonly #missing: MissingNames;
  readonly #nodes = new Map<string, { readonly host: NetlinkHost; readonly flows: NodeFlows }>();
  /** Those that were there at the last look. */
  #lastNodes: readonly FlowNode[] = [];
  #nodesText = '';
  /** Of nodes that have gone. */
  #lostBefore = 0;
  readonly #forget: (() => void)[] = [];
  #names: FlowNames;
  #namesUntilMs = 0;
  /** Objects are others than those that have named flows so far. */
  #isChanged = true;
  #isNaming = false;
  #lastNaming: Promise<void> = Promise.resolve();
  #isPolling = false;
  #polls: Promise<void> = Promise.resolve();

  private constructor(sources: FlowSources, viewers: ReadonlySet<Viewer>, names: FlowNames) {
    this.#sources = sources;
    this.#viewers = viewers;
    this.#names = names;
    this.#tracker = new FlowTracker({
      names: () => this.#currentNames(),
      tell: (flow) => this.#tell(flow),
    });
    this.#missing = new MissingNames({
      domain: sources.domain,
      namespaceOf: (client) => this.#currentNames().endAt(client).namespace,
      tell: (name, client) => this.#tracker.missing(name, client, sources.clock.now()),
    });
  }

  static async start(sources: FlowSources, viewers: ReadonlySet<Viewer>): Promise<Running> {
    const running = new Running(sources, viewers, await runInSlices(nameSteps(sources)));
    running.#followObjects();
    try {
      await running.#followNodes();
    } catch (error) {
      await running.stop();
      throw error;
    }
    sources.onDnsAnswer?.((answer, client) => running.#answered(answer, client));
    sources.onRefusedRequest?.((request) => running.#tracker.refused(request, sources.clock.now()));
    const polling = setInterval(() => running.#poll(), pollMs);
    const telling = setInterval(() => running.#tellViewers(), batchMs);
    running.#forget.push(() => {
      clearInterval(polling);
      clearInterval(telling);
    });
    return running;
  }

  known(): readonly Flow[] {
    this.#tracker.tick(this.#sources.clock.now());
    return this.#tracker.known();
  }

  async stop(): Promise<void> {
    this.#sources.onDnsAnswer?.(undefined);
    this.#sources.onRefusedRequest?.(undefined);
    for (const forget of this.#forget.splice(0)) forget();
    await Promise.all([this.#polls, this.#lastNaming]);
    await Promise.all([...this.#nodes.keys()].map((name) => this.#leaveNode(name)));
  }

  /** Connections that the kernel threw away, or that were forgotten. */
  get lost(): number {
    const ofNodes = [...this.#nodes.values()].reduce((sum, { flows }) => sum + flows.lost, this.#lostBefore);
    return ofNodes + this.#tracker.forgotten;
  }

  /** Agents of nodes have these caches, or keep them while they may be asked for flows. */
  #followObjects(): void {
    const changed = (): void => {
      this.#isChanged = true;
    };
    const { informers, hasPolicies } = this.#sources;
    const handler = { added: changed, updated: changed, deleted: changed };
    for (const informer of flowInformers(informers, hasPolicies))
      this.#forget.push(informer.addHandler(handler));
  }

  /** By the objects as they were a moment ago: those of a large cluster are taken into account in slices of time. */
  #currentNames(): FlowNames {
    const { clock } = this.#sources;
    if (this.#isChanged && !this.#isNaming && clock.monotonic() >= this.#namesUntilMs)
      this.#lastNaming = this.#takeObjects();
    return this.#names;
  }

  async #takeObjects(): Promise<void> {
    const { clock, log } = this.#sources;
    const beganMs = clock.monotonic();
    this.#isChanged = false;
    this.#isNaming = true;
    try {
      const names = runInSlices(nameSteps(this.#sources));
      // Those that are there at once name the flow that has asked.
      this.#names = names instanceof Promise ? await names : names;
    } catch (error) {
      log.warn({ err: error }, `flows cannot be read: ${errorMessage(error)}`);
    } finally {
      const builtMs = clock.monotonic();
      this.#namesUntilMs = builtMs + Math.max(namesMs, (builtMs - beganMs) * namesParts);
      this.#isNaming = false;
    }
  }

  /** Nodes come and go. @throws {Error} */
  async #followNodes(): Promise<void> {
    const all = this.#sources.nodes();
    if (all === this.#lastNodes) return;
    const byName = new Map(all.map((node) => [node.name, node]));
    for (const [name, { host }] of this.#nodes) {
      if (byName.get(name)?.host === host) continue;
      await this.#leaveNode(name);
      this.#nodesText = '';
    }
    const text = JSON.stringify(all.map(({ name, elsewhere }) => [name, elsewhere]));
    if (text === this.#nodesText) {
      this.#lastNodes = all;
      return;
    }
    const done = await Promise.allSettled(
      all.map(async (node) => {
        const known = this.#nodes.get(node.name);
        if (known === undefined) await this.#followNode(node);
        else await known.flows.setElsewhere(node.elsewhere);
      }),
    );
    for (const each of done) if (each.status === 'rejected') throw each.reason;
    this.#lastNodes = all;
    this.#nodesText = text;
  }

  async #followNode({ name: node, host, elsewhere }: FlowNode): Promise<void> {
    const { log, clock, families } = this.#sources;
    const flows = await NodeFlows.start({
      ...{ node, host, log, elsewhere, families, now: () => clock.now() },
      onConnection: (connection) => this.#tracker.saw(node, connection, clock.now()),
      onDenial: (denial) => this.#tracker.denied(denial),
    });
    this.#nodes.set(node, { host, flows });
  }

  async #leaveNode(name: string): Promise<void> {
    const known = this.#nodes.get(name);
    this.#nodes.delete(name);
    if (known === undefined) return;
    this.#lostBefore += known.flows.lost;
    await known.flows.stop().catch((error: unknown) => {
      // The network of a node that has gone is gone, too.
      this.#sources.log.debug({ node: name, err: error }, 'the flows of a node have ended with an error');
    });
  }

  #poll(): void {
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#polls = this.#polls.then(async () => {
      try {
        await this.#followNodes();
        await Promise.all(Array.from(this.#nodes.values(), ({ flows }) => flows.poll()));
      } catch (error) {
        this.#sources.log.warn({ err: error }, `flows cannot be read: ${errorMessage(error)}`);
      }
      const now = this.#sources.clock.now();
      this.#tracker.tick(now);
      this.#missing.tick(now);
      this.#isPolling = false;
    });
  }

  #answered(answer: Buffer, client: string): void {
    const code = answer.length < 12 ? -1 : answer.readUInt8(3) & 15;
    if (code !== noError && code !== nameError) return;
    let name: string | undefined;
    try {
      name = decode(answer).questions?.[0]?.name;
    } catch {
      // One that is too long was cut.
      return;
    }
    if (name !== undefined) this.#missing.answered(client, name, code === noError, this.#sources.clock.now());
  }

  #tell(flow: Flow): void {
    for (const viewer of this.#viewers) {
      if (!matchesFlow(flow, viewer.filter)) continue;
      if (viewer.batch.size >= maxBatch && !viewer.batch.has(flow.id)) viewer.untold++;
      else viewer.batch.set(flow.id, flow);
    }
  }

  #tellViewers(): void {
    const { lost } = this;
    for (const viewer of this.#viewers) {
      const all = lost - viewer.lostBefore + viewer.untold;
      if (viewer.batch.size === 0 && all === viewer.toldLost) continue;
      const flows = [...viewer.batch.values()];
      viewer.batch = new Map();
      viewer.toldLost = all;
      viewer.tell({ flows, lost: all });
    }
  }
}

/** Codes of DNS. */
const noError = 0;
const nameError = 3;
