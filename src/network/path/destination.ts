/** A destination as a user names it, and its addresses. */
import { isReady } from '../../objects/endpoints.ts';
import { type IPFamily, parseAddress, parseStrictAddress } from '../../objects/address.ts';
import type { Pod, Service, ServicePort } from '../../objects/types/core.generated.ts';
import { keyOf, joinKey, type ObjectKey } from '../../objects/meta.ts';
import { podsOfWorkload } from '../../objects/pods.ts';
import { parseReference, type Reference } from '../../objects/references.ts';
import { answer } from '../dns/answer.ts';
import type { Zone } from '../dns/zone.ts';
import { destinationKey, type Protocol } from '../forwarding/forwarding-plan.ts';
import { addressesOfNode, addressesOfPod, type ClusterView } from './cluster-view.ts';
import type { Stage } from './stages.ts';
import type { TraceDestination } from './trace.ts';

/** A destination as it was given. */
export type GivenDestination =
  | { readonly kind: 'service' | 'pod'; readonly key: ObjectKey; readonly port: string | undefined }
  /** A Pod of a workload. */
  | { readonly kind: 'workload'; readonly workload: Reference; readonly port: string | undefined }
  | { readonly kind: 'node'; readonly name: string; readonly port: string | undefined }
  | { readonly kind: 'outside'; readonly port: string | undefined }
  | { readonly kind: 'address' | 'name'; readonly text: string; readonly port: string | undefined };

/** A resolved destination. */
export type ResolvedDestination =
  | {
      readonly kind: 'found';
      readonly stages: readonly Stage[];
      readonly targets: readonly TraceDestination[];
    }
  /** A name of another DNS server: its addresses have to be looked up. */
  | {
      readonly kind: 'outsideName';
      readonly name: string;
      readonly port: number;
      readonly stages: readonly Stage[];
    }
  /** The way ends before there is an address. */
  | { readonly kind: 'none'; readonly stages: readonly Stage[] };

/** The input does not fit the cluster: nothing can be traced. */
export class DestinationError extends Error {
  override readonly name = 'DestinationError';
}

/**
 * Reads `svc/shop/catalog:80`, `pod/shop/cart:8080`, `shop/cart:8080`, `deploy/shop/cart:8080`, `node/node-1:30080`,
 * `outside:443`, an address or a host name, with a port by number or name. An IPv6 address with a port is in brackets. The
 * default namespace is `namespace`.
 *
 * @throws {DestinationError}
 */
export function parseDestination(text: string, namespace: string): GivenDestination {
  const [, head = '', port] = /^(\[[^\]]*\]|[^:]*)(?::([^:]+))?$/.exec(text) ?? [];
  if (head === '') {
    if (parseAddress(text) !== undefined) return { kind: 'address', text, port: undefined };
    throw notKnown(text);
  }
  if (head === 'outside') return { kind: 'outside', port };
  if (!head.includes('/')) {
    const bare = head.replace(/^\[(.*)\]$/, '$1');
    return { kind: parseAddress(bare) === undefined ? 'name' : 'address', text: bare, port };
  }
  const reference = parseReference(head, namespace);
  if (reference === undefined) throw notKnown(head);
  const key = joinKey(reference.namespace, reference.name);
  switch (reference.kind) {
    case 'Service':
      return { kind: 'service', key, port };
    case undefined:
    case 'Pod':
      return { kind: 'pod', key, port };
    case 'Node':
      return { kind: 'node', name: reference.name, port };
    default:
      return { kind: 'workload', workload: reference, port };
  }
}

function notKnown(text: string): DestinationError {
  return new DestinationError(
    `${JSON.stringify(text)} names nothing: give svc/NAMESPACE/NAME:PORT, pod/…, deploy/… or another workload, node/NAME:PORT, outside:PORT, http://HOST/PATH of an Ingress or Route, an address or a DNS name`,
  );
}

/**
 * The addresses of a destination.
 *
 * @param searches the DNS search list of the source; empty outside of the cluster.
 * @param outsideAddresses of a machine that is not of the cluster.
 * @param isOutside whether the source is such a machine: what the name of a Service means there is its load balancer.
 * @throws {DestinationError} where an object or a port is not there.
 */
