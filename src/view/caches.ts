import type { Logger } from 'pino';
import type { Clock, Random } from '../client/clock.ts';
import { byNamespace, indexByNamespace, indexByNode } from '../client/informers/cache.ts';
import type { Informer } from '../client/informers/informer.ts';
import { InformerFactory } from '../client/informers/shared-informer.ts';
import type { ResourceType } from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { announceSelectors } from '../network/announcing/agent-report.ts';
import { textAt } from '../objects/json.ts';
import { joinKey, type KubeObject, type ObjectKey } from '../objects/meta.ts';
import { isFinished } from '../objects/pods.ts';
import { podsOf, serviceOf, workloadKey, workloadOf } from './rows/pods.ts';
import { shownPod, watched, withoutApplied } from './watched.ts';

/** Names of indexes. */
export const byService = 'service';
export const byPod = 'pod';
export const byWorkload = 'workload';
/** Pods that have not ended, by their node. */
export const byNodeOfPod = 'nodeOfPod';

export interface CacheOptions {
  readonly transport: Transport;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Only this one, of kinds that have namespaces; undefined: all. */
  readonly namespace: string | undefined;
}

/** Follows what is {@link watched}: one watch a kind. */
export class ClusterCaches {
  readonly #factory: InformerFactory;
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
  /** Whether all namespaces are followed. */
  readonly isWhole: boolean;
  /** All of them. */
  readonly informers: readonly Informer<KubeObject>[];

  constructor({ namespace, ...options }: CacheOptions) {
    this.isWhole = namespace === undefined;
    this.#factory = new InformerFactory({
      ...options,
      labelSelectors: announceSelectors,
      ...(namespace === undefined ? {} : { namespace }),
    });
    const follow = <T extends KubeObject>(
      resource: ResourceType<T>,
      transform: (object: T) => T = withoutApplied,
    ): Informer<T> => this.#factory.informer(resource, { transform });
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
    this.informers = [
      ...[this.services, this.slices, this.pods, this.nodes, this.namespaces, this.policies, this.events],
      ...[this.ingresses, this.ingressClasses, this.serviceCIDRs, this.ipAddresses, this.pools],
      ...[this.leases, this.egressIPs, this.firewalls, this.egressQoSes, this.attachments, this.routes],
    ];
    this.services.addIndex(byNamespace, indexByNamespace);
    this.slices.addIndex(byService, (slice) => asList(serviceOf(slice)));
    this.slices.addIndex(byPod, podsOf);
    this.policies.addIndex(byNamespace, indexByNamespace);
    this.pods.addIndex(byNamespace, indexByNamespace);
    this.pods.addIndex(byNodeOfPod, (pod) => (isFinished(pod) ? [] : indexByNode(pod)));
    this.events.addIndex(byPod, podOfEvent);
    this.pods.addIndex(byWorkload, (pod) => [workloadKey(workloadOf(pod))]);
  }

  start(signal: AbortSignal): void {
    this.#factory.start(signal);
  }

  /** Resolves when all watches have ended, after the signal aborted. */
  finished(): Promise<void> {
    return this.#factory.finished();
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

/** The key of the Pod that an Event is about; none: it is about something else. */
export function podOfEvent(event: KubeObject): readonly ObjectKey[] {
  if (textAt(event, 'involvedObject', 'kind') !== 'Pod') return [];
  return [joinKey(textAt(event, 'involvedObject', 'namespace'), textAt(event, 'involvedObject', 'name'))];
}

function asList(key: string | undefined): readonly string[] {
  return key === undefined ? [] : [key];
}
