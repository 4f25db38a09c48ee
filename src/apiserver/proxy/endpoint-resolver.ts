import type { KubeObject } from '../../objects/meta.ts';
import { badRequest, notFound, plainError, serviceUnavailable } from '../../objects/status.ts';
import { at, listAt, numberAt, recordAt, textAt } from '../../objects/json.ts';
import ipaddr from 'ipaddr.js';
import { type IPFamily, parseAddress } from '../../objects/address.ts';
import { serviceNameLabel } from '../../objects/endpoints.ts';

/** The target of a proxied request. */
export interface ProxyTarget {
  readonly scheme: 'http' | 'https';
  /** An IP address. */
  readonly host: string;
  readonly port: number;
  /** A Pod has the address. */
  readonly isPod: boolean;
  /** The port of a Node's kubelet, which authenticates this server by its client certificate. */
  readonly isKubelet?: boolean;
}

/** Finds where requests to the `/proxy` of a Service, a Pod or a Node go. */
export interface EndpointResolver {
  /**
   * @param id `name`, `name:port` or `scheme:name:port`; the port by name or number.
   * @throws {StatusError} 400, 404 or 503.
   */
  service(namespace: string, id: string): ProxyTarget;
  /** The same; the port is a number, and the first one of the Pod where it is left out. */
  pod(namespace: string, id: string): ProxyTarget;
  /** The same; the kubelet's port, by HTTPS, where the port is left out. @throws {StatusError} 400, 404 or 500. */
  node(id: string): ProxyTarget;
}

export interface EndpointResolverOptions {
  /** Reads the newest version of an object. */
  get(group: string, plural: string, namespace: string, name: string): KubeObject | undefined;
  /** All objects of a namespace. */
  list(group: string, plural: string, namespace: string): readonly KubeObject[];
  /** The first family of the cluster's Services: endpoints of it are preferred. */
  readonly primaryFamily: IPFamily;
  /** In [0, 1). */
  random(): number;
  /**
   * Also forwards to addresses without a Pod. kube-apiserver does not, so that users who may write slices cannot use
   * the server to reach addresses that are closed to them.
   */
  readonly addressesWithoutPods?: boolean;
}

/**
 * Resolves from EndpointSlices, Pods and Nodes as kube-apiserver does (`pkg/registry/core/service/storage/storage.go`,
 * `pkg/registry/core/pod/strategy.go` and `pkg/registry/core/node/strategy.go`, ResourceLocation).
 */
export function createEndpointResolver(options: EndpointResolverOptions): EndpointResolver {
  return {
    service: (namespace, id) => serviceTarget(options, namespace, id),
    pod: (namespace, id) => podTarget(options, namespace, id),
    node: (id) => nodeTarget(options, id),
  };
}

interface ProxyId {
  readonly scheme: 'http' | 'https';
  readonly name: string;
  readonly port: string;
}

/** `[scheme:]name[:port]`; undefined when it is none (apimachinery `util/net/port_split.go`). */
function parseId(id: string): ProxyId | undefined {
  const parts = id.split(':');
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', parts[0], parts[1]];
  if (parts.length > 3 || name === '' || (scheme !== '' && scheme !== 'http' && scheme !== 'https')) {
    return undefined;
  }
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port };
}

function serviceTarget(options: EndpointResolverOptions, namespace: string, id: string): ProxyTarget {
  const parsed = parseId(id);
  if (parsed === undefined) throw badRequest(`invalid service request ${JSON.stringify(id)}`);
  const { scheme, name } = parsed;
  const portName = /^[+-]?\d+$/.test(parsed.port)
    ? nameOfPort(options, namespace, name, Number(parsed.port))
    : parsed.port;

  return { scheme, ...randomEndpoint(options, namespace, name, portName) };
}

