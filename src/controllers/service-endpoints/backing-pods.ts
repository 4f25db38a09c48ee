import { isPodReady, isPodTerminating } from '../../objects/pods.ts';
import type { CacheReader } from '../../client/informers/cache.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { isRecord, jsonEqual, isStringMap, type JsonRecord } from '../../objects/json.ts';
import { keyOf, type ObjectKey, type KubeObject, type ObjectMeta } from '../../objects/meta.ts';
import { containsLabels } from '../../objects/selectors/labels.ts';
import type {
  Pod,
  Service,
  Container,
  ContainerPort,
  PodCondition,
} from '../../objects/types/core.generated.ts';
import { managedSelector } from './service.ts';

/** Which Pods back which Services, by index: no Service is compared with all Pods, nor the reverse. */

const bySelectorPair = 'one pair of the selector';
const byLabelPair = 'each pair of the labels';

/** Finds Pods by Service and Services by Pod in the caches. */
export class SelectorIndex {
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

/** The part of Pods in the cache: the tenth of a Pod that endpoints are made from, in well-formed shape. */

/**
 * Reduces a Pod to identity, labels, owners, deletion, node, host name, addresses, readiness and named ports. Members
 * of the wrong type, which only a broken server sends, are dropped; a lone podIP becomes the list of addresses.
 */
export function trimPod(pod: Pod): Pod {
  const trimmed: Pod = { metadata: trimMetadata(pod.metadata), spec: {}, status: {} };
  if (pod.apiVersion !== undefined) trimmed.apiVersion = pod.apiVersion;
  if (pod.kind !== undefined) trimmed.kind = pod.kind;
  const from: { spec: JsonRecord; status: JsonRecord } = { spec: { ...pod.spec }, status: { ...pod.status } };
  copyTexts(from.spec, trimmed.spec, ['nodeName', 'hostname', 'subdomain']);
  const containers = withNamedPorts(from.spec['containers']);
  if (containers.length > 0) trimmed.spec.containers = containers;
  const sidecars = withNamedPorts(from.spec['initContainers']).filter(
    (container) => container.restartPolicy === 'Always',
  );
  if (sidecars.length > 0) trimmed.spec.initContainers = sidecars;
  copyTexts(from.status, trimmed.status, ['phase', 'podIP']);
  const ips = addresses(from.status);
  if (ips.length > 0) trimmed.status.podIPs = ips;
  const ready = list(from.status['conditions']).find(isReadyCondition);
  if (ready !== undefined) trimmed.status.conditions = [trimCondition(ready)];
  return trimmed;
}

function trimMetadata(metadata: ObjectMeta): ObjectMeta {
  const trimmed: ObjectMeta = {};
  copyTexts({ ...metadata }, trimmed, ['name', 'namespace', 'uid', 'resourceVersion', 'deletionTimestamp']);
  const { labels, ownerReferences, finalizers } = metadata;
  if (isStringMap(labels)) trimmed.labels = labels;
  if (Array.isArray(ownerReferences)) trimmed.ownerReferences = ownerReferences;
  if (Array.isArray(finalizers)) trimmed.finalizers = finalizers;
  return trimmed;
}

function addresses({ podIPs, podIP }: JsonRecord): { ip: string }[] {
  const ips = list(podIPs).filter(isPodIP);
  if (ips.length > 0) return ips.map(({ ip }) => ({ ip }));
  return typeof podIP === 'string' && podIP !== '' ? [{ ip: podIP }] : [];
}

function isPodIP(entry: unknown): entry is { ip: string } {
  return isRecord(entry) && typeof entry['ip'] === 'string';
}

function trimCondition({ type, status, lastTransitionTime }: PodCondition): PodCondition {
  return typeof lastTransitionTime === 'string' ? { type, status, lastTransitionTime } : { type, status };
}

function withNamedPorts(containers: unknown): Container[] {
  return list(containers)
    .filter((container) => isRecord(container))
    .filter((container) => list(container['ports']).some(isNamedPort))
    .map((container) => {
      const trimmed: Container = {
        name: typeof container['name'] === 'string' ? container['name'] : '',
        ports: list(container['ports']).filter(isNamedPort).map(trimPort),
      };
      copyTexts(container, trimmed, ['restartPolicy']);
      return trimmed;
    });
}

function isNamedPort(port: unknown): port is ContainerPort {
  return (
    isRecord(port) &&
    typeof port['name'] === 'string' &&
    port['name'] !== '' &&
    typeof port['containerPort'] === 'number'
  );
}

function trimPort({ name, containerPort, protocol }: ContainerPort): ContainerPort {
  const trimmed: ContainerPort = { containerPort };
  if (typeof name === 'string') trimmed.name = name;
  if (typeof protocol === 'string') trimmed.protocol = protocol;
  return trimmed;
}

function isReadyCondition(condition: unknown): condition is PodCondition {
  return isRecord(condition) && condition['type'] === 'Ready' && typeof condition['status'] === 'string';
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function copyTexts<K extends string>(
  from: JsonRecord,
  to: Partial<Record<NoInfer<K>, string>>,
  members: readonly K[],
): void {
  for (const member of members) {
    const value = from[member];
    if (typeof value === 'string') to[member] = value;
  }
}
