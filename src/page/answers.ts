import type { Clock } from '../client/clock.ts';
import { errorWord, isForbidden, isNotFound } from '../client/errors.ts';
import { listIfServed } from '../client/resource-client.ts';
import { bgpPeers, ipPools, type ResourceType } from '../client/resources.ts';
import { ConnectionError, type Transport } from '../client/transport.ts';
import { isRecord, isStringList, type JsonRecord, listAt } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import { formatTime } from '../objects/formats/time.ts';
import { errorMessage, StatusError } from '../objects/status.ts';
import type { BGPPeer } from '../objects/types/servicenet.ts';
import { DestinationError } from '../network/path/destination.ts';
import type { ClusterView } from '../network/path/cluster-view.ts';
import { announcingNodes } from '../network/path/entry.ts';
import type { ReachQuestion } from '../network/path/reach-ends.ts';
import { reachPlanSteps } from '../network/path/reach-plan.ts';
import { reachSteps } from '../network/path/reach.ts';
import type { TraceDestination } from '../network/path/trace.ts';
import { reportIPPools } from '../platforms/cni/plan.ts';
import { editPools, poolsAmong } from '../pools/edit.ts';
import { planEdit, poolProblems } from '../pools/plan.ts';
import type { Follower } from '../view/follower.ts';
import type { JournalEntry } from '../view/rows/rows.ts';
import { egressRows, reportedPools } from '../view/rows/addresses.ts';
import { runInSlices } from '../telemetry/time-slice.ts';
import { editPolicies } from '../view/policy-edit.ts';
import type { HttpObjects } from '../network/path/http.ts';
import { type ClusterCaches, gatewayLists } from '../view/caches.ts';
import { type ProxyFlags, type TracedCluster, tracedCluster } from '../view/trace-cluster.ts';
import { type ConnectionChecker, traceConnection } from '../view/trace-connection.ts';
import { withoutApplied, watched } from '../view/watched.ts';
import { Feed } from './feed.ts';
import type { Refusal } from './gate.ts';
import {
  type BGPPeerAnswer,
  type ClusterInfo,
  type Follow,
  type JournalAnswer,
  mostJournal,
  mostReach,
  type ObjectAnswer,
  type PoolsAnswer,
  type PoolsPlanAnswer,
  type ReachAnswer,
  type ReachPlanAnswer,
  type TraceAnswer,
} from './messages.ts';
import { NotBuiltError } from './static-files.ts';
import { pastToFollow, readFollow, timeOf } from './stream.ts';
import type { Viewers } from './viewers.ts';

/** What the page asks beside its stream. An {@link AnswerError} becomes the answer that it describes. */

class AnswerError extends Error {
  override readonly name = 'AnswerError';
  readonly refusal: Refusal;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.refusal = { status, reason, message };
  }
}

/** The answer that an error becomes; undefined for a mistake of ours. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof AnswerError) return error.refusal;
  const message = errorMessage(error);
  if (error instanceof NotBuiltError) return { status: 503, reason: 'NotBuilt', message };
  if (error instanceof DestinationError) return { status: 400, reason: 'BadRequest', message };
  if (error instanceof ConnectionError) return { status: 503, reason: 'Disconnected', message };
  if (isNotFound(error)) return { status: 404, reason: 'NotFound', message };
  if (isForbidden(error)) return { status: 403, reason: 'Forbidden', message };
  if (error instanceof StatusError) return { status: 502, reason: errorWord(error), message };
  return undefined;
}

/** Lists may take so long before an answer says so. */
const completeMs = 30_000;
/** Without these, who reaches whom is not known. */
const reachKinds = new Set(['Pod', 'Namespace', 'NetworkPolicy', 'EgressFirewall']);
/** Between two packets that are sent. */
const checkMs = 1000;