/** A ready endpoint of a Service, by any slice that has the port (apiserver `util/proxy/proxy.go` RandomEndpoint). */
function randomEndpoint(
  options: EndpointResolverOptions,
  namespace: string,
  service: string,
  portName: string,
): Omit<ProxyTarget, 'scheme'> {
  const slices = options
    .list('discovery.k8s.io', 'endpointslices', namespace)
    .filter(({ metadata }) => metadata.labels?.[serviceNameLabel] === service);
  const isPreferred = (slice: KubeObject) => textAt(slice, 'addressType') === options.primaryFamily;
  const ordered = fromRandom(slices, options).toSorted(
    (a, b) => Number(isPreferred(b)) - Number(isPreferred(a)),
  );
  for (const slice of ordered) {
    for (const port of listAt(slice, 'ports')) {
      if (at(port, 'name') !== portName || at(port, 'port') === undefined) continue;
      for (const endpoint of fromRandom(listAt(slice, 'endpoints'), options)) {
        if (at(endpoint, 'conditions', 'ready') === false) continue;
        if (!mayForward(options, namespace, endpoint)) continue;
        return { host: firstAddress(endpoint), port: numberAt(port, 'port'), isPod: refersToPod(endpoint) };
      }
    }
  }
  throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(service)}`);
}

function firstAddress(endpoint: unknown): string {
  const [address] = listAt(endpoint, 'addresses');
  return typeof address === 'string' ? address : '';
}

/** Slices know ports by name only: the name of the Service's port with a number. */
function nameOfPort(
  options: EndpointResolverOptions,
  namespace: string,
  name: string,
  number: number,
): string {
  const service = options.get('', 'services', namespace, name);
  if (service === undefined) throw notFound({ group: '', resource: 'services' }, name);
  const port = listAt(service, 'spec', 'ports').find((candidate) => numberAt(candidate, 'port') === number);
  if (port === undefined) {
    throw serviceUnavailable(`no service port ${number} found for service ${JSON.stringify(name)}`);
  }
  return textAt(port, 'name');
}

function refersToPod(endpoint: unknown): boolean {
  return recordAt(endpoint, 'targetRef')['kind'] !== undefined;
}

/** True when a Pod of the namespace has the address, by its status and the target reference. */
function mayForward(options: EndpointResolverOptions, namespace: string, endpoint: unknown): boolean {
  const ip = firstAddress(endpoint);
  if (isClosed(ip)) return false;
  if (!refersToPod(endpoint)) return options.addressesWithoutPods === true;
  const target = recordAt(endpoint, 'targetRef');
  if (textAt(target, 'namespace') !== namespace) return false;
  const pod = options.get('', 'pods', namespace, textAt(target, 'name'));
  return listAt(pod, 'status', 'podIPs').some((podIP) => textAt(podIP, 'ip') === ip);
}

/** All items once around, from a random one on. */
function fromRandom<T>(items: readonly T[], options: EndpointResolverOptions): readonly T[] {
  const start = Math.floor(options.random() * items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

function podTarget(options: EndpointResolverOptions, namespace: string, id: string): ProxyTarget {
  const parsed = parseId(id);
  if (parsed === undefined) throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  const { scheme, name } = parsed;
  const pod = options.get('', 'pods', namespace, name);
  if (pod === undefined) throw notFound({ group: '', resource: 'pods' }, name);
  const [podIP] = listAt(pod, 'status', 'podIPs');
  const host = textAt(podIP, 'ip') || textAt(pod, 'status', 'podIP');
  if (isClosed(host)) throw badRequest('address not allowed');
  const declared = listAt(pod, 'spec', 'containers')
    .map((container) => numberAt(listAt(container, 'ports')[0], 'containerPort'))
    .find((port) => port > 0);
  const fallback = declared ?? (scheme === 'https' ? 443 : 80);
  const port = parsed.port === '' ? fallback : portOf(parsed);
  if (port === undefined) throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  return { scheme, host, port, isPod: true };
}

/** 1 to 65535; undefined: it is none. */
function portOf({ port }: ProxyId): number | undefined {
  const number = Number(port);
  return Number.isInteger(number) && number >= 1 && number <= 65535 ? number : undefined;
}

/** `KubeletPort` of kube-apiserver (`pkg/cluster/ports`). */
const kubeletPort = 10250;

/** Where a kubelet answers. */
export interface KubeletTarget {
  /** An address. */
  readonly host: string;
  readonly port: number;
}

/**
 * The kubelet of a Node (`pkg/kubelet/client` GetConnectionInfo), by its InternalIP: names of nodes do not resolve in
 * the cluster network.
 *
 * @param node undefined: there is none of this name.
 * @throws {StatusError} 404, or 500 for a Node without an InternalIP.
 */
export function kubeletOf(node: KubeObject | undefined, name: string): KubeletTarget {
  if (node === undefined) throw notFound({ group: '', resource: 'nodes' }, name);
  const internal = listAt(node, 'status', 'addresses').find((each) => textAt(each, 'type') === 'InternalIP');
  if (internal === undefined) throw plainError('no preferred addresses found; known addresses: []');
  const port = numberAt(node, 'status', 'daemonEndpoints', 'kubeletEndpoint', 'Port') || kubeletPort;
  return { host: textAt(internal, 'address'), port };
}

function nodeTarget(options: EndpointResolverOptions, id: string): ProxyTarget {
  const parsed = parseId(id);
  if (parsed === undefined) throw badRequest(`invalid node request ${JSON.stringify(id)}`);
  const { scheme, name } = parsed;
  const { host, port: kubelet } = kubeletOf(options.get('', 'nodes', '', name), name);
  if (isClosed(host)) throw badRequest('address not allowed');
  const port = parsed.port === '' ? kubelet : portOf(parsed);
  if (port === undefined) throw badRequest(`invalid node request ${JSON.stringify(id)}`);
  return port === kubelet
    ? { scheme: 'https', host, port, isPod: false, isKubelet: true }
    : { scheme, host, port, isPod: false };
}

/** What Go's `IsGlobalUnicast` refuses. Private ranges pass. */
const closedRanges: ReadonlySet<string> = new Set([
  'unspecified',
  'loopback',
  'linkLocal',
  'multicast',
  'broadcast',
]);

/** IPv6 prefixes behind which the last 32 bits are an IPv4 address. */
const ipv4InLastBits = [
  '::/96', // IPv4-compatible (RFC 4291, 2.5.5.1)
  '::ffff:0:0:0/96', // IPv4-translated (RFC 2765)
  '64:ff9b::/96', // NAT64 (RFC 6052)
  '64:ff9b:1::/48', // NAT64 of a site (RFC 8215)
].map((cidr) => ipaddr.IPv6.parseCIDR(cidr));

/** 6to4 (RFC 3056): an IPv4 address follows the first 16 bits. */
const sixToFour = ipaddr.IPv6.parseCIDR('2002::/16');

/**
 * True for an address that the server connects to for no client: not a global unicast one as Go's `IsGlobalUnicast`
 * has it, or an IPv6 form of such an IPv4 address that a gateway in the network of the machine would translate.
 * True for text that is no address, too.
 */
function isClosed(text: string): boolean {
  const parsed = parseAddress(text);
  if (parsed === undefined || parsed.leadingZeros) return true;
  // An IPv4-mapped address is canonical as the IPv4 address.
  const address = ipaddr.parse(parsed.canonical);
  if (closedRanges.has(address.range())) return true;
  if (!(address instanceof ipaddr.IPv6)) return false;
  const embedded = embeddedIPv4(address);
  return embedded !== undefined && closedRanges.has(embedded.range());
}

function embeddedIPv4(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const bytes = address.toByteArray();
  if (ipv4InLastBits.some((cidr) => address.match(cidr))) return new ipaddr.IPv4(bytes.slice(12));
  if (address.match(sixToFour)) return new ipaddr.IPv4(bytes.slice(2, 6));
  return undefined;
}
