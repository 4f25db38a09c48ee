import { serviceNameLabel, isReady, servingRank } from '../../objects/endpoints.ts';
import { type ObjectKey, keyOf, joinKey, type KubeObject } from '../../objects/meta.ts';
import type { Service, ServicePort } from '../../objects/types/core.generated.ts';
import type { Protocol, Problems, PlannedEndpoint } from './forwarding-plan.ts';
import { parseAddress, type IPFamily } from '../../objects/address.ts';
import type { EndpointSlice, Endpoint as SliceEndpoint } from '../../objects/types/discovery.generated.ts';
import { quotedStart } from '../../objects/formats/go-text.ts';

/** The ports of Services, and the endpoints that EndpointSlices have for them (`proxy/endpointslicecache.go`). Pure. */

/** A port of a Service that can be forwarded. */
export interface ReadPort {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** Undefined for ports without one. */
  readonly nodePort: number | undefined;
}

/** True for 1 to 65535. */
export function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65535;
}

/** The protocol of a port: TCP where none is given, undefined for one that cannot be forwarded. */
export function protocolOf(text: string | undefined): Protocol | undefined {
  switch (text) {
    case undefined:
    case 'TCP':
      return 'TCP';
    case 'UDP':
    case 'SCTP':
      return text;
    default:
      return undefined;
  }
}

/** The key by which slices and Services are joined. */
export function portKey(name: string, protocol: Protocol): string {
  return `${name}/${protocol}`;
}

/**
 * Reads `spec.ports`. A port is left out when it cannot be forwarded, or when one before it has its name or its number
 * (of the same protocol); a node port when one before it has it.
 */
export function readPorts(service: Service, key: ObjectKey, problems: Problems): ReadPort[] {
  const read: ReadPort[] = [];
  const taken = new Set<string>();
  for (const port of service.spec.ports ?? []) {
    const valid = readPort(port, key, problems);
    if (valid === undefined) continue;
    const { name, protocol } = valid;
    const named = `name ${JSON.stringify(name)}/${protocol}`;
    const numbered = `port ${valid.port}/${protocol}`;
    const twice = [named, numbered].find((what) => taken.has(what));
    if (twice !== undefined) {
      problems.add(
        'Duplicate',
        'Service',
        key,
        `spec.ports: ${twice} is there twice: the second is left out`,
      );
      continue;
    }
    taken.add(named).add(numbered);
    const onNode = `nodePort ${valid.nodePort ?? 'none'}/${protocol}`;
    const nodePortTaken = valid.nodePort !== undefined && taken.has(onNode);
    if (nodePortTaken) problems.add('Duplicate', 'Service', key, `spec.ports: ${onNode} is there twice`);
    else taken.add(onNode);
    read.push(nodePortTaken ? { ...valid, nodePort: undefined } : valid);
  }
  return read;
}

function readPort(port: ServicePort, key: ObjectKey, problems: Problems): ReadPort | undefined {
  const protocol = protocolOf(port.protocol);
  if (protocol === undefined) {
    const what = `spec.ports: protocol ${JSON.stringify(port.protocol)} cannot be forwarded`;
    problems.add('InvalidProtocol', 'Service', key, what);
    return undefined;
  }
  if (!isPort(port.port)) {
    problems.add('InvalidPort', 'Service', key, `spec.ports: port ${port.port} is out of range`);
    return undefined;
  }
  const nodePort = port.nodePort === 0 ? undefined : port.nodePort;
  const valid = { name: port.name ?? '', protocol, port: port.port };
  if (nodePort === undefined || isPort(nodePort)) return { ...valid, nodePort };
  problems.add('InvalidPort', 'Service', key, `spec.ports: nodePort ${nodePort} is out of range`);
  return { ...valid, nodePort: undefined };
}

/** An endpoint of one Service port, usable or not. */
export interface ServiceEndpoint {
  readonly planned: PlannedEndpoint;
  /** The endpoint in its slice. */
  readonly source: SliceEndpoint;
  readonly slice: ObjectKey;
}

/** The endpoints of a Service in one family. */
export interface ServiceEndpoints {
  /** By {@link portKey}; sorted by address and port, without duplicates. */
  readonly byPort: ReadonlyMap<string, readonly ServiceEndpoint[]>;
  /** Distinct addresses of ready endpoints on this node, of all ports. */
  readonly localReadyAddresses: number;
}

/**
 * Merges the slices of one Service.
 *
 * @param slices of any family, sorted by name: of an address and port that is there twice, the endpoint counts that serves
 *   best ({@link servingRank}), and the last of equal ones.
 */
export function collectEndpoints(
  slices: readonly EndpointSlice[],
  family: IPFamily,
  nodeName: string,
  problems: Problems,
): ServiceEndpoints {
  const found = new Map<string, ServiceEndpoint[]>();
  for (const slice of slices) {
    if (slice.addressType !== family) continue;
    const key = keyOf(slice);
    const sources = slice.endpoints ?? [];
    const addresses = sources.map((source) => readAddress(source, key, family, problems));
    for (const { join, port } of readSlicePorts(slice, key, problems)) {
      const endpoints = found.get(join) ?? [];
      if (endpoints.length === 0) found.set(join, endpoints);
      sources.forEach((source, i) => {
        const address = addresses[i];
        if (address === undefined) return;
        const planned = { address, port, isLocal: source.nodeName === nodeName };
        endpoints.push({ planned, source, slice: key });
      });
    }
  }
  const byPort = new Map<string, readonly ServiceEndpoint[]>();
  for (const [join, endpoints] of found) byPort.set(join, withoutDuplicates(endpoints, problems));
  return { byPort, localReadyAddresses: countLocalReady(byPort) };
}