export interface AnswerOptions {
  readonly transport: Transport;
  readonly viewers: Viewers;
  readonly cluster: ClusterInfo;
  readonly clock: Clock;
  readonly proxy: ProxyFlags;
  /** Undefined: no packet can be sent from here; `cluster.whyNoCheck` says why. */
  readonly checker: ConnectionChecker | undefined;
}

export class Answers {
  readonly #options: AnswerOptions;
  #checkedAt = -checkMs;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** `GET /data/state`. @returns JSON. */
  async state(query: URLSearchParams): Promise<string> {
    const { cluster, clock, viewers } = this.#options;
    const given = Object.fromEntries(query);
    const follow: Follow | undefined = readFollow({ view: 'map', ...given }, cluster.onlyNamespace);
    if (follow === undefined) throw new AnswerError(400, 'BadRequest', 'there is no such view');
    if (follow.view === 'flows')
      throw new AnswerError(400, 'BadRequest', 'servicenet flows -o json tells flows');
    const follower = await this.#follower();
    const atMs = askedTime(follow.at);
    if (atMs !== undefined)
      return await new Feed(follow, await pastToFollow(viewers, atMs), cluster, 0, () => atMs).state();
    follower.flush();
    return await new Feed(follow, follower, cluster, 0, () => clock.now()).state();
  }

  /** `POST /data/trace`. */
  async trace(body: unknown): Promise<TraceAnswer> {
    const { cluster, clock, checker } = this.#options;
    const asked: JsonRecord = isRecord(body) ? body : {};
    const { from, to, at, protocol = 'TCP', namespace = 'default', check = false } = asked;
    const isProtocol = protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP';
    const areTexts = typeof from === 'string' && typeof to === 'string' && typeof namespace === 'string';
    if (!areTexts || !isProtocol || typeof check !== 'boolean')
      throw new AnswerError(
        400,
        'BadRequest',
        'give from and to, such as deploy/shop/cart and svc/shop/catalog:80',
      );
    const atMs = askedTime(at);
    if (check && atMs !== undefined)
      throw new AnswerError(409, 'CannotCheck', 'a packet is sent now: not into the past');
    if (check && checker === undefined)
      throw new AnswerError(409, 'CannotCheck', cluster.whyNoCheck ?? 'no packet can be sent from here');
    if (check && protocol !== 'TCP')
      throw new AnswerError(409, 'CannotCheck', 'real connections are opened by TCP alone');
    if (check) {
      const now = clock.monotonic();
      if (now - this.#checkedAt < checkMs)
        throw new AnswerError(429, 'TooManyRequests', 'one packet a second is sent: try it again');
      this.#checkedAt = now;
    }
    const caches = await this.#caches(atMs);
    const traced = await this.#traced(caches, atMs);
    const isInside = ({ address }: TraceDestination): boolean =>
      traced.view.nodeNameAt(address) !== undefined || traced.view.serviceAt(address) !== undefined;
    const toCheck: ConnectionChecker | undefined =
      check && checker !== undefined ? { check: insideAlone(checker, isInside) } : undefined;
    return await traceConnection(
      traced,
      { source: from, destination: to, namespace, protocol, outsideAddresses: undefined, checker: toCheck },
      () => Promise.resolve(httpObjects(caches)),
    );
  }

  /** `GET /data/reach`: what `servicenet trace --matrix -o json` prints. */
  async reach(query: URLSearchParams): Promise<ReachAnswer> {
    const view = await this.#reachView(askedTime(query.get('at') ?? undefined));
    const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
    const question = this.#reachQuestion(view, query.get('namespace'), query.get('protocol') ?? 'TCP');
    return await runInSlices(reachSteps(view, { ...question, from, to, most: mostReach }));
  }

  /** `POST /data/reach/plan`: what `servicenet trace --matrix -f … -o json` prints. */
  async reachPlan(body: unknown): Promise<ReachPlanAnswer> {
    const {
      namespace: given,
      protocol = 'TCP',
      yaml = '',
      delete: deleted = [],
    } = isRecord(body) ? body : {};
    if (typeof yaml !== 'string' || !isStringList(deleted))
      throw new AnswerError(
        400,
        'BadRequest',
        'give NetworkPolicies as yaml, or names of policies to delete',
      );
    const view = await this.#reachView(undefined);
    const question = this.#reachQuestion(view, given, protocol);
    const { objectsInYaml } = await import('../client/yaml.ts');
    const { policies, namespaces, problems } = refusing(() =>
      editPolicies(view, objectsInYaml(yaml), deleted, question.namespace),
    );
    return { changes: await runInSlices(reachPlanSteps(view, policies, namespaces, question)), problems };
  }

  /** @throws {AnswerError} where something that decides may not be read: no answer is better than a wrong one. */
  async #reachView(atMs: number | undefined): Promise<ClusterView> {
    const caches = await this.#caches(atMs);
    const hidden = caches.forbidden().filter((kind) => reachKinds.has(kind));
    if (hidden.length === 0) return (await this.#traced(caches, atMs)).view;
    const message = `${hidden.join(', ')}: may not be listed, so who reaches whom is not known`;
    throw new AnswerError(403, 'Forbidden', message);
  }

  #reachQuestion(view: ClusterView, namespace: unknown, protocol: unknown): ReachQuestion {
    const isProtocol = protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP';
    if (typeof namespace !== 'string' || !isProtocol)
      throw new AnswerError(400, 'BadRequest', 'give a namespace, and TCP, UDP or SCTP as protocol');
    if (!view.hasNamespace(namespace))
      throw new AnswerError(404, 'NotFound', `there is no namespace ${namespace}`);
    return { namespace, protocol, by: 'workload' };
  }

