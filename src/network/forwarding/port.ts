import type { ObjectKey } from '../../objects/key.ts';
import type { Service, ServicePort } from '../../objects/types/core.generated.ts';
import type { Protocol } from './forwarding-plan.ts';
import type { Problems } from './problem.ts';

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
