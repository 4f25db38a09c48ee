import { parseAddress, joinHostPort } from '../../objects/address.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import { keyOf, type ObjectKey } from '../../objects/meta.ts';
import type { Protocol, Source } from '../forwarding/forwarding-plan.ts';
import { type RefusalReason, verdictFor } from '../forwarding/verdict.ts';
import type { FirewallSurroundings } from '../policy/egress-firewall.ts';
import type { PolicyConnection, PolicySide } from '../policy/network-policy.ts';
import { addressesOfNode, addressesOfPod, type ClusterView, ofFamily } from './cluster-view.ts';
import { egressStages, firewallStage, policyStage, routerStage, type Stage } from './stages.ts';
import { isFinished } from '../../objects/pods.ts';

/** The way of a connection's first packet through the cluster, stage by stage. */

/** The source of a connection. */
export type TraceSource =
  | { readonly kind: 'pod'; readonly pod: Pod }
  | { readonly kind: 'node'; readonly node: Node }
  /** A machine that is not of the cluster, at this address. `by`: the node that its packets reach first. */
  | { readonly kind: 'outside'; readonly addresses: readonly string[]; readonly by: Node };

/** Where a connection is opened to: an address, of a Service or not, and a port. */
export interface TraceDestination {
  /** Canonical. */
  readonly address: string;
  readonly protocol: Protocol;
  /** 1 to 65535. */
  readonly port: number;
}

/** The way to one endpoint. */
export interface EndpointPath {
  readonly address: string;
  readonly port: number;
  /** `Pod shop/catalog-1`; undefined where no Pod has the address. */
  readonly object: string | undefined;
  /** Undefined: the objects do not decide it. */
  readonly reachable: boolean | undefined;
  readonly stages: readonly Stage[];
}

/** The whole answer. */
export interface Trace {
  /** Undefined: the objects do not decide it, or endpoints differ. */
  readonly reachable: boolean | undefined;
  /** The stages before the choice of an endpoint. */
  readonly stages: readonly Stage[];
  /** Empty where a stage before ends the way. */
  readonly endpoints: readonly EndpointPath[];
}

/**
 * Follows a connection's first packet.
 *
 * @param names addresses of the DNS names that EgressFirewalls have; those that were not found are not there.
 */
export function tracePath(
  view: ClusterView,
  source: TraceSource,
  destination: TraceDestination,
  names: FirewallSurroundings['names'] = new Map(),
): Trace {
  const family = parseAddress(destination.address)?.family ?? 'IPv4';
  const from = senderOf(view, source, family);
  if (from === undefined) {
    const message = `the source has no ${family} address`;
    return { reachable: false, stages: [{ stage: 'service', verdict: 'deny', message }], endpoints: [] };
  }
  const { stage, endpoints } = translate(view, from, destination);
  const paths = endpoints.map((endpoint) => pathTo(view, from, destination.protocol, endpoint, names));
  return { reachable: reachableOf(stage, paths), stages: [stage], endpoints: paths };
}

/** The sender of the packet, and the node that forwards it. */
interface Sender {
  readonly side: PolicySide;
  readonly address: string;
  readonly node: Node | undefined;
  readonly kind: Source;
}

function senderOf(view: ClusterView, source: TraceSource, family: 'IPv4' | 'IPv6'): Sender | undefined {
  switch (source.kind) {
    case 'pod': {
      const { pod } = source;
      const side = view.policyPod(pod);
      const address = ofFamily(addressesOfPod(pod), family);
      const node = view.node(pod.spec.nodeName ?? '');
      return address === undefined
        ? undefined
        : { side, address, node, kind: side.hostNetwork ? 'node' : 'pod' };
    }
    case 'node': {
      const { node } = source;
      const address = ofFamily(addressesOfNode(node), family);
      const side = { kind: 'node', name: node.metadata.name ?? '' } as const;
      return address === undefined ? undefined : { side, address, node, kind: 'node' };
    }
    case 'outside': {
      const address = source.addresses.find((text) => parseAddress(text)?.family === family);
      return address === undefined
        ? undefined
        : { side: { kind: 'other' }, address, node: source.by, kind: 'other' };
    }
  }
}

/** Where a packet may go after Services were translated. */
interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** The endpoint sees the node that forwards as the client. */
  readonly masquerade: boolean;
}

