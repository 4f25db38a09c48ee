import { parseAddress } from '../../objects/address.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';

/** Two ends of a connection, as packets of one direction have them. */
export interface Tuple {
  /** Canonical. */
  readonly source: string;
  readonly sourcePort: number;
  /** Canonical. */
  readonly destination: string;
  readonly destinationPort: number;
}

/** A connection of the kernel's connection tracking: an event (`conntrack-event.ts`), or a line of `conntrack -L`. */
export interface TrackedConnection {
  /** `listed`: it was there. */
  readonly event: 'new' | 'update' | 'destroy' | 'listed';
  readonly protocol: Protocol;
  /** As its first packet was sent. */
  readonly original: Tuple;
  /** As its answers come: its source is where the first packet was led to, its destination the client that is seen there. */
  readonly reply: Tuple;
  /** Whether any answer came. */
  readonly isReplied: boolean;
  /** Seconds since it began; 0 where the line does not say. */
  readonly ageSeconds: number;
}

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['sctp', 'SCTP'],
]);

const headPattern = /^(?:ipv[46]\s+\d+\s+)?([a-z]+)\s/;
const agePattern = /\bdelta-time=(\d+)/;
/** The ends of one direction, in the order in which conntrack prints them. */
const tuplePattern = /\bsrc=(\S{1,45}) dst=(\S{1,45}) sport=(\d+) dport=(\d+)/g;

/** Reads a line of either family. @returns undefined for what is no connection of TCP, UDP or SCTP. */
export function readConntrackLine(line: string): TrackedConnection | undefined {
  const [, protocolWord = ''] = headPattern.exec(line) ?? [];
  const protocol = protocols.get(protocolWord);
  const [original, reply] = Array.from(line.matchAll(tuplePattern), tupleOf);
  if (protocol === undefined || original === undefined || reply === undefined) return undefined;
  const ageSeconds = Number(agePattern.exec(line)?.[1] ?? 0);
  return { event: 'listed', protocol, original, reply, isReplied: !line.includes('[UNREPLIED]'), ageSeconds };
}

function tupleOf([, source = '', destination = '', sourcePort, destinationPort]: RegExpExecArray):
  Tuple | undefined {
  const [from, to] = [canonical(source), canonical(destination)];
  if (from === undefined || to === undefined) return undefined;
  return {
    ...{ source: from, sourcePort: Number(sourcePort) },
    ...{ destination: to, destinationPort: Number(destinationPort) },
  };
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string): string | undefined {
  return text.includes(':') ? parseAddress(text)?.canonical : text;
}
