import { parseAddress, joinHostPort } from '../../objects/address.ts';
import type { Node, Pod } from '../../objects/types/core.generated.ts';
import { pushAll } from '../../objects/lists.ts';
import { keyOf } from '../../objects/meta.ts';
import { destinationKey, type Protocol, type Source } from '../forwarding/forwarding-plan.ts';
import { refusalText, sourceOf, verdictFor } from '../forwarding/verdict.ts';
import type { FirewallSurroundings } from '../policy/egress-firewall.ts';
import type { PolicyConnection, PolicySide } from '../policy/network-policy.ts';
import { addressesOfNode, addressesOfPod, type ClusterView, ofFamily } from './cluster-view.ts';
import { egressStages, firewallStage, policyStage, routerStage, type Stage } from './stages.ts';

/** The way of a connection's first packet through the cluster, stage by stage. */

/** The source of a connection. */
export type TraceSource =
  | { readonly kind: 'pod'; readonly pod: Pod }
  | { readonly kind: 'node'; readonly node: Node }
  /** A machine that is not of the cluster. */
  | { readonly kind: 'outside'; readonly addresses: readonly string[] };

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
  /** The node whose rules have chosen it, by name; undefined: none has, or any of several. */
  readonly via: string | undefined;
  /** The address of the client that it sees. */
  readonly seenAs: string;
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
  const { before = [], stage, endpoints } = translate(view, from, destination);
  const paths = endpoints.map((endpoint) => pathTo(view, from, destination, endpoint, names));
  // Several nodes lead to the same endpoints, in the same way or not.
  const byWay = new Map<string, EndpointPath>();
  for (const path of paths) {
    const key = JSON.stringify({ ...path, via: undefined });
    const same = byWay.get(key);
    byWay.set(key, same === undefined || same.via === path.via ? path : { ...path, via: undefined });
  }
  const distinct = [...byWay.values()];
  return { reachable: reachableOf(stage, distinct), stages: [...before, stage], endpoints: distinct };
}

/** Plans the nodes whose plans {@link tracePath} asks for, in steps: of a large cluster that takes longer than the rest. */
export function* nodePlanSteps(
  view: ClusterView,
  source: TraceSource,
  { address }: Pick<TraceDestination, 'address'>,
): Generator<undefined, undefined, undefined> {
  const there = view.nodeAt(address);
  const asked = there === undefined ? [] : [there];
  if (source.kind === 'node') asked.push(source.node);
  else if (source.kind === 'pod') pushAll(asked, nodesNamed(view, source.pod.spec.nodeName));
  else if (there === undefined && !view.isInside(address)) {
    const entry = view.entry(address);
    if (entry.kind === 'announced') pushAll(asked, entry.nodes);
    else if (entry.kind !== 'unannounced') pushAll(asked, view.objects.nodes);
  }
  for (const node of asked) yield* view.forwardingPlanSteps(node);
  return undefined;
}

function nodesNamed(view: ClusterView, name = ''): readonly Node[] {
  const node = view.node(name);
  return node === undefined ? [] : [node];
}

/** The sender of the packet. */
interface Sender {
  readonly side: PolicySide;
  readonly address: string;
  /** That it is on. Undefined: outside of the cluster, or not known. */
  readonly node: Node | undefined;
  readonly kind: Source | 'outside';
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
        : { side: { kind: 'other' }, address, node: undefined, kind: 'outside' };
    }
  }
}

/** Where a packet may go after Services were translated. */
interface Endpoint {
  readonly address: string;
  readonly port: number;
  /** The node that has translated; undefined: none has. */
  readonly by: Node | undefined;
  /** The endpoint sees that node as the client. */
  readonly masquerade: boolean;
  /** The answer does not come back by the node that translated. */
  readonly isLost: boolean;
}

/** What becomes of a packet to a Service. */
interface Translation {
  /** Who announces the address. */
  readonly before?: readonly Stage[];
  readonly stage: Stage;
  readonly endpoints: readonly Endpoint[];
}

