import type { ResourceClient } from '../../client/resource-client.ts';
import type { BGPPeer, BGPPeerSession } from '../../objects/types/servicenet.ts';
import { isDeepStrictEqual } from 'node:util';
import type { Peer, PeerRoute } from '../../network/bgp/route.ts';
import { BGPSession, type BGPSessionOptions, type BGPSessionStatus } from './bgp-session.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { bgpPeers } from '../../client/resources.ts';
import type { Host } from '../../host/host.ts';
import { type Announcer, planAnnouncement } from '../../network/announcing/announcement-plan.ts';
import { announcerOf } from '../../network/announcing/agent-report.ts';
import { type PeerProblem, peersOf, bgpRoutes } from '../../network/announcing/bgp.ts';
import type { ServiceAddress } from '../../network/announcing/assigned-addresses.ts';
import { formatTime } from '../../objects/formats/time.ts';
import type { ControllerContext } from '../../runtime/context.ts';
import { Wakeup } from '../../client/clock.ts';
import type { AnnouncingView } from '../../network/announcing/agent-io.ts';

/** The longest name that a field manager may have (apimachinery `validation.FieldManagerMaxLength`). */
const maxManagerLength = 128;

/**
 * Writes the session of a node into `status.sessions` of its BGPPeers, each node its own entry by server-side apply. What is
 * already there is not written again.
 */
export class BGPPeerStatusWriter {
  readonly #client: ResourceClient<BGPPeer>;
  readonly #node: string;
  /** The last written status, by the name of the peer: the cache may not have it yet. */
  readonly #written = new Map<string, string>();

  constructor(client: ResourceClient<BGPPeer>, node: string) {
    this.#client = client;
    this.#node = node;
  }

