import { byNamespace } from '../client/informers/cache.ts';
import type { Informer } from '../client/informers/informer.ts';
import { forbiddenRanges } from '../controllers/load-balancer/pools.ts';
import { AllocationState, rangesOf } from '../controllers/service-allocation/allocation-state.ts';
import { type Finding, planAudit } from '../controllers/service-allocation/plan-audit.ts';
import { viewOf } from '../controllers/service-allocation/plan-view.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import { podsThatExplain } from '../network/forwarding/why-no-endpoint.ts';
import { announcingNodes } from '../network/path/entry.ts';
import { conditionOf, keyOf, type KubeObject, type ObjectKey } from '../objects/meta.ts';
import type { Pod, Service } from '../objects/types/core.generated.ts';
import { type PooledCluster, poolFits } from '../pools/plan.ts';
import {
  aboutKey,
  byAbout,
  byNodeOfPod,
  byPod,
  byService,
  byWorkload,
  type ClusterCaches,
  gatewayLists,
  podOfEvent,
} from './caches.ts';
import { problemRows } from './rows/problems.ts';
import { announcerRows, egressAddressRows, poolRows } from './rows/addresses.ts';
import { eventRow, newestWarning } from './rows/events.ts';
import { gatewayRuleRows, httpRuleRows } from './rows/http.ts';
import {
  policyRow,
  nodeRow,
  podRow,
  podsOf,
  serviceOf,
  sliceRow,
  workloadKey,
  workloadOf,
  workloadRow,
} from './rows/pods.ts';
import type { HttpRuleRow, PoolRow, RowOfKind, ServiceDetailRow } from './rows/rows.ts';
import { serviceDetailRow, serviceRow, troubledSince } from './rows/services.ts';
import {
  type KeptKind,
  type RowChanges,
  rowsIn,
  type StoredRow,
  StoredRows,
  type Tables,
} from './stored-rows.ts';

/** Kinds whose rows are made anew together: an object of theirs may change the rows of others. */
type Group = 'http' | 'addresses' | 'announcers' | 'egress';

/** Kinds whose rows are made anew one by one. */
type DirtyKind = 'service' | 'slice' | 'pod' | 'workload' | 'node' | 'namespace' | 'event' | 'policy';

/** With more Services their addresses are not audited: it would hold the event loop. */
const mostAudited = 5000;
/** The API server's own range is not known: none is out of it. */
const allPorts = { first: 1, last: 65_535 };

/**
 * The rows of a cluster. A change of an object names the rows that it concerns; {@link flush} makes these anew, and tells
 * those that differ. So what a change of a Pod costs does not depend on the size of the cluster.
 */
