import { isReady, isTerminating } from '../../objects/endpoints.ts';
import type { Service } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { type ObjectKey, splitKey, type KubeObject, joinKey, keyOf } from '../../objects/meta.ts';
import { numberAt, textAt } from '../../objects/json.ts';
import { type EgressRow, externalAddresses, port, egressRows } from '../tables.ts';
import { ipFamilies } from '../../objects/address.ts';
import type { Logger } from 'pino';
import { systemClock } from '../../client/clock.ts';
import { indexByLabel } from '../../client/informers/cache.ts';
import { InformerFactory } from '../../client/informers/shared-informer.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { egressIPs, endpointSlices, nodes, services, addressPools, inGroup } from '../../client/resources.ts';
import { listIfServed } from '../../client/resource-client.ts';
import type { Transport } from '../../client/transport.ts';
import type { EgressIP } from '../../objects/types/openshift.ts';
import { isNodeReady } from '../../objects/pods.ts';
import { parseTime } from '../../objects/time.ts';

/** The content of the live view, computed from objects. Pure. */

/** One Service. */
export interface ServiceRow {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly clusterIP: string;
  readonly external: string;
  readonly ports: string;
  /** Undefined for Services without endpoints by design (ExternalName). */
  readonly endpoints: { readonly ready: number; readonly total: number } | undefined;
}

/** Which Pod of a Service answered last. */
export interface LastAnswer {
  readonly service: ObjectKey;
  /** Its name. */
  readonly pod: string;
  /** How much it has answered in all, and all Pods of the Service together. */
  readonly count: number;
  readonly all: number;
}

/** Usage of a pool in one family. */
export interface PoolRow {
  readonly name: string;
  readonly family: 'IPv4' | 'IPv6';
  readonly used: number;
  /** Rounded above 2^53. */
  readonly total: number;
}

/** An Event. */
export interface EventLine {
  /** RFC 3339. */
  readonly time: string;
  readonly warning: boolean;
  /** `service/web`. */
  readonly object: string;
  readonly namespace: string;
  readonly reason: string;
  readonly message: string;
}

/** The whole content. */
export interface View {
  readonly services: readonly ServiceRow[];
  /** Of Services whose Pods have answered something, the latest first; empty where that is not known. */
  readonly answers: readonly LastAnswer[];
  readonly pools: readonly PoolRow[];
  /** The addresses of EgressIPs, by the names of these. */
  readonly egress: readonly EgressRow[];
  /** Oldest first. */
  readonly events: readonly EventLine[];
  readonly nodes: { readonly ready: number; readonly total: number };
  /** Why the API server cannot be reached, and what to do: the rest is then the last known state. */
  readonly problem?: string;
}

/** The row of a Service. Of two families the primary one is counted, as both have the same Pods. */
export function serviceRow(service: Service, slices: readonly EndpointSlice[]): ServiceRow {
  const { metadata, spec, status } = service;
  const clusterIPs = spec.clusterIPs ?? [];
  const family = spec.ipFamilies?.[0];
  const counted = slices.filter((slice) => family === undefined || slice.addressType === family);
  let ready = 0;
  let total = 0;
  for (const { endpoints } of counted) {
    for (const endpoint of endpoints ?? []) {
      if (isTerminating(endpoint)) continue;
      total++;
      if (isReady(endpoint)) ready++;
    }
  }
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    type: clusterIPs[0] === 'None' ? 'Headless' : (spec.type ?? ''),
    clusterIP: clusterIPs.join(',') || '<none>',
    external: externalAddresses(spec, status),
    ports: (spec.ports ?? []).map(port).join(',') || '<none>',
    endpoints: spec.type === 'ExternalName' ? undefined : { ready, total },
  };
}

/** @param counts how much each Pod of the Service has answered, the last one last. */
export function lastAnswer(service: ObjectKey, counts: ReadonlyMap<ObjectKey, number>): LastAnswer {
  const [pod, count] = [...counts].at(-1) ?? ['', 0];
  let all = 0;
  for (const each of counts.values()) all += each;
  return { service, pod: splitKey(pod).name, count, all };
}

