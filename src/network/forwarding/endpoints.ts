/** From EndpointSlices to the endpoints of Service ports (`proxy/endpointslicecache.go`). Pure. */
import { parseAddress } from '../../objects/address.ts';
import type { EndpointHints, EndpointSlice } from '../../objects/endpoint-slice.ts';
import { keyOf, type ObjectKey } from '../../objects/key.ts';
import type { IPFamily } from '../../objects/service.ts';
import type { PlannedEndpoint, Protocol } from './forwarding-plan.ts';
import { isPort, portKey, protocolOf } from './port.ts';
import type { Problems } from './problem.ts';

/** An endpoint of one Service port, usable or not. */
export interface Endpoint {
  readonly planned: PlannedEndpoint;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly hints: EndpointHints | undefined;
}

/** The endpoints of a Service in one family. */
export interface ServiceEndpoints {
  /** By {@link portKey}; sorted by address and port, without duplicates. */
  readonly byPort: ReadonlyMap<string, readonly Endpoint[]>;
  /** Distinct addresses of ready endpoints on this node, whatever their port. */
  readonly localReadyAddresses: number;
}

/**
 * Merges the slices of one Service.
 *
 * @param slices of any family, sorted by name: where two have the same endpoint, the later one is believed, unless it
 *   says that the endpoint terminates (F4).
 */
export function collectEndpoints(
  slices: readonly EndpointSlice[],
  family: IPFamily,
  nodeName: string,
  problems: Problems,
): ServiceEndpoints {
  const byPort = new Map<string, FoundEndpoint[]>();
  for (const slice of slices) {
    if (slice.addressType !== family) continue; // F3
    const key = keyOf(slice);
    const addressed = readEndpoints(slice, key, family, nodeName, problems);
    for (const [name, port, protocol] of readPorts(slice, key, problems)) {
      const join = portKey(name, protocol);
      const found = byPort.get(join) ?? [];
      if (found.length === 0) byPort.set(join, found);
      for (const endpoint of addressed) {
        const { address, isLocal, ready, serving, terminating, hints } = endpoint;
        const planned = { address, port, isLocal };
        found.push({ planned, ready, serving, terminating, hints, slice: key });
      }
    }
  }
  const merged = new Map<string, readonly Endpoint[]>();
  for (const [join, found] of byPort) merged.set(join, withoutDuplicates(found, problems));
  return { byPort: merged, localReadyAddresses: countLocalReady(merged) };
}

interface AddressedEndpoint extends Omit<Endpoint, 'planned'> {
  readonly address: string;
  readonly isLocal: boolean;
}

interface FoundEndpoint extends Endpoint {
  readonly slice: ObjectKey;
}

function readEndpoints(
  slice: EndpointSlice,
  key: ObjectKey,
  family: IPFamily,
  nodeName: string,
  problems: Problems,
): AddressedEndpoint[] {
  const read: AddressedEndpoint[] = [];
  for (const { addresses, conditions, nodeName: onNode, hints } of slice.endpoints ?? []) {
    const [text] = addresses; // The others are not read (F4).
    if (text === undefined) {
      problems.add('NoAddress', 'EndpointSlice', key, 'an endpoint has no address and is left out');
      continue;
    }
    const parsed = parseAddress(text);
    if (parsed === undefined) {
      problems.add('InvalidAddress', 'EndpointSlice', key, `endpoint ${quoted(text)} is no address`);
      continue;
    }
    if (parsed.family !== family) {
      problems.add('AddressFamilyMismatch', 'EndpointSlice', key, `endpoint ${text} is not ${family}`);
      continue;
    }
    read.push({
      address: parsed.canonical,
      isLocal: onNode === nodeName, // F5
      ready: conditions.ready ?? true, // F6
      serving: conditions.serving ?? true,
      terminating: conditions.terminating ?? false,
      hints,
    });
  }
  return read;
}

function readPorts(
  slice: EndpointSlice,
  key: ObjectKey,
  problems: Problems,
): [name: string, port: number, protocol: Protocol][] {
  const read: [string, number, Protocol][] = [];
  for (const { name, port, protocol } of slice.ports ?? []) {
    if (name === undefined || port === undefined || !isPort(port)) {
      const what = name === undefined ? 'a port has no name' : `port ${quoted(name)} is ${port ?? 'absent'}`;
      problems.add('InvalidPort', 'EndpointSlice', key, `${what} and is left out`);
      continue;
    }
    const known = protocolOf(protocol);
    if (known === undefined) {
      const what = `port ${quoted(name)} has protocol ${quoted(protocol ?? '')}`;
      problems.add('InvalidProtocol', 'EndpointSlice', key, `${what} and is left out`);
      continue;
    }
    read.push([name, port, known]);
  }
  return read;
}

/** Sorts, and of each run of equal endpoints keeps the last that does not terminate, or the first. */
function withoutDuplicates(found: FoundEndpoint[], problems: Problems): readonly Endpoint[] {
  found.sort((a, b) => compareEndpoints(a.planned, b.planned));
  const kept: FoundEndpoint[] = [];
  for (const endpoint of found) {
    const previous = kept.at(-1);
    if (previous === undefined || compareEndpoints(previous.planned, endpoint.planned) !== 0) {
      kept.push(endpoint);
      continue;
    }
    if (previous.slice === endpoint.slice) {
      const { address, port } = endpoint.planned;
      problems.add(
        'Duplicate',
        'EndpointSlice',
        endpoint.slice,
        `endpoint ${address} port ${port} is there twice`,
      );
    }
    if (!endpoint.terminating) kept[kept.length - 1] = endpoint;
  }
  return kept;
}

function compareEndpoints(a: PlannedEndpoint, b: PlannedEndpoint): number {
  return a.address === b.address ? a.port - b.port : a.address < b.address ? -1 : 1;
}

function countLocalReady(byPort: ReadonlyMap<string, readonly Endpoint[]>): number {
  const addresses = new Set<string>();
  for (const endpoints of byPort.values()) {
    for (const { planned, ready } of endpoints) if (ready && planned.isLocal) addresses.add(planned.address);
  }
  return addresses.size;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}
