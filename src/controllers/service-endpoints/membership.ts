/** Which Pods back which Services, by index: no Service is compared with all Pods, nor the reverse. */
import { isPodReady, isPodTerminating } from '../../objects/pods.ts';
import type { CacheReader } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { isRecord, jsonEqual } from '../../objects/json.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import { containsLabels } from '../../objects/labels/labels.ts';
import type { KubeObject } from '../../objects/meta.ts';
import type { Pod, Service } from '../../objects/types/core.generated.ts';
import { managedSelector } from './pod.ts';

const bySelectorPair = 'one pair of the selector';
const byLabelPair = 'each pair of the labels';

/** Finds Pods by Service and Services by Pod in the caches. */
export class Membership {
  readonly #services: CacheReader<Service>;
  readonly #pods: CacheReader<Pod>;

  /** Adds the indexes that it needs. Several controllers may each create one over the same informers. */
  constructor(services: Informer<Service>, pods: Informer<Pod>) {
    services.addIndex(bySelectorPair, indexBySelectorPair);
    pods.addIndex(byLabelPair, indexByLabelPair);
    this.#services = services.cache;
    this.#pods = pods.cache;
  }

  /** The Pods that a selector matches in the Service's namespace. */
  podsOf(service: Service, selector: Readonly<Record<string, string>>): Pod[] {
    const namespace = service.metadata.namespace ?? '';
    let rarest = '';
    let fewest = Number.POSITIVE_INFINITY;
    for (const [key, value] of Object.entries(selector)) {
      const pair = pairOf(namespace, key, value);
      const count = this.#pods.countByIndex(byLabelPair, pair);
      if (count === 0) return [];
      if (count < fewest) {
        rarest = pair;
        fewest = count;
      }
    }
    return this.#pods
      .byIndex(byLabelPair, rarest)
      .filter((pod) => containsLabels(pod.metadata.labels, selector));
  }

  /** The keys of the Services that select a Pod. */
  servicesOf(pod: Pod): Set<ObjectKey> {
    const keys = new Set<ObjectKey>();
    for (const pair of indexByLabelPair(pod)) {
      for (const service of this.#services.byIndex(bySelectorPair, pair)) {
        const selector = managedSelector(service);
        if (selector !== undefined && containsLabels(pod.metadata.labels, selector)) keys.add(keyOf(service));
      }
    }
    return keys;
  }

  /**
   * The keys of the Services that a change of a Pod affects: none when nothing changed that endpoints show, and only
   * those that gained or lost the Pod when only its labels changed.
   */
  servicesOfChange(pod: Pod, old: Pod): Set<ObjectKey> {
    const changed = isEndpointChange(pod, old);
    const relabelled = !jsonEqual(pod.metadata.labels ?? {}, old.metadata.labels ?? {});
    if (!changed && !relabelled) return new Set();
    const now = this.servicesOf(pod);
    if (!relabelled) return now;
    const before = this.servicesOf(old);
    for (const key of before) {
      if (changed || !now.has(key)) now.add(key);
      else now.delete(key);
    }
    return now;
  }
}

/**
 * True when a change of a Pod affects its endpoints (`podEndpointsChanged`). The phase is not compared, as in
 * kube-controller-manager: a Pod that ends loses its readiness too, and the endpoint of one that was not ready is
 * removed with the next change. Every change of a terminating Pod counts.
 */
function isEndpointChange(pod: Pod, old: Pod): boolean {
  return (
    pod.metadata.uid !== old.metadata.uid ||
    isPodTerminating(pod) ||
    isPodTerminating(old) ||
    isPodReady(pod) !== isPodReady(old) ||
    pod.spec.nodeName !== old.spec.nodeName ||
    pod.spec.hostname !== old.spec.hostname ||
    pod.spec.subdomain !== old.spec.subdomain ||
    !jsonEqual(pod.status.podIPs, old.status.podIPs)
  );
}

/** Files a Service under the pair with the longest value, which probably the fewest Pods have. */
function indexBySelectorPair(service: Service): readonly string[] {
  const selector: unknown = service.spec.selector;
  if (!isRecord(selector)) return [];
  let longest: readonly [string, string] | undefined;
  for (const [key, value] of Object.entries(selector)) {
    if (typeof value !== 'string') return [];
    if (longest === undefined || value.length > longest[1].length) longest = [key, value];
  }
  return longest === undefined ? [] : [pairOf(service.metadata.namespace ?? '', ...longest)];
}

/** Files a Pod under each pair of its labels. */
function indexByLabelPair(pod: KubeObject): readonly string[] {
  const labels: unknown = pod.metadata.labels;
  if (!isRecord(labels)) return [];
  const namespace = pod.metadata.namespace ?? '';
  return Object.entries(labels).flatMap(([key, value]) =>
    typeof value === 'string' ? [pairOf(namespace, key, value)] : [],
  );
}

function pairOf(namespace: string, key: string, value: string): string {
  return `${namespace}/${key}=${value}`;
}
