import { byNamespace, indexByNamespace, indexByNode } from '../client/informers/cache.ts';
import type { Informer, Informers } from '../client/informers/informer.ts';
import type { ResourceType } from '../client/resources.ts';
import type { GatewayLists } from '../network/path/gateway.ts';
import { textAt } from '../objects/json.ts';
import { joinKey, type KubeObject, type ObjectKey } from '../objects/meta.ts';
import { isFinished } from '../objects/pods.ts';
import { podsOf, serviceOf, workloadKey, workloadOf } from './rows/pods.ts';
import { shownPod, watched, withoutApplied } from './watched.ts';

/** Names of indexes. */
export const byService = 'service';
export const byPod = 'pod';
/** Events, by {@link aboutKey}. */
export const byAbout = 'about';
export const byWorkload = 'workload';
/** Pods that have not ended, by their node. */
export const byNodeOfPod = 'nodeOfPod';

/** The caches of what is {@link watched}. */
export class ClusterCaches {
  readonly services;
  readonly slices;
  readonly pods;
  readonly nodes;
  readonly namespaces;
  readonly policies;
  readonly events;
  readonly ingresses;
  readonly ingressClasses;
  readonly serviceCIDRs;
  readonly ipAddresses;
  readonly pools;
  readonly leases;
  readonly egressIPs;
  readonly firewalls;
  readonly egressQoSes;
  readonly attachments;
  readonly routes;
  readonly gatewayClasses;
  readonly gateways;
  readonly listenerSets;
  readonly httpRoutes;
  readonly grpcRoutes;
  readonly tlsRoutes;
  readonly grants;
  /** Whether all namespaces are followed. */
  readonly isWhole: boolean;
  /** All of them. */
  readonly informers: readonly Informer<KubeObject>[];

  constructor(informers: Informers, isWhole: boolean) {
    this.isWhole = isWhole;
    const follow = <T extends KubeObject>(
      resource: ResourceType<T>,
      transform: (object: T) => T = withoutApplied,
    ): Informer<T> => informers.informer(resource, { transform });
    this.services = follow(watched.services);
    this.slices = follow(watched.slices);
    this.pods = follow(watched.pods, shownPod);
    this.nodes = follow(watched.nodes);
    this.namespaces = follow(watched.namespaces);
    this.policies = follow(watched.policies);
    this.events = follow(watched.events);
    this.ingresses = follow(watched.ingresses);
    this.ingressClasses = follow(watched.ingressClasses);
    this.serviceCIDRs = follow(watched.serviceCIDRs);
    this.ipAddresses = follow(watched.ipAddresses);
    this.pools = follow(watched.pools);
    this.leases = follow(watched.leases);
    this.egressIPs = follow(watched.egressIPs);
    this.firewalls = follow(watched.firewalls);
    this.egressQoSes = follow(watched.egressQoSes);
    this.attachments = follow(watched.attachments);
    this.routes = follow(watched.routes);
    this.gatewayClasses = follow(watched.gatewayClasses);
    this.gateways = follow(watched.gateways);
    this.listenerSets = follow(watched.listenerSets);
    this.httpRoutes = follow(watched.httpRoutes);
    this.grpcRoutes = follow(watched.grpcRoutes);
    this.tlsRoutes = follow(watched.tlsRoutes);
    this.grants = follow(watched.grants);
    this.informers = [
      ...[this.services, this.slices, this.pods, this.nodes, this.namespaces, this.policies, this.events],
      ...[this.ingresses, this.ingressClasses, this.serviceCIDRs, this.ipAddresses, this.pools],
      ...[this.leases, this.egressIPs, this.firewalls, this.egressQoSes, this.attachments, this.routes],
      ...[this.gatewayClasses, this.gateways, this.listenerSets, this.httpRoutes, this.grpcRoutes],
      ...[this.tlsRoutes, this.grants],
    ];
    this.services.addIndex(byNamespace, indexByNamespace);
    this.slices.addIndex(byService, (slice) => asList(serviceOf(slice)));
    this.slices.addIndex(byPod, podsOf);
    this.policies.addIndex(byNamespace, indexByNamespace);
    this.pods.addIndex(byNamespace, indexByNamespace);
    this.pods.addIndex(byNodeOfPod, (pod) => (isFinished(pod) ? [] : indexByNode(pod)));
    this.events.addIndex(byAbout, (event) => [aboutOfEvent(event)]);
    this.pods.addIndex(byWorkload, (pod) => [workloadKey(workloadOf(pod))]);
  }

  /** Kinds that may not be listed. */
  forbidden(): readonly string[] {
    return this.informers.flatMap(({ resource, syncProblem }) =>
      syncProblem === 'Forbidden' ? [resource.kind] : [],
    );
  }

  /** Kinds whose first list is being read, and how many objects of it have come. */
  loading(): readonly { readonly kind: string; readonly read: number }[] {
    return this.informers.flatMap(({ resource, hasSynced, syncProblem, cache }) =>
      hasSynced || syncProblem === 'Forbidden' ? [] : [{ kind: resource.kind, read: cache.size }],
    );
  }
}

/** What decides where requests to Gateways go. */
export function gatewayLists(caches: ClusterCaches): GatewayLists {
  return {
    classes: [...caches.gatewayClasses.cache.values()],
    gateways: [...caches.gateways.cache.values()],
    listenerSets: [...caches.listenerSets.cache.values()],
    httpRoutes: [...caches.httpRoutes.cache.values()],
    grpcRoutes: [...caches.grpcRoutes.cache.values()],
    tlsRoutes: [...caches.tlsRoutes.cache.values()],
    grants: [...caches.grants.cache.values()],
  };
}

/** The key of the Pod that an Event is about; none: it is about something else. */
export function podOfEvent(event: KubeObject): readonly ObjectKey[] {
  if (textAt(event, 'involvedObject', 'kind') !== 'Pod') return [];
  return [keyOfAbout(event)];
}

/** What an Event is about. */
export function aboutKey(kind: string, key: ObjectKey): string {
  return `${kind} ${key}`;
}

function aboutOfEvent(event: KubeObject): string {
  return aboutKey(textAt(event, 'involvedObject', 'kind'), keyOfAbout(event));
}

function keyOfAbout(event: KubeObject): ObjectKey {
  return joinKey(textAt(event, 'involvedObject', 'namespace'), textAt(event, 'involvedObject', 'name'));
}

function asList(key: string | undefined): readonly string[] {
  return key === undefined ? [] : [key];
}
