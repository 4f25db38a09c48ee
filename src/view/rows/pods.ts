import { serviceNameLabel, isReady, isServing, isTerminating } from '../../objects/endpoints.ts';
import { conditionOf, joinKey, keyOf, type ObjectKey, type ObjectName } from '../../objects/meta.ts';
import { controllerOf, isNodeReady, isPodReady } from '../../objects/pods.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import type { EndpointSlice } from '../../objects/types/discovery.generated.ts';
import type { EndpointRow, NodeRow, PodRow, PodState, SliceRow, WorkloadRow, PolicyRow } from './rows.ts';
import type { Trouble } from './trouble.ts';
import { policyRules } from '../../network/policy/network-policy.ts';
import { matchesLabels, renderLabelSelector } from '../../objects/selectors/labels.ts';
import type { NetworkPolicy } from '../../objects/types/networking.generated.ts';

/** Pods, what owns them and where they run, and the slices that have them, as rows. */

/** @param services keys of those whose slices have it. @param warning the newest Warning about it. */
export function podRow(pod: Pod, services: readonly ObjectKey[], warning: Trouble | undefined): PodRow {
  const { metadata, spec, status } = pod;
  const addresses = (status.podIPs ?? []).flatMap(({ ip = '' }) => (ip === '' ? [] : [ip]));
  const trouble = podTrouble(pod, warning);
  const statuses = status.containerStatuses ?? [];
  return {
    key: keyOf(pod),
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    workload: workloadKey(workloadOf(pod)),
    state: stateOf(pod),
    addresses: addresses.length === 0 && status.podIP !== undefined ? [status.podIP] : addresses,
    ...(spec.nodeName === undefined || spec.nodeName === '' ? {} : { node: spec.nodeName }),
    hostNetwork: spec.hostNetwork === true,
    services,
    restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    labels: metadata.labels ?? {},
    ...(trouble === undefined ? {} : { trouble }),
    created: metadata.creationTimestamp ?? '',
  };
}

function stateOf(pod: Pod): PodState {
  const { phase } = pod.status;
  if (phase === 'Succeeded') return 'completed';
  if (phase === 'Failed') return 'failed';
  if (pod.metadata.deletionTimestamp !== undefined) return 'terminating';
  if (phase !== 'Running') return 'starting';
  return isPodReady(pod) ? 'ready' : 'not ready';
}

/** What every container goes through. */
const usual = ['ContainerCreating', 'PodInitializing'];

/** In the words of its status, and of the newest Event about it. */
function podTrouble(pod: Pod, warning: Trouble | undefined): Trouble | undefined {
  const { status, metadata } = pod;
  if (status.phase === 'Succeeded' || metadata.deletionTimestamp !== undefined) return undefined;
  if (status.phase === 'Failed') {
    const { reason = 'Failed', message = 'the Pod has failed' } = status;
    return { reason, message };
  }
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  for (const { name = '', state } of [...initContainerStatuses, ...containerStatuses]) {
    const { reason, message = '' } = state?.waiting ?? {};
    if (reason === undefined || usual.includes(reason)) continue;
    return { reason, message: message === '' ? `container ${name} waits` : message };
  }
  const scheduled = conditionOf(status.conditions, 'PodScheduled');
  if (scheduled?.status === 'False') {
    return { reason: scheduled.reason || 'Unschedulable', message: scheduled.message ?? '' };
  }
  if (status.phase !== 'Running' || isPodReady(pod)) return undefined;
  const ready = conditionOf(status.conditions, 'Ready');
  return warning ?? { reason: ready?.reason || 'PodsNotReady', message: ready?.message ?? '' };
}

/** The owner of a Pod: of a ReplicaSet the Deployment, by its name less the hash of the Pod's template. */
export function workloadOf(pod: Pod): ObjectName {
  const { namespace = '', name = '', labels } = pod.metadata;
  const owner = controllerOf(pod);
  if (owner === undefined) return { kind: 'Pod', namespace, name };
  const suffix = `-${labels?.['pod-template-hash'] ?? ''}`;
  if (owner.kind === 'ReplicaSet' && suffix !== '-' && owner.name.endsWith(suffix)) {
    return { kind: 'Deployment', namespace, name: owner.name.slice(0, -suffix.length) };
  }
  return { kind: owner.kind, namespace, name: owner.name };
}

/** `deployment/shop/cart`. */
export function workloadKey({ kind, namespace, name }: ObjectName): string {
  return `${kind.toLowerCase()}/${namespace}/${name}`;
}