/** By the rules of the node that the sender is on; what they let pass to another node, by the rules of that one. */
function translate(view: ClusterView, from: Sender, destination: TraceDestination): Translation {
  const there = view.nodeAt(destination.address);
  if (from.kind === 'outside') return translateFromOutside(view, from, destination, there);
  if (from.node === undefined) {
    const message = 'the source is on no node that is known: Services are not translated';
    return {
      stage: { stage: 'service', verdict: 'unknown', message },
      endpoints: [untranslated(destination)],
    };
  }
  const own = translateAt(view, from.node, from.kind, from, destination);
  if (own.stage.verdict !== 'pass' || there === undefined || there === from.node) return own;
  const source = sourceOf(view.forwardingPlan(there), from.address);
  const other = translateAt(view, there, source, from, destination);
  const endpoints = other.endpoints.map((endpoint) => ({
    ...endpoint,
    isLost: endpoint.by !== undefined && !endpoint.masquerade && !isOn(view, endpoint.address, there),
  }));
  return { ...other, endpoints };
}

/**
 * Cluster IPs and Pods have no route from there. Other addresses lead to the nodes that announce them; where agents
 * announce nothing, a load balancer leads to nodes, and to those with endpoints where the policy is Local (KEP-1669).
 */
function translateFromOutside(
  view: ClusterView,
  from: Sender,
  destination: TraceDestination,
  there: Node | undefined,
): Translation {
  const { address, port, protocol } = destination;
  if (there !== undefined) return translateAt(view, there, 'other', from, destination);
  const deny = (message: string, stage: Stage['stage'] = 'service'): Translation => ({
    stage: { stage, verdict: 'deny', message },
    endpoints: [],
  });
  if (view.isInside(address)) {
    const what = view.podAt(address) === undefined ? 'an address of Services or Pods' : "a Pod's address";
    return deny(`${address} is ${what}: no route leads to it from outside of the cluster`);
  }
  const entry = view.entry(address);
  if (entry.kind === 'unannounced') return deny(`no node announces ${address}: ${entry.why}`, 'announcement');
  const nodes = entry.kind === 'announced' ? entry.nodes : view.objects.nodes;
  if (nodes.length === 0) return deny('the cluster has no node that a packet from outside could reach');
  const all = nodes.map((node) => translateAt(view, node, 'other', from, destination));
  if (entry.kind === 'announced') {
    const stage: Stage = { stage: 'announcement', verdict: 'allow', message: `${address}: ${entry.how}` };
    return { before: [stage], ...together(destination, all) };
  }
  const family = parseAddress(address)?.family ?? 'IPv4';
  const key = destinationKey(family, protocol, address, port);
  const isBalanced = nodes.some(
    (node) => view.forwardingPlan(node).destinations.get(key)?.destination.kind === 'loadBalancerIP',
  );
  const leading = all.filter(({ stage }) => stage.verdict === 'allow');
  if (!isBalanced || leading.length === 0 || leading.length === all.length) {
    return together(destination, all);
  }
  // It is announced from nodes with endpoints.
  const { stage, endpoints } = together(destination, leading);
  const message = `${stage.message}, on each of the ${leading.length} nodes that have one`;
  return { stage: { ...stage, message }, endpoints };
}

/** What becomes of a packet that may reach any of several nodes first. @param found at least one. */
function together({ address, port, protocol }: TraceDestination, found: readonly Translation[]): Translation {
  const stage = found[0]?.stage;
  if (stage !== undefined && found.every((each) => each.stage.verdict === stage.verdict)) {
    return { stage, endpoints: found.flatMap(({ endpoints }) => endpoints) };
  }
  const where = `${protocol} ${joinHostPort(address, port)}`;
  const message = `${where}: it depends on the node that the packet reaches first, and the policy is Local`;
  return { stage: { stage: 'service', verdict: 'unknown', message }, endpoints: [] };
}

function untranslated({ address, port }: TraceDestination): Endpoint {
  return { address, port, by: undefined, masquerade: false, isLost: false };
}

function isOn(view: ClusterView, address: string, node: Node): boolean {
  return view.nodeNameAt(address) === node.metadata.name;
}