export function resolveDestination(
  view: ClusterView,
  zone: Zone,
  given: GivenDestination,
  protocol: Protocol,
  searches: readonly string[],
  outsideAddresses: readonly string[],
  isOutside: boolean,
): ResolvedDestination {
  switch (given.kind) {
    case 'service': {
      const service = view.service(given.key);
      if (service === undefined) throw new DestinationError(`there is no Service ${given.key}`);
      return serviceTargets(view, zone, service, given.port, protocol, searches, isOutside);
    }
    case 'pod': {
      const pod = view.pod(given.key);
      if (pod === undefined) throw noPod(view, given.key);
      return podTarget(pod, given.port, protocol);
    }
    case 'workload':
      return podTarget(podOf(view, given.workload), given.port, protocol);
    case 'node': {
      const node = view.node(given.name);
      if (node === undefined) throw new DestinationError(`there is no Node ${given.name}`);
      const port = numberOf(given.port);
      const [address] = addressesOfNode(node);
      if (address === undefined) throw new DestinationError(`Node ${given.name} has no address`);
      return { kind: 'found', stages: [], targets: [{ address: address.canonical, protocol, port }] };
    }
    case 'outside': {
      const port = numberOf(given.port);
      const targets = outsideAddresses.map((address) => ({ address, protocol, port }));
      return { kind: 'found', stages: [], targets };
    }
    case 'address': {
      const address = parseAddress(given.text)?.canonical ?? given.text;
      return { kind: 'found', stages: [], targets: [{ address, protocol, port: numberOf(given.port) }] };
    }
    case 'name':
      return nameTargets(zone, given.text, numberOf(given.port), protocol, searches);
  }
}

/** The error for a missing Pod; it names up to three Pods of a workload of that name. */
export function noPod({ objects }: ClusterView, key: ObjectKey): DestinationError {
  const like = objects.pods.map(keyOf).filter((each) => each.startsWith(`${key}-`));
  const hint = like.length === 0 ? '' : `: did you mean ${like.slice(0, 3).join(', ')}?`;
  return new DestinationError(`there is no Pod ${key}${hint}`);
}

/** A Pod of a workload, a ready one if there is one. @throws {DestinationError} where there is none. */
export function podOf(view: ClusterView, workload: Reference): Pod {
  const { kind = 'Pod', namespace, name } = workload;
  const [pod] = podsOfWorkload(view.objects.pods, { kind, namespace, name });
  if (pod === undefined) throw new DestinationError(`there is no Pod of ${kind} ${namespace}/${name}`);
  return pod;
}

function numberOf(port: string | undefined): number {
  if (port === undefined) throw new DestinationError('give a port: the destination has none of its own');
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  if (number >= 1 && number <= 65_535) return number;
  throw new DestinationError(`${JSON.stringify(port)} is no port: a number from 1 to 65535`);
}

function serviceTargets(
  view: ClusterView,
  zone: Zone,
  service: Service,
  wanted: string | undefined,
  protocol: Protocol,
  searches: readonly string[],
  isOutside: boolean,
): ResolvedDestination {
  const key = keyOf(service);
  const { type, externalName = '', clusterIP = '', ports = [] } = service.spec;
  if (type === 'ExternalName') {
    const stage: Stage = {
      ...{ stage: 'dns', verdict: 'allow', object: `Service ${key}` },
      message: `the name is an alias of ${externalName}`,
    };
    const port = wanted === undefined ? (ports[0]?.port ?? numberOf(wanted)) : numberOf(wanted);
    const found = nameTargets(zone, externalName, port, protocol, searches);
    return { ...found, stages: [stage, ...found.stages] };
  }
  const all = ports.filter((each) => (each.protocol ?? 'TCP') === protocol);
  const port =
    wanted === undefined
      ? all.length === 1
        ? all[0]
        : undefined
      : all.find(({ name, port: number }) => name === wanted || String(number) === wanted);
  if (port === undefined && (wanted === undefined || !/^\d+$/.test(wanted))) {
    const known = all.map(({ name = '', port: number }) =>
      name === '' ? String(number) : `${number} (${name})`,
    );
    throw new DestinationError(
      `Service ${key} ${wanted === undefined ? 'needs a port' : `has no ${protocol} port ${wanted}`}: it has ${known.join(', ') || `no ${protocol} port`}`,
    );
  }
  if (isOutside) return outerTargets(view, service, port, port?.port ?? numberOf(wanted), protocol);
  if (clusterIP !== 'None' && clusterIP !== '') {
    // A port that the Service does not have is worth a trace: the answer is a refusal.
    const number = port?.port ?? numberOf(wanted);
    return { kind: 'found', stages: [], targets: [{ address: clusterIP, protocol, port: number }] };
  }
  return headlessTargets(view, key, port?.name ?? '', protocol);
}