/** The rows of an AddressPool: one for each family that it has addresses of. */
export function poolRows(pool: KubeObject): PoolRow[] {
  const status: unknown = Reflect.get(pool, 'status');
  return ipFamilies.flatMap((family) => {
    const member = family.toLowerCase();
    const total = numberAt(status, member, 'total');
    if (total === 0) return [];
    return [{ name: pool.metadata.name ?? '', family, used: numberAt(status, member, 'used'), total }];
  });
}

/** The line of a core/v1 Event. */
export function eventSummary(event: KubeObject): EventLine {
  const kind = textAt(event, 'involvedObject', 'kind').toLowerCase();
  return {
    time:
      textAt(event, 'lastTimestamp') ||
      textAt(event, 'eventTime') ||
      (event.metadata.creationTimestamp ?? ''),
    warning: textAt(event, 'type') === 'Warning',
    object: `${kind}/${textAt(event, 'involvedObject', 'name')}`,
    namespace: textAt(event, 'involvedObject', 'namespace'),
    reason: textAt(event, 'reason'),
    message: textAt(event, 'message'),
  };
}

const serviceNameLabel = 'kubernetes.io/service-name';
/** The index of slices by the keys of their Pods. */
const byPod = 'pod';
/** The number of Events that are kept. */
const remembered = 100;

const events = inGroup('')('Event', 'events', ['involvedObject']);

/** Called for changes. */
export interface ViewListener {
  service?(row: ServiceRow): void;
  gone?(key: ObjectKey): void;
  event?(line: EventLine): void;
  pool?(pool: KubeObject): void;
  egress?(object: EgressIP): void;
  /** Called after each of these, and for changes without a call of their own. */
  changed(): void;
}

/**
 * Follows the content of the live view by watches. Rows are computed when an object changes, not when they are drawn.
 */
export class Follower {
  readonly #factory: InformerFactory;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #listener: ViewListener;
  readonly #rows = new Map<ObjectKey, ServiceRow>();
  /** By Service: how much each Pod has answered; the last one of both is last. */
  readonly #answers = new Map<ObjectKey, Map<ObjectKey, number>>();
  readonly #lines: EventLine[] = [];
  readonly #pools: Informer<KubeObject>;
  /** Undefined: the server does not have them. */
  #egress: Informer<EgressIP> | undefined;
  readonly #transport: Transport;
  readonly #view: () => View['nodes'];
  readonly #sources: readonly Informer<KubeObject>[];