function translate(
  view: ClusterView,
  from: Sender,
  { address, port, protocol }: TraceDestination,
): { readonly stage: Stage; readonly endpoints: readonly Endpoint[] } {
  const direct = [{ address, port, masquerade: false }];
  if (from.node === undefined) {
    const message = 'the source is on no node that is known: Services are not translated';
    return { stage: { stage: 'service', verdict: 'unknown', message }, endpoints: direct };
  }
  const plan = view.forwardingPlan(from.node);
  const verdict = verdictFor(plan, {
    source: from.kind,
    sourceAddress: from.address,
    protocol,
    destinationAddress: address,
    destinationPort: port,
  });
  const where = `${protocol} ${joinHostPort(address, port)}`;
  switch (verdict.verdict) {
    case 'pass':
      return {
        stage: { stage: 'service', verdict: 'pass', message: `${where} is no address of a Service` },
        endpoints: direct,
      };
    case 'reject':
    case 'drop': {
      const object = verdict.port === undefined ? {} : { object: `Service ${verdict.port.service}` };
      const message = `${where}: ${refusals[verdict.reason]}; the packet is ${verdict.verdict === 'reject' ? 'refused' : 'dropped'}`;
      return { stage: { stage: 'service', verdict: 'deny', ...object, message }, endpoints: [] };
    }
    case 'forward': {
      const { port: servicePort, destination, candidates, affinitySeconds } = verdict;
      const count = candidates.length === 1 ? 'its endpoint' : `one of ${candidates.length} endpoints`;
      const stays = affinitySeconds === undefined ? '' : `, the same for ${affinitySeconds} s`;
      const seen = candidates.every(({ masquerade }) => masquerade)
        ? ', which sees the node as the client'
        : '';
      return {
        stage: {
          stage: 'service',
          verdict: 'allow',
          object: `Service ${servicePort.service}`,
          message: `${kinds[destination.kind]} ${where} leads to ${count}${stays}${seen}`,
        },
        endpoints: candidates.map(({ endpoint, masquerade }) => ({
          address: endpoint.address,
          port: endpoint.port,
          masquerade,
        })),
      };
    }
  }
}

const kinds = {
  clusterIP: 'the cluster IP',
  loadBalancerIP: 'the load balancer address',
  externalIP: 'the external IP',
  nodePort: 'the node port',
} as const;

const refusals: Record<RefusalReason, string> = {
  NoEndpoints: 'the Service has no endpoint',
  NoLocalEndpoints: 'the traffic policy is Local, and the node has no endpoint',
  SourceNotAllowed: 'the source is not in spec.loadBalancerSourceRanges',
  UnknownPort: 'the Service does not have this port',
  UnknownClusterIP: 'no Service has this cluster IP',
};

function pathTo(
  view: ClusterView,
  from: Sender,
  protocol: Protocol,
  { address, port, masquerade }: Endpoint,
  names: FirewallSurroundings['names'],
): EndpointPath {
  const destination = view.sideAt(address);
  const connection: PolicyConnection = {
    ...{ source: from.side, sourceAddress: from.address },
    ...{ destination, destinationAddress: address, protocol, port },
  };
  const stages = [
    policyStage(view, connection, 'egress'),
    firewallStage(view, connection, names),
    ...egressStages(view, connection, masquerade),
    policyStage(view, masquerade ? asNode(connection, from) : connection, 'ingress'),
    targetStage(view, connection),
  ];
  const pod = view.podAt(address);
  return {
    ...{ address, port, object: pod === undefined ? undefined : `Pod ${keyOf(pod)}` },
    reachable: stages.some(({ verdict }) => verdict === 'deny')
      ? false
      : stages.some(({ verdict }) => verdict === 'unknown')
        ? undefined
        : true,
    stages,
  };
}

/** The connection as its destination sees it behind a node that masquerades. */
function asNode(connection: PolicyConnection, { node }: Sender): PolicyConnection {
  if (node === undefined) return connection;
  const family = parseAddress(connection.destinationAddress)?.family ?? 'IPv4';
  return {
    ...connection,
    source: { kind: 'node', name: node.metadata.name ?? '' },
    sourceAddress: ofFamily(addressesOfNode(node), family) ?? connection.sourceAddress,
  };
}

function targetStage(view: ClusterView, connection: PolicyConnection): Stage {
  const { destinationAddress, port, protocol } = connection;
  const stage = 'target port';
  const pod = view.podAt(destinationAddress);
  if (pod === undefined) {
    const message = 'what listens there is not known to the cluster';
    return { stage, verdict: 'pass', message };
  }
  const object = `Pod ${keyOf(pod)}`;
  if (pod.status.phase !== 'Running') {
    return { stage, verdict: 'deny', object, message: `the Pod is ${pod.status.phase ?? 'not running'}` };
  }
  const router = routerStage(view, pod, connection);
  if (router !== undefined) return router;
  const declares = view.policyPod(pod).ports.some((each) => each.port === port && each.protocol === protocol);
  const message = declares
    ? `a container declares ${port}/${protocol}`
    : `no container declares ${port}/${protocol}: one may listen all the same`;
  return { stage, verdict: 'pass', object, message };
}

function reachableOf(stage: Stage, paths: readonly EndpointPath[]): boolean | undefined {
  if (stage.verdict === 'deny') return false;
  if (stage.verdict === 'unknown' || paths.some(({ reachable }) => reachable === undefined)) return undefined;
  if (paths.every(({ reachable }) => reachable === true)) return true;
  return paths.every(({ reachable }) => reachable === false) ? false : undefined;
}

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
