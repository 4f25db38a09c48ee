import type { Pod } from '../../objects/types/core.generated.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import { isFinished, lastingPorts, workloadOf } from '../../objects/pods.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { addressesOfPod, type ClusterView } from './cluster-view.ts';
import { tracePath } from './trace.ts';

/** Who reaches whom within a namespace: directly, and not through a Service. */

/** Of connections: all, some or none arrive; `unasked`: no port is known. */
export type Reach = 'all' | 'some' | 'none' | 'unasked';

/** Pods that one object has made, or a Pod of its own. */
export interface MatrixWorkload {
  /** Such as `deployment/cart`. */
  readonly name: string;
  readonly pods: readonly ObjectKey[];
  /** Those at which its Pods are asked, ascending. */
  readonly ports: readonly number[];
}

/** Rows are those that open connections. */
export interface ReachabilityMatrix {
  readonly pods: readonly ObjectKey[];
  /** `reached[source][destination]`: at all ports, of which there is one at least. */
  readonly reached: readonly (readonly boolean[])[];
  readonly workloads: readonly MatrixWorkload[];
  /** `reach[source][destination]`, by workload: of all its Pods, to all Pods and ports. */
  readonly reach: readonly (readonly Reach[])[];
}

/**
 * Asks for every pair of Pods with addresses of a namespace.
 *
 * @param port at which all are asked; undefined: each Pod at the ports to which Services lead, and where there is none, at
 * those that its containers declare.
 */
export function reachabilityMatrix(
  view: ClusterView,
  namespace: string,
  protocol: Protocol,
  port?: number,
): ReachabilityMatrix {
  const pods = view.objects.pods
    .filter(
      (pod) => pod.metadata.namespace === namespace && !isFinished(pod) && addressesOfPod(pod).length > 0,
    )
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const ports = pods.map((pod) => (port === undefined ? portsOf(view, pod, protocol) : [port]));
  const outcomes = pods.map((source) =>
    pods.map((destination, to) => {
      const address = addressesOfPod(destination)[0]?.canonical ?? '';
      const reaches = (at: number): boolean =>
        tracePath(view, { kind: 'pod', pod: source }, { address, protocol, port: at }).reachable === true;
      return (ports[to] ?? []).map(reaches);
    }),
  );
  const groups = [...Map.groupBy(pods.keys(), (index) => nameOf(pods[index])).entries()];
  return {
    pods: pods.map(keyOf),
    reached: outcomes.map((row) => row.map((each) => each.length > 0 && each.every(Boolean))),
    workloads: groups.map(([name, members]) => ({
      name,
      pods: members.flatMap((index) => pods[index] ?? []).map(keyOf),
      ports: [...new Set(members.flatMap((index) => ports[index] ?? []))].toSorted((a, b) => a - b),
    })),
    reach: groups.map(([, sources]) =>
      groups.map(([, destinations]) =>
        reachOf(sources.flatMap((from) => destinations.flatMap((to) => outcomes[from]?.[to] ?? []))),
      ),
    ),
  };
}

function nameOf(pod: Pod | undefined): string {
  const { kind, name } = (pod && workloadOf(pod)) ?? { kind: 'pod', name: pod?.metadata.name ?? '' };
  return `${kind.toLowerCase()}/${name}`;
}

function reachOf(outcomes: readonly boolean[]): Reach {
  if (outcomes.length === 0) return 'unasked';
  return outcomes.every(Boolean) ? 'all' : outcomes.some(Boolean) ? 'some' : 'none';
}

function portsOf({ objects }: ClusterView, pod: Pod, protocol: Protocol): readonly number[] {
  const addresses = new Set((pod.status.podIPs ?? []).map(({ ip }) => ip));
  const ofServices = objects.slices
    .filter(({ metadata }) => metadata.namespace === pod.metadata.namespace)
    .filter(({ endpoints }) =>
      (endpoints ?? []).some((each) => each.addresses.some((address) => addresses.has(address))),
    )
    .flatMap(({ ports }) => ports ?? [])
    .filter((each) => (each.protocol ?? 'TCP') === protocol)
    .flatMap((each) => each.port ?? []);
  const declared = lastingPorts(pod.spec)
    .filter((each) => (each.protocol ?? 'TCP') === protocol)
    .map(({ containerPort }) => containerPort);
  return [...new Set(ofServices.length > 0 ? ofServices : declared)];
}