/**
 * The addresses that a Service has outside of the cluster: those of its load balancer, else its external IPs and its
 * node ports.
 */
function outerTargets(
  view: ClusterView,
  service: Service,
  port: ServicePort | undefined,
  number: number,
  protocol: Protocol,
): ResolvedDestination {
  const { type = 'ClusterIP', externalIPs = [] } = service.spec;
  const ingress = type === 'LoadBalancer' ? (service.status.loadBalancer?.ingress ?? []) : [];
  const own = ingress.flatMap(({ ip, ipMode }) => (ip === undefined || ipMode === 'Proxy' ? [] : [ip]));
  const addressed = [...own, ...externalIPs].flatMap((text) => {
    const address = parseAddress(text)?.canonical;
    return address === undefined ? [] : [{ address, protocol, port: number }];
  });
  if (own.length > 0) return { kind: 'found', stages: [], targets: addressed };
  const stage = 'service';
  const object = `Service ${keyOf(service)}`;
  if (ingress.length > 0) {
    const message = 'its load balancer is a machine of its own: what that does is not known to the cluster';
    const isElsewhere: Stage = { stage, verdict: 'unknown', object, message };
    return addressed.length > 0
      ? { kind: 'found', stages: [isElsewhere], targets: addressed }
      : { kind: 'none', stages: [isElsewhere] };
  }
  const targets = [...addressed, ...nodePortTargets(view, port, protocol)];
  const why = type === 'LoadBalancer' ? 'it has no load balancer address yet' : `it is of type ${type}`;
  if (targets.length === 0) {
    const message = `${why}: nothing leads to it from outside of the cluster`;
    return { kind: 'none', stages: [{ stage, verdict: 'deny', object, message }] };
  }
  const message = `${why}: what leads to it from outside of the cluster are its external IPs and node ports`;
  return { kind: 'found', stages: [{ stage, verdict: 'pass', object, message }], targets };
}

/** A node port, at each address at which a node answers for it. */
function nodePortTargets(
  view: ClusterView,
  port: ServicePort | undefined,
  protocol: Protocol,
): readonly TraceDestination[] {
  const nodePort = port?.nodePort;
  if (nodePort === undefined || nodePort === 0) return [];
  return view.objects.nodes.flatMap((node) =>
    view.forwardingPlan(node).node.families.flatMap(({ family, nodeAddresses, nodePortAddresses }) => {
      if (!view.forwardingPlan(node).destinations.has(destinationKey(family, protocol, undefined, nodePort)))
        return [];
      const addresses = nodePortAddresses === 'all' ? nodeAddresses : nodePortAddresses;
      return addresses.map((address) => ({ address, protocol, port: nodePort }));
    }),
  );
}

/** The name of a headless Service leads to its ready endpoints. */
function headlessTargets(
  view: ClusterView,
  key: ObjectKey,
  portName: string,
  protocol: Protocol,
): ResolvedDestination {
  const targets = view.slicesOf(key).flatMap(({ endpoints, ports }) => {
    const port = (ports ?? []).find(({ name = '' }) => name === portName)?.port;
    if (port === undefined) return [];
    return (endpoints ?? [])
      .filter(isReady)
      .flatMap(({ addresses }) => addresses.map((address) => ({ address, protocol, port })));
  });
  const object = `Service ${key}`;
  if (targets.length === 0) {
    const message = `the Service is headless and has no ready endpoint${view.noEndpointDetail(key)}: its name does not exist`;
    return { kind: 'none', stages: [{ stage: 'dns', verdict: 'deny', object, message }] };
  }
  const message = `the Service is headless: its name leads to ${targets.length} ready endpoints`;
  return { kind: 'found', stages: [{ stage: 'dns', verdict: 'allow', object, message }], targets };
}