  /**
   * @param session undefined: the node has none with this peer.
   * @throws what the API server answers.
   */
  async write({ metadata, status }: BGPPeer, session: BGPPeerSession | undefined): Promise<void> {
    const { name = '', uid = '' } = metadata;
    const key = `${name} ${uid}`;
    const own = status?.sessions?.find(({ node }) => node === this.#node);
    const text = JSON.stringify(session ?? null);
    if ((this.#written.get(key) ?? JSON.stringify(sorted(own) ?? null)) === text) return;
    await this.#client.applyPatch(
      { metadata: { name }, status: { sessions: session === undefined ? [] : [session] } },
      {
        subresource: 'status',
        fieldManager: `servicenet-node/${this.#node}`.slice(0, maxManagerLength),
        force: true,
      },
    );
    this.#written.set(key, text);
  }

  /** Forgets peers that are gone. */
  retain(peers: Iterable<BGPPeer>): void {
    const keys = new Set([...peers].map(({ metadata }) => `${metadata.name ?? ''} ${metadata.uid ?? ''}`));
    for (const key of this.#written.keys()) if (!keys.has(key)) this.#written.delete(key);
  }
}

/** The members in the order of {@link BGPPeerSession}. */
function sorted(session: BGPPeerSession | undefined): BGPPeerSession | undefined {
  if (session === undefined) return undefined;
  const { node, reason, message, since, warnings } = session;
  return { node, reason, message, since, ...(warnings === undefined ? {} : { warnings }) };
}

/** The routes for one peer. */
export interface PeerRoutes {
  readonly peer: Peer;
  /** By `prefixKey`. */
  readonly routes: ReadonlyMap<string, PeerRoute>;
}

/** The BGP sessions of a node, one for each peer, independent of each other. */
export class BGPSpeaker {
  readonly #options: Omit<BGPSessionOptions, 'peer'>;
  readonly #sessions = new Map<string, BGPSession>();
  /** Sessions that are closing. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: Omit<BGPSessionOptions, 'peer'>) {
    this.#options = options;
  }

  /** Of each peer, in the order of their names. */
  get statuses(): readonly BGPSessionStatus[] {
    return [...this.#sessions.values()]
      .map((session) => session.status)
      .toSorted((a, b) => (a.peer < b.peer ? -1 : 1));
  }

  /** Announces routes to peers; ends the sessions with others. A peer whose settings have changed gets a new session. */
  sync(wanted: readonly PeerRoutes[]): void {
    const peers = new Map(wanted.map(({ peer }) => [peer.name, peer]));
    for (const [name, session] of this.#sessions) {
      const peer = peers.get(name);
      if (isDeepStrictEqual(peer, session.peer)) continue;
      this.#sessions.delete(name);
      this.#end(session.stop(peer === undefined ? 'the BGPPeer is gone' : 'the BGPPeer has changed'));
    }
    for (const { peer, routes } of wanted) {
      const session = this.#sessions.get(peer.name);
      if (session !== undefined) {
        session.announce(routes);
        continue;
      }
      const added = new BGPSession({ ...this.#options, peer });
      this.#sessions.set(peer.name, added);
      added.announce(routes);
      added.start();
    }
  }

  /**
   * Ends all sessions. Peers with graceful restart keep the routes for the restart time; others, and all if nothing
   * is announced, get a NOTIFICATION.
   *
   * @param text for their operators (RFC 9003).
   */
  async close(text: string): Promise<void> {
    for (const session of this.#sessions.values())
      this.#end(session.isKept ? session.leave() : session.stop(text));
    this.#sessions.clear();
    await Promise.all(this.#ending);
  }

  #end(ending: Promise<void>): void {
    const ended = ending.finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

/** What the routes of a node follow from, besides its BGPPeers. */
export interface RoutePlan {
  readonly view: AnnouncingView;
  /** Whether routes may be announced now. */
  readonly mayAnnounce: boolean;
  /** The other nodes whose agents announce, while this one is being drained. */
  readonly others: readonly Announcer[];
}

export interface BGPAgentOptions {
  readonly context: Pick<ControllerContext, 'informers' | 'clock' | 'random' | 'log'>;
  readonly host: Host;
  readonly nodeName: string;
  /** Whether connections go on being forwarded while the agent does not run. */
  readonly forwardingOutlives: boolean;
  /** A session has ended, or did not come about. */
  readonly failed: (peer: string, reason: string) => void;
  /** {@link BGPAgent.statuses} have changed. */
  readonly changed: () => void;
  /** Writes `status.sessions` of BGPPeers. */
  readonly client: ResourceClient<BGPPeer>;
}

/** Milliseconds in which changes are collected. */
const collectMs = 20;

/** Milliseconds between two writes of statuses, at least: a session that keeps failing causes no more writes. */
const statusPauseMs = 1000;

/** Milliseconds between two plans, at most. */
const maxPauseMs = 600_000;

/**
 * Announces addresses of LoadBalancer Services from one node to its BGP peers. Every node announces all that it may, and
 * routers share connections among them; so a plan needs other nodes only while this one is drained.
 */
export class BGPAgent {
  readonly #options: BGPAgentOptions;
  readonly #objects: Informer<BGPPeer>;
  readonly #speaker: BGPSpeaker;
  readonly #changes: Wakeup;
  /** Wakes when a status may need to be written. */
  readonly #statusChanges: Wakeup;
  readonly #writer: BGPPeerStatusWriter;
  /** Undefined: not known yet, so that no session begins, the first routes of which replace those of the last agent. */
  #plan: RoutePlan | undefined;
  #problems: readonly PeerProblem[] = [];
  /** Milliseconds since 1970. */
  #problemsSinceMs = 0;
  #isFailing = false;

  constructor(options: BGPAgentOptions) {
    const { context, host, changed, client, failed, nodeName } = options;
    const { clock, random, log, informers } = context;
    this.#options = options;
    this.#changes = new Wakeup(clock);
    this.#statusChanges = new Wakeup(clock);
    this.#writer = new BGPPeerStatusWriter(client, nodeName);
    this.#speaker = new BGPSpeaker({
      ...{ host, clock, random, log, failed },
      changed: () => {
        this.#statusChanges.wake();
        changed();
      },
    });
    this.#objects = informers.informer(bgpPeers);
    const planSoon = (): void => this.#changes.wake();
    this.#objects.addHandler({ added: planSoon, updated: planSoon, deleted: planSoon });
  }

  /** Follows this plan from now on. */
  follow(plan: RoutePlan): void {
    this.#plan = plan;
    this.#changes.wake();
  }

  /** Of each peer, in the order of their names. */
  get statuses(): readonly BGPSessionStatus[] {
    return this.#speaker.statuses;
  }

  /**
   * Announces until the signal aborts. Then peers with graceful restart keep the routes for the next agent, unless
   * there is nothing to keep: the node is drained.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { context, nodeName } = this.#options;
    if (!(await this.#objects.synced(signal))) return;
    const stop = (): void => {
      this.#changes.wake();
      this.#statusChanges.wake();
    };
    signal.addEventListener('abort', stop, { once: true });
    const writing = this.#keepStatuses(signal);
    try {
      while (!signal.aborted) {
        this.#sync();
        await this.#changes.sleep(maxPauseMs);
        await context.clock.sleep(collectMs, signal);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await Promise.all([this.#speaker.close(`the agent of ${nodeName} ends`), writing]);
    }
  }

  async #keepStatuses(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options.context;
    while (!signal.aborted) {
      try {
        await this.#writeStatuses();
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing) log.warn({ err: error }, 'cannot write the status of BGPPeers, will retry');
        this.#isFailing = true;
        this.#statusChanges.wake();
      }
      await clock.sleep(statusPauseMs, signal);
      await this.#statusChanges.sleep(maxPauseMs);
    }
  }

  async #writeStatuses(): Promise<void> {
    const { nodeName } = this.#options;
    const objects = [...this.#objects.cache.values()];
    this.#writer.retain(objects);
    const { statuses } = this;
    for (const object of objects) {
      const { name = '' } = object.metadata;
      const status = statuses.find(({ peer }) => peer === name);
      const problem = this.#problems.find(({ peer }) => peer === name);
      const session =
        status === undefined
          ? problem === undefined
            ? undefined
            : entryOf(nodeName, { ...problem, sinceMs: this.#problemsSinceMs, warnings: [] })
          : entryOf(nodeName, status);
      await this.#writer.write(object, session);
    }
  }

  #sync(): void {
    const { nodeName, forwardingOutlives } = this.#options;
    if (this.#plan === undefined) return;
    const { view, mayAnnounce, others } = this.#plan;
    const node = view.nodes.get(nodeName);
    if (node === undefined) return;
    const { peers, problems } = peersOf(this.#objects.cache.values(), node, forwardingOutlives);
    this.#report(problems);
    const names = peers.map(({ name }) => name);
    // Routes are known before a session is there: its first ones replace those that the last agent left.
    const report = { interfaces: [], sessions: names, refused: [], announced: [] };
    const self = announcerOf(node, report, true);
    const announcers = self.isCordoned ? [self, ...others] : [self];
    const isOurs = (address: ServiceAddress): boolean =>
      mayAnnounce &&
      address.announcement.bgp !== undefined &&
      planAnnouncement(address, announcers).bgp.includes(nodeName);
    const routes = bgpRoutes([...view.addresses.values()].filter(isOurs), names);
    this.#speaker.sync(peers.map((peer) => ({ peer, routes: routes.get(peer.name) ?? new Map() })));
    this.#statusChanges.wake();
  }

  #report(problems: readonly PeerProblem[]): void {
    const { log } = this.#options.context;
    const known = new Set(this.#problems.map(({ peer, message }) => `${peer} ${message}`));
    for (const { peer, reason, message } of problems) {
      if (!known.has(`${peer} ${message}`)) log.warn({ key: peer, reason, why: message }, 'no BGP session');
    }
    if (JSON.stringify(problems) === JSON.stringify(this.#problems)) return;
    this.#problems = problems;
    this.#problemsSinceMs = this.#options.context.clock.now();
  }
}

function entryOf(
  node: string,
  {
    reason,
    message,
    sinceMs,
    warnings,
  }: Pick<BGPSessionStatus, 'message' | 'sinceMs' | 'warnings'> & { readonly reason: string },
): BGPPeerSession {
  const time = formatTime(sinceMs);
  return {
    node,
    reason,
    message,
    since: time,
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
  };
}