/** The canonical address of an endpoint: the first one, no other is read; undefined for bad ones. */
function readAddress(
  { addresses }: SliceEndpoint,
  slice: ObjectKey,
  family: IPFamily,
  problems: Problems,
): string | undefined {
  const [text] = addresses;
  if (text === undefined) {
    problems.add('NoAddress', 'EndpointSlice', slice, 'an endpoint has no address and is left out');
    return undefined;
  }
  const parsed = parseAddress(text);
  if (parsed === undefined) {
    problems.add('InvalidAddress', 'EndpointSlice', slice, `endpoint ${quotedStart(text)} is no address`);
    return undefined;
  }
  // The text that the slice holds anyway takes no memory of its own.
  if (parsed.family === family) return parsed.canonical === text ? text : parsed.canonical;
  problems.add('AddressFamilyMismatch', 'EndpointSlice', slice, `endpoint ${text} is not ${family}`);
  return undefined;
}

/** The ports of a slice, with what they join a Service's ports by. */
function readSlicePorts(
  slice: EndpointSlice,
  key: ObjectKey,
  problems: Problems,
): { readonly join: string; readonly port: number }[] {
  const read: { join: string; port: number }[] = [];
  for (const { name, port, protocol } of slice.ports ?? []) {
    if (name === undefined || port === undefined || !isPort(port)) {
      const what =
        name === undefined ? 'a port has no name' : `port ${quotedStart(name)} is ${port ?? 'absent'}`;
      problems.add('InvalidPort', 'EndpointSlice', key, `${what} and is left out`);
      continue;
    }
    const known: Protocol | undefined = protocolOf(protocol);
    if (known === undefined) {
      const what = `port ${quotedStart(name)} has protocol ${quotedStart(protocol ?? '')}`;
      problems.add('InvalidProtocol', 'EndpointSlice', key, `${what} and is left out`);
      continue;
    }
    read.push({ join: portKey(name, known), port });
  }
  return read;
}

/** Sorts, and keeps one of each address and port. */
function withoutDuplicates(endpoints: ServiceEndpoint[], problems: Problems): readonly ServiceEndpoint[] {
  endpoints.sort((a, b) => compareEndpoints(a.planned, b.planned));
  let kept = 0;
  for (const endpoint of endpoints) {
    const previous = kept === 0 ? undefined : endpoints[kept - 1];
    if (previous === undefined || compareEndpoints(previous.planned, endpoint.planned) !== 0) {
      endpoints[kept++] = endpoint;
      continue;
    }
    if (previous.slice === endpoint.slice) {
      const { address, port } = endpoint.planned;
      const what = `endpoint ${address} port ${port} is there twice`;
      problems.add('Duplicate', 'EndpointSlice', endpoint.slice, what);
    }
    if (servingRank(endpoint.source) >= servingRank(previous.source)) endpoints[kept - 1] = endpoint;
  }
  endpoints.length = kept;
  return endpoints;
}

function compareEndpoints(a: PlannedEndpoint, b: PlannedEndpoint): number {
  return a.address === b.address ? a.port - b.port : a.address < b.address ? -1 : 1;
}

function countLocalReady(byPort: ReadonlyMap<string, readonly ServiceEndpoint[]>): number {
  const addresses = new Set<string>();
  for (const endpoints of byPort.values()) {
    for (const endpoint of endpoints) {
      if (endpoint.planned.isLocal && isReady(endpoint.source)) addresses.add(endpoint.planned.address);
    }
  }
  return addresses.size;
}

const proxyNameLabel = 'service.kubernetes.io/service-proxy-name';
export const headlessLabel = 'service.kubernetes.io/headless';

/** True for Services and slices of another proxy: they have the label, with any value. */
export function isOfOtherProxy(object: KubeObject): boolean {
  return hasLabel(object, proxyNameLabel);
}

/** The Service that a slice belongs to; undefined for slices that the proxy ignores and for those of no Service. */
export function serviceOfSlice(slice: EndpointSlice): ObjectKey | undefined {
  if (isOfOtherProxy(slice) || hasLabel(slice, headlessLabel)) return undefined;
  const name = slice.metadata.labels?.[serviceNameLabel];
  if (name === undefined || name === '') return undefined;
  return joinKey(slice.metadata.namespace ?? '', name);
}

/** The index of slices by {@link indexBySliceService}. */
export const bySliceService = 'slice-service';

/** Files a slice under its Service ({@link serviceOfSlice}). */
export function indexBySliceService(slice: EndpointSlice): readonly ObjectKey[] {
  const key = serviceOfSlice(slice);
  return key === undefined ? [] : [key];
}

function hasLabel(object: KubeObject, label: string): boolean {
  const { labels } = object.metadata;
  return labels !== undefined && Object.hasOwn(labels, label);
}