/** @param pods of the workload; at least one. */
export function workloadRow(name: ObjectName, pods: readonly Pod[]): WorkloadRow {
  const lasting = pods.filter(({ status }) => status.phase !== 'Succeeded' && status.phase !== 'Failed');
  const ready = lasting.filter(isPodReady).length;
  return { key: workloadKey(name), ...name, pods: lasting.length, ready };
}

/** The key of the Service that a slice belongs to; undefined: no label names one. */
export function serviceOf({ metadata }: EndpointSlice): ObjectKey | undefined {
  const name = metadata.labels?.[serviceNameLabel];
  return name === undefined ? undefined : joinKey(metadata.namespace ?? '', name);
}

/** The keys of the Pods that are a slice's endpoints. */
export function podsOf({ endpoints }: EndpointSlice): readonly ObjectKey[] {
  return (endpoints ?? []).flatMap(({ targetRef: { kind, namespace = '', name = '' } = {} }) =>
    kind === 'Pod' ? [joinKey(namespace, name)] : [],
  );
}

export function sliceRow(slice: EndpointSlice): SliceRow {
  const { metadata, addressType, ports, endpoints } = slice;
  const service = serviceOf(slice);
  return {
    key: keyOf(slice),
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    ...(service === undefined ? {} : { service }),
    addressType,
    ports: (ports ?? []).map(({ name = '', port = '', protocol = 'TCP' }) =>
      `${name} ${port}/${protocol}`.trimStart(),
    ),
    managedBy: metadata.labels?.['endpointslice.kubernetes.io/managed-by'] ?? '',
    endpoints: (endpoints ?? []).map((endpoint): EndpointRow => {
      const { addresses, targetRef, nodeName, zone, hints } = endpoint;
      const isPod = targetRef?.kind === 'Pod';
      const zones = (hints?.forZones ?? []).map(({ name }) => name);
      return {
        address: addresses.join(', '),
        ...(isPod ? { pod: joinKey(targetRef.namespace ?? '', targetRef.name ?? '') } : {}),
        ...(nodeName === undefined ? {} : { node: nodeName }),
        ...(zone === undefined ? {} : { zone }),
        ...(zones.length === 0 ? {} : { hints: zones }),
        ready: isReady(endpoint),
        serving: isServing(endpoint),
        terminating: isTerminating(endpoint),
      };
    }),
  };
}

/** @param pods on it that have not ended. */
export function nodeRow(node: Node, pods: number): NodeRow {
  const { metadata, spec, status } = node;
  const ready = conditionOf(status.conditions, 'Ready');
  const isUp = isNodeReady(node);
  const since = ready?.lastTransitionTime ?? undefined;
  const zone = metadata.labels?.['topology.kubernetes.io/zone'];
  const trouble: Trouble | undefined = isUp
    ? undefined
    : { reason: 'NodeNotReady', message: ready?.message || 'the node is not ready' };
  return {
    key: keyOf(node),
    name: metadata.name ?? '',
    isReady: isUp,
    isCordoned: spec.unschedulable === true,
    ...(since === undefined ? {} : { since }),
    addresses: (status.addresses ?? []).flatMap(({ type, address }) =>
      type === 'Hostname' ? [] : [address],
    ),
    ...(zone === undefined ? {} : { zone }),
    podCIDRs: spec.podCIDRs ?? [],
    pods,
    ...(trouble === undefined ? {} : { trouble }),
    created: metadata.creationTimestamp ?? '',
  };
}

/** @param within the Pods of its namespace; undefined: they are not known. */
export function policyRow(policy: NetworkPolicy, within: readonly Pod[] | undefined): PolicyRow {
  const { podSelector, ingress, egress } = policyRules(policy);
  const { namespace = '', name = '', creationTimestamp = '' } = policy.metadata;
  const isIdle = within?.some(({ metadata }) => matchesLabels(podSelector, metadata.labels ?? {})) === false;
  return {
    ...{ key: keyOf(policy), namespace, name },
    selector: podSelector === 'nothing' ? 'nothing' : renderLabelSelector(podSelector),
    isolates: [
      ...(ingress === undefined ? [] : [{ direction: 'ingress', rules: ingress.length } as const]),
      ...(egress === undefined ? [] : [{ direction: 'egress', rules: egress.length } as const]),
    ],
    ...(isIdle
      ? {
          trouble: {
            reason: 'SelectorMatchesNothing',
            message: 'no Pod of its namespace has the labels of its podSelector',
          },
        }
      : {}),
    created: creationTimestamp,
  };
}