  /** `GET /data/pools`: what `servicenet pools -o json` prints, and BGPPeers. */
  async pools(): Promise<PoolsAnswer> {
    const { transport, clock } = this.#options;
    const { caches, tables } = await this.#follower();
    const egress = [...caches.egressIPs.cache.values()].flatMap(egressRows);
    const [ofPods, peers] = await Promise.all([shown(transport, ipPools), shown(transport, bgpPeers)]);
    const pools = reportedPools(tables.pooledCluster(), egress, reportIPPools(ofPods), clock.now());
    return peers.length === 0 ? pools : { ...pools, bgpPeers: peers.map(peerOf) };
  }

  /** `POST /data/pools/plan`: what `servicenet pools plan -o json` prints. */
  async poolsPlan(body: unknown): Promise<PoolsPlanAnswer> {
    const { yaml = '', delete: deleted = [] } = isRecord(body) ? body : {};
    const areNames = Array.isArray(deleted) && deleted.every((name) => typeof name === 'string');
    if (typeof yaml !== 'string' || !areNames)
      throw new AnswerError(400, 'BadRequest', 'give AddressPools as yaml, or names of pools to delete');
    const { tables } = await this.#follower();
    const cluster = tables.pooledCluster();
    const now = this.#options.clock.now();
    const { objectsInYaml } = await import('../client/yaml.ts');
    const edited = refusing(() =>
      editPools(cluster.pools, poolsAmong(objectsInYaml(yaml), 'this'), deleted, now),
    );
    return {
      effects: planEdit({ ...cluster, edited, nowMs: now }),
      problems: poolProblems(edited, cluster.forbidden),
    };
  }