  constructor(transport: Transport, log: Logger, namespace: string | undefined, listener: ViewListener) {
    this.#listener = listener;
    this.#transport = transport;
    const clock = systemClock;
    this.#factory = new InformerFactory({
      transport,
      clock,
      random: Math.random,
      log,
      ...(namespace === undefined ? {} : { namespace }),
    });
    this.#services = this.#factory.informer(services);
    this.#slices = this.#factory.informer(endpointSlices);
    this.#slices.addIndex(serviceNameLabel, indexByLabel(serviceNameLabel));
    this.#slices.addIndex(byPod, podsOf);
    this.#services.addHandler({
      added: (service) => this.#refresh(keyOf(service)),
      updated: (service) => this.#refresh(keyOf(service)),
      deleted: (service) => this.#refresh(keyOf(service)),
    });
    const ofSlice = (slice: EndpointSlice): void => {
      for (const service of serviceOf(slice)) this.#refresh(service);
    };
    this.#slices.addHandler({ added: ofSlice, updated: ofSlice, deleted: ofSlice });

    const pools = this.#factory.informer(addressPools);
    const tellPool = (pool: KubeObject): void => {
      listener.pool?.(pool);
      listener.changed();
    };
    pools.addHandler({ added: tellPool, updated: tellPool, deleted: () => listener.changed() });
    this.#pools = pools;

    const allNodes = this.#factory.informer(nodes);
    const changed = (): void => listener.changed();
    allNodes.addHandler({ added: changed, updated: changed, deleted: changed });
    this.#view = () => {
      const all = [...allNodes.cache.values()];
      return { ready: all.filter(isNodeReady).length, total: all.length };
    };

    const recorded = this.#factory.informer(events);
    recorded.addHandler({
      added: (event) => this.#happened(eventSummary(event)),
      updated: (event) => this.#happened(eventSummary(event)),
    });
    this.#sources = [this.#services, this.#slices, recorded, allNodes];
  }

  /** Starts; resolves when the first view is complete, or the signal aborted. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#followEgress();
    this.#factory.start(signal);
    await Promise.all(this.#sources.map((source) => source.synced(signal)));
  }

  /** Of a server that does not answer, they are followed once it does. */
  async #followEgress(): Promise<void> {
    const isServed = await listIfServed(this.#transport, egressIPs).then(
      (list) => list !== undefined,
      () => true,
    );
    if (!isServed) return;
    this.#egress = this.#factory.informer(egressIPs);
    const changed = (object: EgressIP): void => {
      this.#listener.egress?.(object);
      this.#listener.changed();
    };
    this.#egress.addHandler({ added: changed, updated: changed, deleted: () => this.#listener.changed() });
  }

  /** Resolves when all watches have ended, after the signal aborted. */
  async finished(): Promise<void> {
    await this.#factory.finished();
  }

  /** Adds what Pods have answered to the Services that they are endpoints of. */
  answered(answers: Iterable<readonly [ObjectKey, number, ...unknown[]]>): void {
    for (const [pod, count] of answers) {
      const ofPod = this.#slices.cache.byIndex(byPod, pod).flatMap(serviceOf);
      for (const service of new Set(ofPod)) {
        const counts = this.#answers.get(service) ?? new Map<ObjectKey, number>();
        this.#answers.delete(service);
        this.#answers.set(service, counts);
        const sum = (counts.get(pod) ?? 0) + count;
        counts.delete(pod);
        counts.set(pod, sum);
      }
    }
    this.#listener.changed();
  }

  /** The present content: Services by namespace and name. */
  view(): View {
    const byKey = [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      services: byKey.map(([, row]) => row),
      answers: [...this.#answers].map(([service, counts]) => lastAnswer(service, counts)).reverse(),
      pools: [...this.#pools.cache.values()].flatMap(poolRows),
      egress: [...(this.#egress?.cache.values() ?? [])]
        .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
        .flatMap(egressRows),
      events: this.#lines,
      nodes: this.#view(),
    };
  }

  #refresh(key: ObjectKey): void {
    const service = this.#services.cache.get(key);
    if (service === undefined) {
      this.#answers.delete(key);
      if (this.#rows.delete(key)) this.#listener.gone?.(key);
    } else {
      const row = serviceRow(service, this.#slices.cache.byIndex(serviceNameLabel, key));
      this.#rows.set(key, row);
      this.#listener.service?.(row);
    }
    this.#listener.changed();
  }

  /** Sorted by time: the first list comes in no order. */
  #happened(line: EventLine): void {
    const time = parseTime(line.time) ?? 0;
    let at = this.#lines.length;
    while (at > 0 && (parseTime(this.#lines[at - 1]?.time ?? '') ?? 0) > time) at--;
    this.#lines.splice(at, 0, line);
    if (this.#lines.length > remembered) this.#lines.shift();
    this.#listener.event?.(line);
    this.#listener.changed();
  }
}

/** The key of the Service that a slice belongs to. */
function serviceOf({ metadata }: EndpointSlice): readonly ObjectKey[] {
  const name = metadata.labels?.[serviceNameLabel];
  return name === undefined ? [] : [joinKey(metadata.namespace ?? '', name)];
}

function podsOf({ endpoints }: EndpointSlice): readonly ObjectKey[] {
  return (endpoints ?? []).flatMap(({ targetRef: { kind, namespace = '', name = '' } = {} }) =>
    kind === 'Pod' ? [joinKey(namespace, name)] : [],
  );
}
