import { anyNode, type Hop, type SeenConnection, type SeenHop } from './way.ts';

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