  /** `GET /data/object`. */
  async object(query: URLSearchParams): Promise<ObjectAnswer> {
    const { transport, cluster } = this.#options;
    const kind = query.get('kind') ?? '';
    const name = query.get('name') ?? '';
    const namespace = query.get('namespace') ?? '';
    const resource = Object.values(watched).find((each: ResourceType) => each.kind === kind);
    const isElsewhere = cluster.onlyNamespace !== undefined && namespace !== cluster.onlyNamespace;
    if (resource === undefined || name === '' || (resource.namespaced && (namespace === '' || isElsewhere)))
      throw new AnswerError(404, 'NotFound', 'there is no such object to show');
    const parts = [
      ...(resource.group === '' ? ['api'] : ['apis', resource.group]),
      resource.version,
      ...(resource.namespaced ? ['namespaces', namespace] : []),
      ...[resource.plural, name],
    ];
    const path = `/${parts.map(encodeURIComponent).join('/')}`;
    const object: unknown = (await transport.request('GET', path)).json();
    if (!isRecord(object) || !isRecord(object['metadata'])) throw new Error(`${path} is no object`);
    const { yamlText } = await import('../client/yaml.ts');
    const { managedFields, ...metadata } = object['metadata'];
    return {
      yaml: yamlText(shownObject({ ...object, metadata })),
      managedFields: managedFields === undefined ? '' : yamlText(managedFields),
    };
  }

  /** `GET /data/journal`. */
  async journal(query: URLSearchParams): Promise<JournalAnswer> {
    await this.#follower();
    const { journal } = this.#options.viewers;
    const [fromMs, toMs] = [
      askedTime(query.get('from') ?? undefined),
      askedTime(query.get('to') ?? undefined),
    ];
    const { knownSince } = journal.row;
    const asked = Number(query.get('most') ?? mostJournal);
    const most = asked > 0 ? Math.min(Math.ceil(asked), mostJournal) : mostJournal;
    const changes =
      fromMs !== undefined && toMs === undefined
        ? journal.near(fromMs, 'after', most)
        : journal.near(toMs ?? Infinity, 'before', most);
    const isIn = ({ time }: JournalEntry): boolean => fromMs === undefined || Date.parse(time) > fromMs;
    return { ...(knownSince === undefined ? {} : { knownSince }), changes: changes.filter(isIn) };
  }

  /** What is watched, as it was at a time or as it is. @throws {AnswerError} it is not known what was. */
  async #caches(atMs: number | undefined): Promise<ClusterCaches> {
    const { caches } = await this.#follower();
    if (atMs === undefined) return caches;
    const { viewers } = this.#options;
    const past = await viewers.past(atMs);
    if (past !== undefined) return past.caches;
    const since = formatTime(viewers.journal.beginMs ?? 0);
    throw new AnswerError(400, 'BadRequest', `what was before ${since} is not known`);
  }

  /** The cluster as packets find it. @param atMs when its objects were so; undefined: now. */
  async #traced(caches: ClusterCaches, atMs: number | undefined): Promise<TracedCluster> {
    const { transport, clock, proxy } = this.#options;
    const objects = {
      namespaces: [...caches.namespaces.cache.values()],
      nodes: [...caches.nodes.cache.values()],
      pods: [...caches.pods.cache.values()],
      services: [...caches.services.cache.values()],
      slices: [...caches.slices.cache.values()],
      policies: [...caches.policies.cache.values()],
      firewalls: [...caches.firewalls.cache.values()],
      egressIPs: [...caches.egressIPs.cache.values()],
      egressQoSes: [...caches.egressQoSes.cache.values()],
      attachments: [...caches.attachments.cache.values()],
      pools: [...caches.pools.cache.values()],
      agents: announcingNodes([...caches.leases.cache.values()], atMs ?? clock.now()),
    };
    const hidesAnnouncers = caches.leases.syncProblem === 'Forbidden';
    const cidrs = [...caches.serviceCIDRs.cache.values()];
    return await tracedCluster(transport, objects, cidrs, proxy, hidesAnnouncers);
  }

  /** The cluster once all of it has been read. */
  async #follower(): Promise<Follower> {
    const { viewers, clock } = this.#options;
    const { follower } = viewers;
    // A sleep that goes on would keep the process.
    const done = new AbortController();
    const isLate = clock.sleep(completeMs, done.signal).then(() => true);
    const isComplete = follower.complete().then(() => false);
    if (await Promise.race([isComplete, isLate]).finally(() => done.abort())) {
      const { disconnected } = follower.status;
      const message = disconnected?.message ?? 'the API server has not sent all objects yet: try it again';
      throw new AnswerError(503, 'Disconnected', message);
    }
    return follower;
  }
}

