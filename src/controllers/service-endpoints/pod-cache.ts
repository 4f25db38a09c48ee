/** The part of Pods in the cache: the tenth of a Pod that endpoints are made from, in well-formed shape. */
import type { Informer } from '../../client/informers/informer.ts';
import { pods } from '../../client/resources.ts';
import { isRecord, isStringMap, type JsonRecord } from '../../objects/json.ts';
import type { ObjectMeta } from '../../objects/meta.ts';
import type { Container, ContainerPort, Pod, PodCondition } from '../../objects/types/core.generated.ts';
import type { ControllerContext } from '../../runtime/context.ts';

/** The informer of Pods that all controllers of service networking share. */
export function podInformer(context: Pick<ControllerContext, 'informers'>): Informer<Pod> {
  return context.informers.informer(pods, { transform: slimPod });
}

/**
 * Reduces a Pod to identity, labels, owners, deletion, node, host name, addresses, readiness and named ports. Members
 * of the wrong type, which only a broken server sends, are dropped; a lone podIP becomes the list of addresses.
 */
export function slimPod(pod: Pod): Pod {
  const slim: Pod = { metadata: slimMetadata(pod.metadata), spec: {}, status: {} };
  if (pod.apiVersion !== undefined) slim.apiVersion = pod.apiVersion;
  if (pod.kind !== undefined) slim.kind = pod.kind;
  const from: { spec: JsonRecord; status: JsonRecord } = { spec: { ...pod.spec }, status: { ...pod.status } };
  copyTexts(from.spec, slim.spec, ['nodeName', 'hostname', 'subdomain']);
  const containers = withNamedPorts(from.spec['containers']);
  if (containers.length > 0) slim.spec.containers = containers;
  const sidecars = withNamedPorts(from.spec['initContainers']).filter(
    (container) => container.restartPolicy === 'Always',
  );
  if (sidecars.length > 0) slim.spec.initContainers = sidecars;
  copyTexts(from.status, slim.status, ['phase', 'podIP']);
  const ips = addresses(from.status);
  if (ips.length > 0) slim.status.podIPs = ips;
  const ready = list(from.status['conditions']).find(isReadyCondition);
  if (ready !== undefined) slim.status.conditions = [slimCondition(ready)];
  return slim;
}

function slimMetadata(metadata: ObjectMeta): ObjectMeta {
  const slim: ObjectMeta = {};
  copyTexts({ ...metadata }, slim, ['name', 'namespace', 'uid', 'resourceVersion', 'deletionTimestamp']);
  const { labels, ownerReferences, finalizers } = metadata;
  if (isStringMap(labels)) slim.labels = labels;
  if (Array.isArray(ownerReferences)) slim.ownerReferences = ownerReferences;
  if (Array.isArray(finalizers)) slim.finalizers = finalizers;
  return slim;
}

function addresses({ podIPs, podIP }: JsonRecord): { ip: string }[] {
  const ips = list(podIPs).filter(isPodIP);
  if (ips.length > 0) return ips.map(({ ip }) => ({ ip }));
  return typeof podIP === 'string' && podIP !== '' ? [{ ip: podIP }] : [];
}

function isPodIP(entry: unknown): entry is { ip: string } {
  return isRecord(entry) && typeof entry['ip'] === 'string';
}

function slimCondition({ type, status, lastTransitionTime }: PodCondition): PodCondition {
  return typeof lastTransitionTime === 'string' ? { type, status, lastTransitionTime } : { type, status };
}

function withNamedPorts(containers: unknown): Container[] {
  return list(containers)
    .filter((container) => isRecord(container))
    .filter((container) => list(container['ports']).some(isNamedPort))
    .map((container) => {
      const slim: Container = {
        name: typeof container['name'] === 'string' ? container['name'] : '',
        ports: list(container['ports']).filter(isNamedPort).map(slimPort),
      };
      copyTexts(container, slim, ['restartPolicy']);
      return slim;
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

function slimPort({ name, containerPort, protocol }: ContainerPort): ContainerPort {
  const slim: ContainerPort = { containerPort };
  if (typeof name === 'string') slim.name = name;
  if (typeof protocol === 'string') slim.protocol = protocol;
  return slim;
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
