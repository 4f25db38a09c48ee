import { parseAddress } from '../../objects/address.ts';
import { listAt, numberAt, textAt } from '../../objects/json.ts';
import { type Command, concat, field, match, type NftExpression, type NftFamily } from './elements.ts';
import type { Nft } from './nft.ts';

/**
 * Packets that rules of ours deny, counted by the kernel: a set with a counter for each source, destination and port, and
 * a counter of all of them beside it. The elements stay for {@link keptSeconds}. Only `up` records them.
 */

/** Seconds after the last packet. */
const keptSeconds = 300;
/** Elements of a set at most: what comes beyond is in the counter beside it alone. */
const maxElements = 16_384;

/** A set, with the counter of the same name. */
export interface DeniedSet {
  readonly family: NftFamily | 'inet';
  readonly table: string;
  readonly name: string;
  /** Of the packets in it. */
  readonly packets: NftFamily;
}

/** Packets of one source to one port. */
export interface DeniedPackets {
  readonly source: string;
  /** Where the packet was to go when it was denied: behind a Service that was translated, its endpoint. */
  readonly destination: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  /** The address that its sender sent it to. */
  readonly sentTo: string;
  readonly packets: number;
  /** Seconds since the last one. */
  readonly agoSeconds: number;
}

/** Makes sets and counters, in nft's own language: JSON of nft 1.0.6 knows no sets that packets fill and that count. */
export function deniedSetsText(sets: readonly DeniedSet[]): string {
  return sets
    .map(({ family, table, name, packets }) => {
      const address = packets === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
      const type = `${address} . ${address} . inet_proto . inet_service . ${address}`;
      const flags = `flags dynamic,timeout; size ${maxElements}; timeout ${keptSeconds}s; counter;`;
      return `add set ${family} ${table} ${name} { type ${type}; ${flags} }\nadd counter ${family} ${table} ${name}\n`;
    })
    .join('');
}

/** The rule that records a packet in a set, and says nothing of what becomes of it. */
export function recordDenied({ family, table, name, packets }: DeniedSet, chain: string): Command {
  // Its port does not fit: nft 1.0.6 has 56 bytes for a key.
  const sentTo: NftExpression = { ct: { key: `${packets} daddr`, dir: 'original' } };
  const elem = concat(
    ...[field.sourceAddress(packets), field.destinationAddress(packets)],
    ...[field.protocol, field.destinationPort],
    sentTo,
  );
  const expr = [
    ...(family === 'inet' ? [match({ meta: { key: 'nfproto' } }, packets === 'ip' ? 'ipv4' : 'ipv6')] : []),
    // Others have no ports.
    match(field.protocol, { set: ['tcp', 'udp', 'sctp'] }),
    // First: where the set is full, the rule ends.
    { counter: name },
    { set: { op: 'update', elem, set: `@${name}` } },
  ];
  return { add: { rule: { family, table, chain, expr } } };
}

/** Reads a machine's sets; the caller ends its nft. One call at a time. */
export class DeniedReader {
  readonly #nft: Nft;
  readonly #sets: readonly DeniedSet[];
  /** The packets of each, as they were read last. */
  readonly #counts = new Map<DeniedSet, number>();

  constructor(nft: Nft, sets: readonly DeniedSet[]) {
    this.#nft = nft;
    this.#sets = sets;
  }

  /**
   * The contents of the sets that have changed since the last call, and all counters of the machine.
   *
   * @throws {NftError}
   */
  async read(): Promise<{
    readonly changed: readonly (readonly [DeniedSet, readonly DeniedPackets[]])[];
    readonly counters: ReadonlyMap<string, number>;
  }> {
    const counters = readCounters(await this.#nft.listCounters());
    const changed: (readonly [DeniedSet, readonly DeniedPackets[]])[] = [];
    for (const set of this.#sets) {
      const { family, table, name } = set;
      const count = counters.get(counterKey(family, table, name)) ?? 0;
      if (count === (this.#counts.get(set) ?? 0)) continue;
      const text = await this.#nft.list([], 'set', family, table, name);
      changed.push([set, text === undefined ? [] : readDenied(text)]);
      this.#counts.set(set, count);
    }
    return { changed, counters };
  }
}

/** What {@link DeniedReader.read} files a counter under. */
export function counterKey(family: string, table: string, name: string): string {
  return `${family} ${table} ${name}`;
}

/** The packets of all counters in the output of `nft -j list counters`. */
export function readCounters(listing: string): ReadonlyMap<string, number> {
  const counters = new Map<string, number>();
  for (const item of listAt(JSON.parse(listing), 'nftables')) {
    const of = (member: string): string => textAt(item, 'counter', member);
    if (of('name') === '') continue;
    const key = counterKey(of('family'), of('table'), of('name'));
    counters.set(key, numberAt(item, 'counter', 'packets'));
  }
  return counters;
}

/** The elements in the output of `nft -j list set`. */
export function readDenied(listing: string): readonly DeniedPackets[] {
  return listAt(JSON.parse(listing), 'nftables')
    .flatMap((item) => listAt(item, 'set', 'elem'))
    .flatMap((item) => {
      const [source, destination, protocol, port, sentTo] = listAt(item, 'elem', 'val', 'concat');
      const name = protocols.get(protocol);
      if (name === undefined || typeof port !== 'number') return [];
      return {
        source: addressOf(source),
        destination: addressOf(destination),
        protocol: name,
        port,
        sentTo: addressOf(sentTo),
        packets: numberAt(item, 'elem', 'counter', 'packets'),
        agoSeconds: Math.max(0, keptSeconds - numberAt(item, 'elem', 'expires')),
      };
    });
}

/** By what nft prints, with names or without. */
const protocols: ReadonlyMap<unknown, DeniedPackets['protocol']> = new Map<
  unknown,
  DeniedPackets['protocol']
>([
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['sctp', 'SCTP'],
  [6, 'TCP'],
  [17, 'UDP'],
  [132, 'SCTP'],
]);

function addressOf(value: unknown): string {
  return typeof value === 'string' ? (parseAddress(value)?.canonical ?? value) : '';
}
