import type { Pod } from '../../objects/types/core.generated.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import { isFinished } from '../../objects/pods.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import { addressesOfPod, type ClusterView } from './cluster-view.ts';
import { tracePath } from './trace.ts';

/**
 * The reachability of Pods: a row for each Pod that opens connections, with an entry for each Pod that is reached
 * or not.
 */
export interface ReachabilityMatrix {
  readonly pods: readonly ObjectKey[];
  /** `reached[source][destination]`. */
  readonly reached: readonly (readonly boolean[])[];
}

/** Asks for every pair of Pods with addresses of a namespace, directly and not through a Service. */
export function reachabilityMatrix(
  view: ClusterView,
  namespace: string,
  protocol: Protocol,
  port: number,
): ReachabilityMatrix {
  const pods = view.objects.pods
    .filter(
      (pod) => pod.metadata.namespace === namespace && !isFinished(pod) && addressesOfPod(pod).length > 0,
    )
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const reaches = (source: Pod, destination: Pod): boolean => {
    const address = addressesOfPod(destination)[0]?.canonical ?? '';
    return tracePath(view, { kind: 'pod', pod: source }, { address, protocol, port }).reachable === true;
  };
  return {
    pods: pods.map(keyOf),
    reached: pods.map((source) => pods.map((destination) => reaches(source, destination))),
  };
}
