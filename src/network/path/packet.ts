import type { StageName } from './stages.ts';
import type { Trace } from './trace.ts';
import { anyNode, type Hop, type SeenConnection, type SeenHop } from './way.ts';

/** The result of a connection that was really opened. */
export type PacketOutcome =
  | 'connected'
  /** A reset or an ICMP message came back. */
  | 'refused'
  /** Nothing came back. */
  | 'dropped';

/** A plan beside a real packet. */
export interface PacketVerdict {
  readonly outcome: PacketOutcome;
  /** Undefined: the plan does not decide. */
  readonly agrees: boolean | undefined;
  /** The stage at which the two part; undefined where they agree, or where that is not known. */
  readonly differsAt: StageName | undefined;
  /** A sentence. */
  readonly message: string;
}

const outcomes: Readonly<Record<PacketOutcome, string>> = {
  connected: 'a real connection was opened',
  refused: 'a real connection was refused',
  dropped: 'a real connection got no answer',
};

/**
 * Compares a plan with the result of a real connection.
 *
 * @param direct the results of connections to the endpoints themselves, past the Service; empty: not tried.
 */
export function comparePacket(
  { reachable, stages, endpoints }: Trace,
  outcome: PacketOutcome,
  direct: readonly PacketOutcome[] = [],
): PacketVerdict {
  const said = outcomes[outcome];
  if (reachable === undefined) {
    return {
      outcome,
      agrees: undefined,
      differsAt: undefined,
      message: `${said}; objects alone do not tell`,
    };
  }
  if (reachable === (outcome === 'connected')) {
    return { outcome, agrees: true, differsAt: undefined, message: `${said}, as planned` };
  }
  const differs = (differsAt: StageName | undefined, why: string): PacketVerdict => ({
    ...{ outcome, agrees: false, differsAt, message: `${said}, against the plan: ${why}` },
  });
  if (outcome === 'connected') {
    const denying = [...stages, ...endpoints.flatMap((endpoint) => endpoint.stages)].find(
      ({ verdict }) => verdict === 'deny',
    );
    return differs(denying?.stage, `${denying?.object ?? 'what denies it there'} is not enforced`);
  }
  if (direct.includes('connected')) {
    return differs(
      'service',
      'the endpoints answer when they are asked themselves: the Service is not translated',
    );
  }
  // An endpoint was asked itself, and refused itself.
  const isDirect = endpoints.length === 1 && stages.every(({ verdict }) => verdict === 'pass');
  const refused = direct.length > 0 ? direct.every((each) => each === 'refused') : isDirect;
  if (outcome === 'refused' && refused) return differs('target port', 'nothing listens there');
  const does = outcome === 'refused' ? 'refuses' : 'drops';
  return differs(undefined, `something ${does} it that these objects do not show`);
}

/** A packet that was really sent, beside the one that was planned. */

/**
 * Lays what was seen beside the planned ways: beside the one to the endpoint that was chosen; where no node tells which it
 * was, beside those that it agrees with, as one that a policy of the sending node ends; else beside all.
 *
 * @param ways to each endpoint. @param endpoints with ports, in the same order; empty: the only way ends before.
 */
export function seenBeside(
  ways: readonly (readonly Hop[])[],
  endpoints: readonly string[],
  seen: readonly SeenConnection[],
): readonly (readonly Hop[])[] {
  const chosen = endpoints.findIndex((endpoint) => seen.some(({ sent }) => sent.destination === endpoint));
  const beside = ways.map((way) => besideWay(way, seen));
  const agreeing = beside.map((way) => way.every((hop) => hop.seen?.agrees !== false));
  const isTaken = (index: number): boolean =>
    chosen === -1 ? agreeing[index] === true || !agreeing.includes(true) : chosen === index;
  return ways.map((way, index) => (isTaken(index) ? (beside[index] ?? way) : way));
}

function besideWay(way: readonly Hop[], seen: readonly SeenConnection[]): readonly Hop[] {
  return way.map((hop, index): Hop => {
    const name = hop.at.startsWith(nodePrefix) ? hop.at.slice(nodePrefix.length) : undefined;
    // Any node that is not one of the others.
    const others = way.map(({ at }) => at);
    const packet =
      name === undefined
        ? seen.find(({ node }) => !others.includes(`${nodePrefix}${node}`))
        : seen.find(({ node }) => node === name);
    if (name === undefined && hop.at !== anyNode) return hop;
    // A machine outside has another address than the one that the plan has made up.
    const [planned, real] = [way[0]?.sends?.source, seen[0]?.received.source];
    const source = hop.sends?.source === planned && real !== undefined ? addressIn(real) : hop.sends?.source;
    return { ...hop, seen: seenAt(hop, isEndedBy(way, index), source, packet) };
  });
}

const nodePrefix = 'node ';

/** Whether a node ends the way: what it decides about a Pod of its own stands at that Pod. */
function isEndedBy(way: readonly Hop[], index: number): boolean {
  const next = way[index + 1];
  const decided = next?.at.startsWith(nodePrefix) === false ? [way[index], next] : [way[index]];
  return decided.some((hop) => hop?.stages.some(({ verdict }) => verdict === 'deny'));
}

/** @param source that the packet has to have as it leaves. */
function seenAt(
  { sends }: Hop,
  isDenied: boolean,
  source: string | undefined,
  packet: SeenConnection | undefined,
): SeenHop {
  if (packet === undefined) {
    return { agrees: isDenied, message: isDenied ? 'not seen to pass, as planned' : 'not seen here' };
  }
  const { node, sent } = packet;
  const isAsPlanned =
    !isDenied &&
    (sends === undefined || (sent.destination === sends.destination && addressIn(sent.source) === source));
  if (isAsPlanned) return { packet, agrees: true, message: `seen on ${node}` };
  return {
    ...{ packet, agrees: false },
    message: isDenied
      ? `seen on ${node} to pass, against the plan`
      : `seen on ${node} to be sent to ${sent.destination} from ${sent.source}, against the plan`,
  };
}

/** @param address with a port. */
function addressIn(address: string): string {
  return address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
}
