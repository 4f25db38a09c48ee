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

/** A connection of the kernel's connection tracking, as one line of `conntrack -E` or `conntrack -L` has it. */
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

const events = { '[NEW]': 'new', '[UPDATE]': 'update', '[DESTROY]': 'destroy' } as const;

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['sctp', 'SCTP'],
]);

/** Reads a line of either family. @returns undefined for what is no connection of TCP, UDP or SCTP. */
export function readConntrackLine(line: string): TrackedConnection | undefined {
  let event: TrackedConnection['event'] = 'listed';
  let protocol: Protocol | undefined;
  let isReplied = true;
  let ageSeconds = 0;
  const fields: Record<'src' | 'dst' | 'sport' | 'dport', string[]> = {
    src: [],
    dst: [],
    sport: [],
    dport: [],
  };
  for (const word of line.split(/\s+/)) {
    protocol ??= protocols.get(word);
    if (word === '[NEW]' || word === '[UPDATE]' || word === '[DESTROY]') event = events[word];
    else if (word === '[UNREPLIED]') isReplied = false;
    const equals = word.indexOf('=');
    if (equals === -1) continue;
    const [name, value] = [word.slice(0, equals), word.slice(equals + 1)];
    if (name === 'src' || name === 'dst' || name === 'sport' || name === 'dport') fields[name].push(value);
    else if (name === 'delta-time') ageSeconds = Number(value) || 0;
  }
  const original = tupleOf(fields, 0);
  const reply = tupleOf(fields, 1);
  if (protocol === undefined || original === undefined || reply === undefined) return undefined;
  return { event, protocol, original, reply, isReplied, ageSeconds };
}

function tupleOf(
  { src, dst, sport, dport }: Readonly<Record<'src' | 'dst' | 'sport' | 'dport', readonly string[]>>,
  index: 0 | 1,
): Tuple | undefined {
  const [source, destination] = [canonical(src[index]), canonical(dst[index])];
  const [sourcePort, destinationPort] = [Number(sport[index]), Number(dport[index])];
  if (source === undefined || destination === undefined) return undefined;
  if (!Number.isInteger(sourcePort) || !Number.isInteger(destinationPort)) return undefined;
  return { source, sourcePort, destination, destinationPort };
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  return text.includes(':') ? parseAddress(text)?.canonical : text;
}