export class RowTables {
  readonly #caches: ClusterCaches;
  readonly #settings: RequestSettings;
  readonly #now: () => number;
  readonly #touched: () => void;
  readonly #stored = new StoredRows();
  readonly #dirty: Readonly<Record<DirtyKind, Set<string>>> = {
    ...{ service: new Set(), slice: new Set(), pod: new Set(), workload: new Set() },
    ...{ node: new Set(), namespace: new Set(), event: new Set(), policy: new Set() },
  };
  readonly #dirtyGroups = new Set<Group>();
  /** The Services that rules of HTTP lead to: slices of others change no rule. */
  #backends: ReadonlySet<ObjectKey> = new Set();
  /** Whether all slices and Pods have been read. */
  #knowsEndpoints = false;
  /** Since when something is wrong with a Service that has a trouble. */
  readonly #since = new Map<ObjectKey, string | undefined>();
  #isAuditDue = true;
  /** What the last audit found, and of that what the one before had found too: caches of two kinds show one change at different times. */
  #found: ReadonlyMap<string, Finding> = new Map();
  #findings: readonly Finding[] = [];

  /** @param touched called when there is something to {@link flush}. */
  constructor(caches: ClusterCaches, settings: RequestSettings, now: () => number, touched: () => void) {
    this.#caches = caches;
    this.#settings = settings;
    this.#now = now;
    this.#touched = touched;
    this.#follow();
  }

  /** The present rows, as of the last {@link flush}. */
  get rows(): Tables {
    return this.#stored.rows;
  }

  /** What depends on the time alone: whether agents are alive, and quarantines. */
  tick(): void {
    if (this.#caches.leases.cache.size > 0) this.#group('announcers');
    const isWaiting = ({ row }: StoredRow<PoolRow>): boolean =>
      row.families.some(({ quarantined }) => quarantined > 0);
    if ([...this.#stored.rows.pool.values()].some(isWaiting)) this.#group('addresses');
    this.#audit();
  }

  /** Looks at the addresses and node ports of Services as `servicenet audit` does, where something of them has changed. */
  #audit(): void {
    const { isWhole, services, ipAddresses, serviceCIDRs } = this.#caches;
    const areRead = [services, ipAddresses, serviceCIDRs].every(({ hasSynced }) => hasSynced);
    if (!this.#isAuditDue || !isWhole || !areRead || services.cache.size > mostAudited) return;
    const allocations = new AllocationState(allPorts);
    allocations.setCidrs(rangesOf(serviceCIDRs.cache.values(), undefined).cidrs);
    for (const service of services.cache.values())
      allocations.set(viewOf(service), service.metadata.resourceVersion ?? '');
    const audit = planAudit({
      ...{ allocations, services: services.cache.values() },
      // Where there are none, the server has no such kind: one is of the Service kubernetes.
      addresses: ipAddresses.cache.size === 0 ? undefined : ipAddresses.cache,
      serviceOfKey: (key) => services.cache.get(key),
    });
    const found = new Map<string, Finding>();
    for (const finding of audit) if (finding !== undefined) found.set(JSON.stringify(finding), finding);
    this.#findings = [...found].flatMap(([text, finding]) => (this.#found.has(text) ? [finding] : []));
    this.#isAuditDue = found.size > this.#findings.length;
    this.#found = found;
    this.#touched();
  }

  /** Makes rows anew. @returns those that differ from before. */
  flush(): RowChanges {
    const { services, slices, pods, nodes, namespaces, policies, events } = this.#caches;
    this.#make('event', (key) => events.cache.get(key), eventRow);
    this.#stored.trimEvents();
    this.#make('slice', (key) => slices.cache.get(key), sliceRow);
    this.#make(
      'pod',
      (key) => pods.cache.get(key),
      (pod) => {
        const key = keyOf(pod);
        const ofPod = slices.cache.byIndex(byPod, key).flatMap((slice) => serviceOf(slice) ?? []);
        const ofEvents = events.cache.byIndex(byAbout, aboutKey('Pod', key));
        return podRow(pod, [...new Set(ofPod)].toSorted(), newestWarning(ofEvents));
      },
    );
    this.#make(
      'workload',
      (key) => pods.cache.byIndex(byWorkload, key)[0],
      (pod) => {
        const name = workloadOf(pod);
        return workloadRow(name, pods.cache.byIndex(byWorkload, workloadKey(name)));
      },
    );
    this.#make(
      'node',
      (key) => nodes.cache.get(key),
      (node) => nodeRow(node, pods.cache.countByIndex(byNodeOfPod, node.metadata.name ?? '')),
    );
    this.#make(
      'namespace',
      (key) => namespaces.cache.get(key),
      ({ metadata: { name = '' } }) => ({
        ...{ key: name, name },
        services: services.cache.countByIndex(byNamespace, name),
        pods: pods.cache.countByIndex(byNamespace, name),
      }),
    );
    this.#lookAtLists();
    this.#makeServices();
    this.#make(
      'policy',
      (key) => policies.cache.get(key),
      (policy) => {
        const { namespace = '' } = policy.metadata;
        return policyRow(
          policy,
          this.#knowsEndpoints ? pods.cache.byIndex(byNamespace, namespace) : undefined,
        );
      },
    );
    this.#makeGroups();
    this.#makeProblems();
    return this.#stored.takeChanges();
  }

  /** Services of one namespace that have no ready endpoint are explained together: each may concern all of its Pods. */
  #makeServices(): void {
    const { services, slices, pods } = this.#caches;
    const dirty = [...this.#dirty.service].flatMap((key) => services.cache.get(key) ?? []);
    const namespaceOf = ({ metadata: { namespace = '' } }: Service): string => namespace;
    const together = Map.groupBy(dirty, namespaceOf);
    const explaining = new Map<string, ReturnType<typeof podsThatExplain>>();
    const podsFor = (service: Service): readonly Pod[] => {
      const namespace = namespaceOf(service);
      const found =
        explaining.get(namespace) ??
        podsThatExplain(together.get(namespace) ?? [], pods.cache.byIndex(byNamespace, namespace));
      explaining.set(namespace, found);
      return found.get(keyOf(service)) ?? [];
    };
    for (const key of this.#dirty.service) this.#since.delete(key);
    this.#make(
      'service',
      (key) => services.cache.get(key),
      (service) => {
        const key = keyOf(service);
        const own = slices.cache.byIndex(byService, key);
        const row = serviceRow(service, own, this.#knowsEndpoints ? () => podsFor(service) : undefined);
        const named = row.whyNoEndpoint === undefined ? [] : podsFor(service);
        if (row.trouble !== undefined) this.#since.set(key, troubledSince(service, named));
        return row;
      },
    );
  }

  /** What the view of one Service shows; undefined where there is none. */
  detailOf(key: ObjectKey): ServiceDetailRow | undefined {
    const service = this.#caches.services.cache.get(key);
    if (service === undefined) return undefined;
    const rules = [...this.#stored.rows.httpRule.values()].filter(({ row }) =>
      row.backends.some((backend) => backend.service === key),
    );
    return serviceDetailRow(service, this.#caches.slices.cache.byIndex(byService, key), {
      clusterDomain: 'cluster.local',
      pools: service.spec.type === 'LoadBalancer' ? poolFits(this.pooledCluster(), key, this.#now()) : [],
      ledToBy: rules.map(({ row }) => row.key),
      troubleOf: (pod) => this.#stored.rows.pod.get(pod)?.row.trouble,
    });
  }

  /** What decides which Service gets which address. */
  pooledCluster(): PooledCluster {
    const { services, nodes, namespaces, serviceCIDRs, pools } = this.#caches;
    return {
      services: [...services.cache.values()],
      namespaceLabels: (namespace) => namespaces.cache.get(namespace)?.metadata.labels ?? {},
      settings: this.#settings,
      forbidden: forbiddenRanges(nodes.cache.values(), serviceCIDRs.cache.values()),
      pools: [...pools.cache.values()],
    };
  }

  #follow(): void {
    const caches = this.#caches;
    const hasPools = (): boolean => caches.pools.cache.size > 0;
    const isAuditDue = (): void => {
      this.#isAuditDue = true;
    };
    for (const each of [caches.services, caches.ipAddresses, caches.serviceCIDRs])
      this.#on<KubeObject>(each, isAuditDue);
    this.#on(caches.services, (service) => {
      this.#mark('service', keyOf(service));
      this.#mark('namespace', service.metadata.namespace ?? '');
      this.#group('http');
      if (service.spec.type === 'LoadBalancer') this.#group('addresses');
    });
    this.#on(caches.slices, (slice) => {
      this.#mark('slice', keyOf(slice));
      const service = serviceOf(slice);
      if (service !== undefined) this.#mark('service', service);
      for (const pod of podsOf(slice)) this.#mark('pod', pod);
      if (service !== undefined && this.#backends.has(service)) this.#group('http');
    });
    this.#on(caches.pods, (pod) => this.#podChanged(pod));
    this.#on(caches.nodes, (node) => {
      this.#mark('node', keyOf(node));
      if (hasPools()) this.#group('addresses');
    });
    this.#on(caches.namespaces, (namespace) => {
      this.#mark('namespace', keyOf(namespace));
      if (hasPools()) this.#group('addresses');
      this.#group('http');
    });
    this.#on(caches.events, (event) => this.#happened(event));
    const { gatewayClasses, gateways, listenerSets, httpRoutes, grpcRoutes, tlsRoutes, grants } = caches;
    const ofGateways = [gatewayClasses, gateways, listenerSets, httpRoutes, grpcRoutes, tlsRoutes, grants];
    for (const each of [caches.ingresses, caches.ingressClasses, caches.routes, ...ofGateways])
      this.#on<KubeObject>(each, () => this.#group('http'));
    for (const each of [caches.pools, caches.serviceCIDRs])
      this.#on<KubeObject>(each, () => this.#group('addresses'));
    this.#on(caches.leases, () => this.#group('announcers'));
    this.#on(caches.egressIPs, () => this.#group('egress'));
    this.#on(caches.policies, (policy) => this.#mark('policy', keyOf(policy)));
  }

  /** What an object was concerns the same rows as what it is. */
  #on<T extends KubeObject>(informer: Informer<T>, changed: (object: T) => void): void {
    const updated = (object: T, old: T): void => {
      changed(old);
      changed(object);
    };
    informer.addHandler({ added: changed, updated, deleted: changed });
  }

  #podChanged(pod: Pod): void {
    const { namespace = '', labels = {} } = pod.metadata;
    this.#mark('pod', keyOf(pod));
    this.#mark('workload', workloadKey(workloadOf(pod)));
    this.#mark('namespace', namespace);
    if (pod.spec.nodeName !== undefined) this.#mark('node', pod.spec.nodeName);
    // Of a Service with a ready endpoint, no Pod is looked at.
    for (const [key, { row }] of this.#stored.troubled.service) {
      if (row.namespace !== namespace || row.whyNoEndpoint === undefined) continue;
      // One key is enough: the reason names Pods that nearly match.
      const wanted = Object.keys(row.selector ?? {});
      if (wanted.some((name) => labels[name] !== undefined)) this.#mark('service', key);
    }
    for (const policy of this.#caches.policies.cache.byIndex(byNamespace, namespace)) {
      this.#mark('policy', keyOf(policy));
    }
  }

  #happened(event: KubeObject): void {
    this.#mark('event', keyOf(event));
    for (const pod of podOfEvent(event)) this.#mark('pod', pod);
  }

  #mark(kind: DirtyKind, key: string): void {
    this.#dirty[kind].add(key);
    this.#touched();
  }

  #group(...groups: readonly Group[]): void {
    for (const group of groups) this.#dirtyGroups.add(group);
    this.#touched();
  }

  /** Nothing is said to be missing until all that could be there is read: then it would be a wrong one, and looked for each time. */
  #lookAtLists(): void {
    const { services, slices, pods, policies } = this.#caches;
    const knows = slices.hasSynced && pods.hasSynced;
    if (knows === this.#knowsEndpoints) return;
    this.#knowsEndpoints = knows;
    for (const service of services.cache.values()) this.#dirty.service.add(keyOf(service));
    for (const policy of policies.cache.values()) this.#dirty.policy.add(keyOf(policy));
  }

  /** The rows that were marked. @param find what a row is made of; undefined: it is gone. */
  #make<Kind extends KeptKind & DirtyKind, T>(
    kind: Kind,
    find: (key: string) => T | undefined,
    make: (found: T) => RowOfKind[Kind],
  ): void {
    const dirty = this.#dirty[kind];
    for (const key of dirty) {
      const found = find(key);
      this.#stored.set(kind, key, found === undefined ? undefined : make(found));
    }
    dirty.clear();
  }

  #makeGroups(): void {
    const { nodes, leases, egressIPs } = this.#caches;
    const groups = new Set(this.#dirtyGroups);
    this.#dirtyGroups.clear();
    if (groups.has('http')) {
      const rules = this.#httpRules();
      this.#backends = new Set(rules.flatMap(({ backends }) => backends.map(({ service }) => service)));
      this.#stored.setAll('httpRule', rules);
    }
    if (groups.has('addresses')) {
      const { pool, address, waiting } = poolRows(this.pooledCluster(), this.#now());
      this.#stored.setAll('pool', pool);
      this.#stored.setAll('address', address);
      this.#stored.setAll('waiting', waiting);
    }
    if (groups.has('announcers')) {
      const agents = announcingNodes([...leases.cache.values()], this.#now());
      this.#stored.setAll('announcer', announcerRows(agents.filter(({ node }) => nodes.cache.has(node))));
    }
    if (groups.has('egress')) {
      this.#stored.setAll('egressAddress', [...egressIPs.cache.values()].flatMap(egressAddressRows));
    }
  }

  #httpRules(): readonly HttpRuleRow[] {
    const { services, slices, namespaces, ingresses, ingressClasses, routes } = this.#caches;
    const sources = {
      service: (key: ObjectKey) => services.cache.get(key),
      slicesOf: (key: ObjectKey) => slices.cache.byIndex(byService, key),
      namespaceLabels: (name: string) => namespaces.cache.get(name)?.metadata.labels ?? {},
    };
    const objects = {
      ingresses: [...ingresses.cache.values()],
      classes: [...ingressClasses.cache.values()],
      routes: [...routes.cache.values()],
    };
    const lists = gatewayLists(this.#caches);
    return [
      ...(objects.ingresses.length + objects.routes.length === 0 ? [] : httpRuleRows(objects, sources)),
      ...(lists.gateways.length === 0 ? [] : gatewayRuleRows(lists, sources)),
    ];
  }

  #makeProblems(): void {
    const { pods } = this.#caches;
    const { service, pod, node, httpRule, policy } = this.#stored.troubled;
    const rows = problemRows({
      services: rowsIn(service),
      pods: rowsIn(pod),
      nodes: rowsIn(node),
      pools: rowsIn(this.#stored.rows.pool),
      announcers: rowsIn(this.#stored.rows.announcer),
      httpRules: rowsIn(httpRule),
      policies: rowsIn(policy),
      findings: this.#findings,
      serviceSince: (key) => this.#since.get(key),
      podSince: (key) =>
        conditionOf(pods.cache.get(key)?.status.conditions, 'Ready')?.lastTransitionTime ?? undefined,
    });
    this.#stored.setAll('problem', rows);
  }
}