/** A time that is asked for; undefined: now. @throws {AnswerError} it is no time. */
function askedTime(text: unknown): number | undefined {
  if (text === undefined) return undefined;
  const atMs = typeof text === 'string' ? timeOf(text) : undefined;
  if (atMs === undefined) throw new AnswerError(400, 'BadRequest', 'give a time as 2026-11-27T20:41:05Z');
  return atMs;
}

/** What decides where requests of HTTP go. */
function httpObjects(caches: ClusterCaches): HttpObjects {
  const ofGateways = [
    ...[caches.gatewayClasses, caches.gateways, caches.listenerSets, caches.httpRoutes],
    ...[caches.grpcRoutes, caches.tlsRoutes, caches.grants],
  ];
  const areHidden = ofGateways.some(({ syncProblem }) => syncProblem === 'Forbidden');
  return {
    ingresses: [...caches.ingresses.cache.values()],
    routes: [...caches.routes.cache.values()],
    classes: [...caches.ingressClasses.cache.values()],
    gateways: areHidden ? 'forbidden' : gatewayLists(caches),
  };
}

/** Connections to addresses of the cluster alone: of Pods, of nodes and of Services. */
function insideAlone(
  checker: ConnectionChecker,
  isInside: (destination: TraceDestination) => boolean,
): ConnectionChecker['check'] {
  return async (source, destination, plan) => {
    if (!isInside(destination))
      throw new AnswerError(
        409,
        'CannotCheck',
        `${destination.address} is not in the cluster: nothing is sent there`,
      );
    const endpoints = plan.endpoints.filter((endpoint) => isInside({ ...destination, ...endpoint }));
    try {
      return await checker.check(source, destination, { ...plan, endpoints });
    } catch (error) {
      throw new AnswerError(409, 'CannotCheck', errorMessage(error));
    }
  };
}

/** The objects of a kind that is not watched; none, where they are not served or may not be read. */
async function shown<T extends KubeObject>(
  transport: Transport,
  type: ResourceType<T>,
): Promise<readonly T[]> {
  try {
    return (await listIfServed(transport, type)) ?? [];
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}

function peerOf({ metadata, spec, status }: BGPPeer): BGPPeerAnswer {
  const { peerAddress, myASN, peerASN } = spec;
  return { name: metadata.name ?? '', peerAddress, myASN, peerASN, sessions: status?.sessions ?? [] };
}

/** What a user has written wrongly. */
function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new AnswerError(400, 'BadRequest', errorMessage(error));
  }
}

/** Without the values of environments, and what `kubectl apply` remembers. */
function shownObject(object: Readonly<Record<string, unknown>>): unknown {
  const { metadata, spec } = object;
  const rest = withoutApplied({ metadata: isRecord(metadata) ? metadata : {} } satisfies KubeObject);
  if (object['kind'] !== 'Pod' || !isRecord(spec)) return { ...object, ...rest };
  const withoutValues = (list: string): Readonly<Record<string, unknown>> =>
    spec[list] === undefined ? {} : { [list]: listAt(spec, list).map(withoutEnvironment) };
  const lists = ['containers', 'initContainers', 'ephemeralContainers'].map(withoutValues);
  return { ...object, ...rest, spec: Object.assign({}, spec, ...lists) as unknown };
}

function withoutEnvironment(container: unknown): unknown {
  if (!isRecord(container) || container['env'] === undefined) return container;
  const env = listAt(container, 'env').map((each) => {
    if (!isRecord(each) || each['value'] === undefined) return each;
    const { value: _, ...named } = each;
    return named;
  });
  return { ...container, env };
}
