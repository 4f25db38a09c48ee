/** What the Pod cache keeps: the tenth of a Pod that endpoints are made from, in well-formed shape. */
import type { Informer } from '../../client/informer.ts';
import { pods } from '../../client/resources.ts';
import { isRecord, isStringMap, type JsonRecord } from '../../objects/json.ts';
import type { ObjectMeta } from '../../objects/meta.ts';
import type { Container, ContainerPort, Pod, PodCondition } from '../../objects/pod.ts';
import type { ControllerContext } from '../runtime/context.ts';

/** The informer of Pods that all controllers of service networking share. */
export function podInformer(context: Pick<ControllerContext, 'informers'>): Informer<Pod> {
  return context.informers.informer(pods, { transform: slimPod });
}

/**
 * Reduces a Pod to identity, labels, owners, deletion, node, host name, addresses, readiness and named ports. Members
 * of the wrong type, which only a broken server sends, are dropped; a lone podIP becomes the list of addresses.
 */
export function slimPod(pod: Pod): Pod {
  const { spec, status }: { spec: JsonRecord; status: JsonRecord } = {
    spec: { ...pod.spec },
    status: { ...pod.status },
  };
  const ips = list(status['podIPs']).flatMap((entry) =>
    isRecord(entry) && typeof entry['ip'] === 'string' ? [{ ip: entry['ip'] }] : [],
  );
  const podIP = text(status, 'podIP');
  if (ips.length === 0 && podIP !== undefined && podIP !== '') ips.push({ ip: podIP });
  const containers = withNamedPorts(spec['containers']);
  const sidecars = withNamedPorts(spec['initContainers']).filter(
    (container) => container.restartPolicy === 'Always',
  );
  const ready = list(status['conditions']).find(isReadyCondition);
  return {
    ...(pod.apiVersion === undefined ? {} : { apiVersion: pod.apiVersion }),
    ...(pod.kind === undefined ? {} : { kind: pod.kind }),
    metadata: slimMetadata(pod.metadata),
    spec: {
      ...optional('nodeName', text(spec, 'nodeName')),
      ...optional('hostname', text(spec, 'hostname')),
      ...optional('subdomain', text(spec, 'subdomain')),
      ...(containers.length === 0 ? {} : { containers }),
      ...(sidecars.length === 0 ? {} : { initContainers: sidecars }),
    },
    status: {
      ...optional('phase', text(status, 'phase')),
      ...optional('podIP', podIP),
      ...(ips.length === 0 ? {} : { podIPs: ips }),
      ...(ready === undefined ? {} : { conditions: [ready] }),
    },
  };
}

function slimMetadata(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, labels, deletionTimestamp, ownerReferences, finalizers } =
    metadata;
  return {
    ...optional('name', name),
    ...optional('namespace', namespace),
    ...optional('uid', uid),
    ...optional('resourceVersion', resourceVersion),
    ...(isStringMap(labels) ? { labels } : {}),
    ...optional('deletionTimestamp', deletionTimestamp),
    ...(Array.isArray(ownerReferences) ? { ownerReferences } : {}),
    ...(Array.isArray(finalizers) ? { finalizers } : {}),
  };
}

function withNamedPorts(containers: unknown): Container[] {
  return list(containers).flatMap((container) => {
    if (!isRecord(container)) return [];
    const ports = list(container['ports']).filter(isNamedPort).map(slimPort);
    if (ports.length === 0) return [];
    return [
      {
        name: text(container, 'name') ?? '',
        ...optional('restartPolicy', text(container, 'restartPolicy')),
        ports,
      },
    ];
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
  return { ...optional('name', name), containerPort, ...optional('protocol', protocol) };
}

function isReadyCondition(condition: unknown): condition is PodCondition {
  return isRecord(condition) && condition['type'] === 'Ready' && typeof condition['status'] === 'string';
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(record: JsonRecord, member: string): string | undefined {
  const value = record[member];
  return typeof value === 'string' ? value : undefined;
}

function optional<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  const result: Partial<Record<K, string>> = {};
  if (value !== undefined) result[key] = value;
  return result;
}