/** By the rules of a node. @param source what the sender is to this node. */
function translateAt(
  view: ClusterView,
  node: Node,
  source: Source,
  from: Sender,
  destination: TraceDestination,
): Translation {
  const { address, port, protocol } = destination;
  const verdict = verdictFor(view.forwardingPlan(node), {
    source,
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
        endpoints: [untranslated(destination)],
      };
    case 'reject':
    case 'drop': {
      const service = verdict.port?.service ?? view.serviceAt(address);
      const object = service === undefined ? {} : { object: `Service ${service}` };
      const on = node === from.node ? 'the node' : `node ${node.metadata.name ?? ''}`;
      const why = verdict.reason === 'NoEndpoints' ? view.noEndpointDetail(service, port) : '';
      const message = `${where}: ${refusalText(verdict.reason, on)}${why}; the packet is ${verdict.verdict === 'reject' ? 'refused' : 'dropped'}`;
      return { stage: { stage: 'service', verdict: 'deny', ...object, message }, endpoints: [] };
    }
    case 'forward': {
      const { port: servicePort, destination: at, candidates, affinitySeconds } = verdict;
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
          message: `${kinds[at.kind]} ${where} leads to ${count}${stays}${seen}`,
        },
        endpoints: candidates.map(({ endpoint, masquerade }) => ({
          ...{ address: endpoint.address, port: endpoint.port, by: node, masquerade, isLost: false },
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

function pathTo(
  view: ClusterView,
  from: Sender,
  { address: sentTo, port: sentPort, protocol }: TraceDestination,
  { address, port, by, masquerade, isLost }: Endpoint,
  names: FirewallSurroundings['names'],
): EndpointPath {
  const source = { source: from.side, sourceAddress: from.address, protocol };
  const connection: PolicyConnection = {
    ...{ ...source, destination: view.sideAt(address), destinationAddress: address, port },
  };
  // What another node translates has not been translated yet where the source's node judges it.
  const sent: PolicyConnection =
    by === undefined || by === from.node
      ? connection
      : { ...source, destination: view.sideAt(sentTo), destinationAddress: sentTo, port: sentPort };
  const node = by?.metadata.name ?? '';
  const lost: Stage = {
    ...{ stage: 'service', verdict: 'deny' },
    message: `node ${node} leads on to another node with the client's address: the answer does not come back by ${node}, and the client drops it`,
  };
  const stages = [
    policyStage(view, sent, 'egress'),
    firewallStage(view, sent, names),
    ...egressStages(view, sent, masquerade && by === from.node),
    ...(isLost ? [lost] : []),
    policyStage(view, seenAs(view, connection, by, masquerade), 'ingress'),
    targetStage(view, connection),
  ];
  const pod = view.podAt(address);
  const family = parseAddress(address)?.family ?? 'IPv4';
  const masqueraded = masquerade && by !== undefined ? ofFamily(addressesOfNode(by), family) : undefined;
  return {
    ...{ address, port, object: pod === undefined ? undefined : `Pod ${keyOf(pod)}` },
    ...{ via: by?.metadata.name, seenAs: masqueraded ?? from.address },
    reachable: stages.some(({ verdict }) => verdict === 'deny')
      ? false
      : stages.some(({ verdict }) => verdict === 'unknown')
        ? undefined
        : true,
    stages,
  };
}

/** The connection as the endpoint's node judges it: behind another node that masquerades it comes from that one. */
function seenAs(
  view: ClusterView,
  connection: PolicyConnection,
  node: Node | undefined,
  masquerade: boolean,
): PolicyConnection {
  // A node filters before it masquerades.
  if (!masquerade || node === undefined || isOn(view, connection.destinationAddress, node)) return connection;
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
    const node = view.nodeAt(destinationAddress);
    const onNode = view.objects.pods.find(
      (each) =>
        each.spec.hostNetwork === true &&
        each.spec.nodeName === node?.metadata.name &&
        each.status.phase === 'Running' &&
        view.policyPod(each).ports.some((one) => one.port === port && one.protocol === protocol),
    );
    if (node !== undefined && onNode !== undefined) {
      const message = `a container in the network of the node declares ${port}/${protocol}`;
      return { stage, verdict: 'pass', object: `Pod ${keyOf(onNode)}`, message };
    }
    const message = 'what listens there is not known to the cluster';
    return { stage, verdict: node === undefined ? 'pass' : 'unknown', message };
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