function podTarget(pod: Pod, wanted: string | undefined, protocol: Protocol): ResolvedDestination {
  const key = keyOf(pod);
  const [address] = addressesOfPod(pod);
  if (address === undefined) throw new DestinationError(`Pod ${key} has no address yet`);
  const declared = (pod.spec.containers ?? [])
    .flatMap(({ ports = [] }) => ports)
    .filter((each) => (each.protocol ?? 'TCP') === protocol);
  const named = declared.find(({ name }) => name !== undefined && name === wanted);
  const only = wanted === undefined && declared.length === 1 ? declared[0] : undefined;
  const port = (named ?? only)?.containerPort ?? numberOf(wanted);
  return { kind: 'found', stages: [], targets: [{ address: address.canonical, protocol, port }] };
}

/** As libc does with `ndots:5`: names with fewer dots are completed by the search list first. */
function nameTargets(
  zone: Zone,
  name: string,
  port: number,
  protocol: Protocol,
  searches: readonly string[],
): ResolvedDestination {
  const dots = name.split('.').length - 1;
  const absolute = name.replace(/\.$/, '');
  const candidates = name.endsWith('.')
    ? [absolute]
    : dots < 5
      ? [...searches.map((domain) => `${name}.${domain}`), name]
      : [name, ...searches.map((domain) => `${name}.${domain}`)];
  for (const candidate of candidates) {
    const found = addressesOfName(zone, candidate);
    if (found === 'outside') return { kind: 'outsideName', name: candidate, port, stages: [] };
    if (typeof found === 'object' && 'alias' in found) {
      const message = `${candidate} is an alias of ${found.alias}`;
      return {
        kind: 'outsideName',
        name: found.alias,
        port,
        stages: [{ stage: 'dns', verdict: 'allow', message }],
      };
    }
    if (found === 'missing') continue;
    const message = `${candidate} has ${found.join(', ')}`;
    const targets = found.map((address) => ({ address, protocol, port }));
    return { kind: 'found', stages: [{ stage: 'dns', verdict: 'allow', message }], targets };
  }
  const message = `no name of the cluster: ${candidates.join(', ')}`;
  return { kind: 'none', stages: [{ stage: 'dns', verdict: 'deny', message }] };
}

function addressesOfName(
  zone: Zone,
  name: string,
): readonly string[] | 'missing' | 'outside' | { readonly alias: string } {
  for (const family of ['A', 'AAAA'] as const) {
    const found = answer(zone, { name, type: family });
    if (found === undefined) return 'outside';
    if (found.outsideTarget !== undefined) return { alias: found.outsideTarget };
    const addresses = found.answers.flatMap((record) => ('address' in record ? [record.address] : []));
    if (addresses.length > 0) return addresses;
  }
  return 'missing';
}

/** Where a name of the world leads to, once it was looked up. */
export function outsideTargets(
  { name, port, stages }: Extract<ResolvedDestination, { kind: 'outsideName' }>,
  addresses: readonly string[] | undefined,
  protocol: Protocol,
): ResolvedDestination {
  if (addresses === undefined || addresses.length === 0) {
    const message = `${name} is no name of the cluster, and this machine finds no address of it`;
    return { kind: 'none', stages: [...stages, { stage: 'dns', verdict: 'unknown', message }] };
  }
  const message = `${name} has ${addresses.join(', ')}, as this machine sees it`;
  const targets = addresses.flatMap((text) => {
    const address = parseStrictAddress(text)?.canonical;
    return address === undefined ? [] : [{ address, protocol, port }];
  });
  return { kind: 'found', stages: [...stages, { stage: 'dns', verdict: 'allow', message }], targets };
}

/** The families that a source has addresses of decide which addresses of a name are tried. */
export function targetsOfFamilies(
  targets: readonly TraceDestination[],
  families: readonly IPFamily[],
): readonly TraceDestination[] {
  return targets.filter(({ address }) => {
    const family = parseAddress(address)?.family;
    return family !== undefined && families.includes(family);
  });
}
