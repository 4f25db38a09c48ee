import type { Clock } from '../client/clock.ts';
import { errorWord, isForbidden, isNotFound } from '../client/errors.ts';
import { listIfServed } from '../client/resource-client.ts';
import { bgpPeers, ipPools, type ResourceType } from '../client/resources.ts';
import { ConnectionError, type Transport } from '../client/transport.ts';
import { isRecord, listAt } from '../objects/json.ts';
import type { KubeObject } from '../objects/meta.ts';
import { errorMessage, StatusError } from '../objects/status.ts';
import type { BGPPeer } from '../objects/types/servicenet.ts';
import { DestinationError } from '../network/path/destination.ts';
import { announcingNodes } from '../network/path/entry.ts';
import type { TraceDestination } from '../network/path/trace.ts';
import { reportIPPools } from '../platforms/cni/plan.ts';
import { editPools, poolsAmong } from '../pools/edit.ts';
import { planEdit, poolProblems } from '../pools/plan.ts';
import type { Follower } from '../view/follower.ts';
import { egressRows, reportedPools } from '../view/rows/addresses.ts';
import { type ProxyFlags, tracedCluster } from '../view/trace-cluster.ts';
import { type ConnectionChecker, traceConnection } from '../view/trace-connection.ts';
import { withoutApplied, watched } from '../view/watched.ts';
import { Feed } from './feed.ts';
import type { Refusal } from './gate.ts';
import type {
  BGPPeerAnswer,
  ClusterInfo,
  Follow,
  ObjectAnswer,
  PoolsAnswer,
  PoolsPlanAnswer,
  TraceAnswer,
} from './messages.ts';
import { NotBuiltError } from './static-files.ts';
import { readFollow } from './stream.ts';
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
    const { cluster, clock } = this.#options;
    const given = Object.fromEntries(query);
    const follow: Follow | undefined = readFollow({ view: 'map', ...given }, cluster.onlyNamespace);
    if (follow === undefined) throw new AnswerError(400, 'BadRequest', 'there is no such view');
    const follower = await this.#follower();
    follower.flush();
    return new Feed(follow, follower, cluster, 0, () => clock.now()).state();
  }

  /** `POST /data/trace`. */
  async trace(body: unknown): Promise<TraceAnswer> {
    const { transport, cluster, clock, proxy, checker } = this.#options;
    const { from, to, protocol = 'TCP', namespace = 'default', check = false } = isRecord(body) ? body : {};
    const isProtocol = protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP';
    const areTexts = typeof from === 'string' && typeof to === 'string' && typeof namespace === 'string';
    if (!areTexts || !isProtocol || typeof check !== 'boolean')
      throw new AnswerError(
        400,
        'BadRequest',
        'give from and to, such as deploy/shop/cart and svc/shop/catalog:80',
      );
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
    const { caches } = await this.#follower();
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
      agents: announcingNodes([...caches.leases.cache.values()], clock.now()),
    };
    const hidesAnnouncers = caches.leases.syncProblem === 'Forbidden';
    const cidrs = [...caches.serviceCIDRs.cache.values()];
    const traced = await tracedCluster(transport, objects, cidrs, proxy, hidesAnnouncers);
    const isInside = ({ address }: TraceDestination): boolean =>
      traced.view.nodeNameAt(address) !== undefined || traced.view.serviceAt(address) !== undefined;
    const asked: ConnectionChecker | undefined =
      check && checker !== undefined ? { check: insideAlone(checker, isInside) } : undefined;
    const http = {
      ingresses: [...caches.ingresses.cache.values()],
      routes: [...caches.routes.cache.values()],
      classes: [...caches.ingressClasses.cache.values()],
    };
    return await traceConnection(
      traced,
      { source: from, destination: to, namespace, protocol, outsideAddresses: undefined, checker: asked },
      () => Promise.resolve(http),
    );
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

  /** The cluster once all of it has been read. */
  async #follower(): Promise<Follower> {
    const { viewers, clock } = this.#options;
    const { follower } = viewers;
    const isLate = clock.sleep(completeMs).then(() => true);
    if (await Promise.race([follower.complete().then(() => false), isLate])) {
      const { disconnected } = follower.status;
      const message = disconnected?.message ?? 'the API server has not sent all objects yet: try it again';
      throw new AnswerError(503, 'Disconnected', message);
    }
    return follower;
  }
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
