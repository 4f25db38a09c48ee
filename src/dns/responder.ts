import type { Logger } from 'pino';
import type { Clock, Random } from '../client/clock.ts';
import { answer } from '../network/dns/answer.ts';
import type { Answer, DnsRecord } from '../network/dns/records.ts';
import type { Zone } from '../network/dns/zone.ts';
import { LogThrottle } from '../telemetry/log.ts';
import type { DnsMetrics, Series } from './dns-metrics.ts';
import { ForwardError, type Forwarder } from './forwarder.ts';
import {
  MessageWriter,
  type Rcode,
  type DnsReply,
  type DnsQuery,
  readAnswers,
  readQuery,
  type RefusedQuery,
} from './message.ts';
import { errorMessage } from '../objects/status.ts';

export interface ResponderOptions {
  readonly zone: Zone;
  /** Whether {@link zone} has all objects of the API server: before that, no name is known to be missing. */
  readonly hasSynced: () => boolean;
  readonly forwarder: Forwarder;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: DnsMetrics;
}

/** Where a packet came from. */
export interface Channel {
  readonly protocol: 'udp' | 'tcp';
  /** Of the client's address: 1 for IPv4, 2 for IPv6 (CoreDNS). */
  readonly family: 1 | 2;
}

const maxTcpMessage = 65_535;
const outside = '.';

/** What the zone answers to a query until it changes: found again in a third of the time. */
interface KnownAnswer {
  /** But for the id. */
  readonly response: Buffer;
  readonly series: Series;
}

/** Bytes of a query and of its answer; and how many are known, before all are forgotten. */
const maxKnownBytes = 512;
const maxKnown = 4096;

/** Turns the bytes of a query into those of its response: from the zone at once, else from an upstream. */
export class DnsResponder {
  readonly #options: ResponderOptions;
  readonly #writer = new MessageWriter();
  readonly #throttle: LogThrottle;
  /** By {@link askedBy}. */
  readonly #known = new Map<string, KnownAnswer>();
  #knownVersion = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#throttle = new LogThrottle(() => options.clock.monotonic());
  }

  /**
   * @param signal ends what waits for an upstream.
   * @returns undefined for what is not to be answered. Never rejects.
   */
  respond(
    bytes: Buffer,
    channel: Channel,
    signal: AbortSignal,
  ): Buffer | undefined | Promise<Buffer | undefined> {
    const { zone, clock, metrics } = this.#options;
    const started = clock.monotonic();
    const asked = askedBy(bytes, channel);
    const known = asked === undefined ? undefined : this.#knownAnswer(asked);
    if (known !== undefined) {
      const response = Buffer.from(known.response);
      bytes.copy(response, 0, 0, 2);
      known.series.count(bytes.length, response.length, (clock.monotonic() - started) / 1000);
      return response;
    }
    const query = readQuery(bytes);
    if (query === undefined) {
      metrics.dropped.inc();
      return undefined;
    }
    const type = 'refused' in query ? 'other' : query.type;
    const series = (of: string, rcode: string, plugin: 'kubernetes' | 'forward' | ''): Series =>
      metrics.series({ ...channel, type, zone: of, rcode, plugin });
    const count = (counted: Series, response: Buffer): Buffer => {
      counted.count(bytes.length, response.length, (clock.monotonic() - started) / 1000);
      return response;
    };
    const rcode = rcodeBeforeLookup(query);
    if (rcode !== undefined) return count(series('dropped', rcode, ''), this.#withoutRecords(query, rcode));
    if ('refused' in query) return undefined;
    const limit = channel.protocol === 'tcp' ? maxTcpMessage : query.udpSize;
    try {
      const found = answer(zone, query);
      if (found === undefined) {
        return this.#forward(query, channel, limit, signal).then((forwarded) =>
          count(series(outside, forwarded.rcode, 'forward'), forwarded.response),
        );
      }
      const own = `${zone.options.domain}.`;
      if (found.outsideTarget !== undefined) {
        return this.#withOutsideTarget(query, found, found.outsideTarget, limit, signal).then((response) =>
          count(series(own, found.rcode, 'kubernetes'), response),
        );
      }
      const isUnknown = found.rcode === 'NXDOMAIN' && !this.#options.hasSynced();
      const reply: DnsReply = isUnknown ? withoutRecords(query, 'SERVFAIL') : this.#reply(query, found);
      const response = this.#writer.write(reply, limit);
      const counted = series(own, reply.rcode, 'kubernetes');
      // Several addresses come in another order each time.
      const isSame = !isUnknown && found.answers.length < 2;
      if (asked !== undefined && isSame) this.#know(asked, { response, series: counted });
      return count(counted, response);
    } catch (error) {
      this.#options.log.error({ name: query.name, type: query.type, err: error }, 'a DNS query failed');
      return count(series(outside, 'SERVFAIL', ''), this.#withoutRecords(query, 'SERVFAIL'));
    }
  }

  #knownAnswer(asked: string): KnownAnswer | undefined {
    const { version } = this.#options.zone;
    if (version !== this.#knownVersion) this.#known.clear();
    this.#knownVersion = version;
    return this.#known.get(asked);
  }

  #know(asked: string, { response, series }: KnownAnswer): void {
    if (response.length > maxKnownBytes) return;
    if (this.#known.size >= maxKnown) this.#known.clear();
    // The response itself goes to the client.
    this.#known.set(asked, { response: Buffer.from(response), series });
  }

  #reply(query: DnsQuery, { rcode, answers, authorities, additionals }: Answer): DnsReply {
    return {
      query: query.isPlain ? query : { ...query, name: '' },
      rcode,
      authoritative: rcode !== 'REFUSED',
      answers: shuffled(answers, this.#options.random),
      authorities,
      additionals,
    };
  }

  #withoutRecords(query: DnsQuery | RefusedQuery, rcode: Rcode): Buffer {
    return this.#writer.write(withoutRecords(query, rcode), maxTcpMessage);
  }

  async #forward(
    query: DnsQuery,
    { protocol }: Channel,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ readonly rcode: string; readonly response: Buffer }> {
    try {
      const response = await this.#options.forwarder.ask(query, protocol, signal);
      // The response of the upstream is too long: the client repeats the query by TCP.
      if (response.length > limit) {
        const truncated = this.#withoutRecords(query, 'NOERROR');
        truncated.writeUInt16BE(truncated.readUInt16BE(2) | 0x0200, 2);
        return { rcode: 'NOERROR', response: truncated };
      }
      response.writeUInt16BE(query.id, 0);
      const code = response.readUInt16BE(2) & 15;
      return { rcode: upstreamRcodes[code] ?? 'other', response };
    } catch (error) {
      this.#tell(query, error);
      return { rcode: 'SERVFAIL', response: this.#withoutRecords(query, 'SERVFAIL') };
    }
  }

  /** The addresses of an ExternalName; only the CNAME where no upstream has them, as in CoreDNS. */
  async #withOutsideTarget(
    query: DnsQuery,
    found: Answer,
    target: string,
    limit: number,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const records: DnsRecord[] = [...found.answers];
    try {
      const questionBytes = questionOf(target, query.questionBytes);
      const { checkingDisabled, edns, udpSize } = query;
      const asked = { questionBytes, checkingDisabled, edns, udpSize };
      let response = await this.#options.forwarder.ask(asked, 'udp', signal);
      // Truncated by the upstream; a reply that is too long here sets its own bit.
      if ((response.readUInt16BE(2) & 0x0200) !== 0) {
        response = await this.#options.forwarder.ask(asked, 'tcp', signal);
      }
      for (const record of readAnswers(response) ?? []) {
        const ttl = ('ttl' in record ? record.ttl : undefined) ?? 0;
        if (record.type === 'A' || record.type === 'AAAA') {
          records.push({ name: record.name, type: record.type, ttl, address: record.data });
        } else if (record.type === 'CNAME') {
          records.push({ name: record.name, type: record.type, ttl, target: record.data });
        }
      }
    } catch (error) {
      this.#tell(query, error);
    }
    return this.#writer.write(this.#reply(query, { ...found, answers: records }), limit);
  }

  #tell({ name, type }: DnsQuery, error: unknown): void {
    const { log } = this.#options;
    const message = errorMessage(error);
    if (!(error instanceof ForwardError)) {
      log.error({ name, type, err: error }, 'a name outside the cluster could not be asked for');
    } else if (this.#throttle.isDue(message)) {
      log.warn({ name, type, reason: 'UpstreamFailed', message }, 'no upstream answered');
    }
  }
}

const upstreamRcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'];

/** Queries that are refused for every name. */
function rcodeBeforeLookup(query: DnsQuery | RefusedQuery): Rcode | undefined {
  if ('refused' in query) return query.refused;
  if (query.edns !== undefined && query.edns.version !== 0) return 'BADVERS';
  return query.class === 'IN' ? undefined : 'REFUSED';
}

function withoutRecords(query: DnsQuery | RefusedQuery, rcode: Rcode): DnsReply {
  return { query, rcode, authoritative: false, answers: [], authorities: [], additionals: [] };
}

/** What tells queries with different answers apart: the channel, and the query but for its id. */
function askedBy(bytes: Buffer, { protocol, family }: Channel): string | undefined {
  return bytes.length > maxKnownBytes ? undefined : `${protocol}${family}${bytes.toString('latin1', 2)}`;
}

/**
 * Addresses in a random order, after the aliases that resolve to them (CoreDNS `loadbalance round_robin`): clients take
 * the first.
 */
function shuffled(records: readonly DnsRecord[], random: Random): readonly DnsRecord[] {
  if (records.length < 2) return records;
  const addresses = records.filter(({ type }) => type === 'A' || type === 'AAAA');
  for (let i = addresses.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    const [a, b] = [addresses[i], addresses[other]];
    if (a !== undefined && b !== undefined) [addresses[i], addresses[other]] = [b, a];
  }
  return [...records.filter(({ type }) => type !== 'A' && type !== 'AAAA'), ...addresses];
}

/** A question for another name with the type and class of this one. */
function questionOf(name: string, like: Buffer): Buffer {
  const labels = name.split('.').map((label) => {
    const text = Buffer.from(label, 'latin1');
    return Buffer.concat([Buffer.from([text.length]), text]);
  });
  return Buffer.concat([...labels, Buffer.from([0]), like.subarray(like.length - 4)]);
}
