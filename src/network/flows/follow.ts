import { joinHostPort } from '../../objects/address.ts';
import type { AddressPair, SeenConnection } from '../path/way.ts';
import type { TrackedConnection, Tuple } from './conntrack-line.ts';

/**
 * Follows one connection through nodes, which may translate its addresses.
 *
 * @param first its first packet, as its source sends it.
 * @param trackedAt the connections of TCP that each node tracks from a source port.
 * @returns what each node knows of it, in the order of the way.
 */
export async function followConnection(
  first: Tuple,
  trackedAt: (sourcePort: number) => Promise<readonly (readonly [node: string, TrackedConnection])[]>,
): Promise<readonly SeenConnection[]> {
  const found: SeenConnection[] = [];
  const known = new Map<number, Awaited<ReturnType<typeof trackedAt>>>();
  const sought: Tuple[] = [first];
  for (let packet = sought.shift(); packet !== undefined; packet = sought.shift()) {
    const { sourcePort } = packet;
    const tracked = known.get(sourcePort) ?? (await trackedAt(sourcePort));
    known.set(sourcePort, tracked);
    const received = pairOf(packet);
    for (const [node, { original, reply }] of tracked) {
      if (!isSame(pairOf(original), received) || found.some((each) => each.node === node)) continue;
      const sent: Tuple = {
        ...{ source: reply.destination, sourcePort: reply.destinationPort },
        ...{ destination: reply.source, destinationPort: reply.sourcePort },
      };
      found.push({ node, received, sent: pairOf(sent) });
      // The next node has it as this one has sent it.
      if (!isSame(pairOf(sent), received)) sought.push(sent);
    }
  }
  return found;
}

function pairOf({ source, sourcePort, destination, destinationPort }: Tuple): AddressPair {
  return {
    source: joinHostPort(source, sourcePort),
    destination: joinHostPort(destination, destinationPort),
  };
}

function isSame(a: AddressPair, b: AddressPair): boolean {
  return a.source === b.source && a.destination === b.destination;
}
