import type { Clock } from '../../client/clock.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../../client/errors.ts';
import type { ResourceClient } from '../../client/resource-client.ts';
import {
  announcerLabel,
  announcerLeaseName,
  reportAnnotation,
} from '../../network/announcing/agent-report.ts';
import { shortestLeaseSeconds } from '../../network/announcing/fence.ts';
import type { Lease } from '../../objects/types/coordination.generated.ts';
import { formatMicroTime } from '../../objects/formats/time.ts';
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:dgram';
import type { Logger } from 'pino';
import type { Host } from '../../host/host.ts';
import { sendDatagram } from '../../host/sockets.ts';
import { parseAddress } from '../../objects/address.ts';
import { scalarAt, textAt, textsAt } from '../../objects/json.ts';

/** Milliseconds after which a request is cancelled: the next one may use another connection. */
const requestTimeoutMs = 1000;

/** A Lease as it was written. */
export interface WrittenLease {
  /** `metadata.resourceVersion`. */
  readonly version: string;
  /** `spec.leaseDurationSeconds`. */
  readonly leaseSeconds: number;
}

/**
 * Writes the Lease of this node's agent, one call at a time. Each write says which version it replaces: one that was given
 * up is never done late, and none undoes that another agent has released the Lease.
 */
export class LeaseWriter {
  readonly #client: ResourceClient<Lease>;
  readonly #namespace: string;
  readonly #node: string;
  readonly #clock: Clock;
  /** The report that the Lease has; undefined: not known. */
  #writtenReport: string | undefined;
  #seconds = shortestLeaseSeconds;
  /** The Lease as it was last read or written; undefined: to be read. */
  #known: { readonly version: string; readonly acquired: string | undefined } | undefined;

  constructor(client: ResourceClient<Lease>, namespace: string, node: string, clock: Clock) {
    this.#client = client;
    this.#namespace = namespace;
    this.#node = node;
    this.#clock = clock;
  }

  /**
   * Renews the Lease, with the report where it is new.
   *
   * @param seconds what others are to see as its duration, at least: it never gets shorter.
   * @returns its version, and the duration that it has. @throws what the API server answers.
   */
  async renew(report: string, seconds: number): Promise<WrittenLease> {
    this.#seconds = Math.max(this.#seconds, seconds);
    const version = await this.#write(this.#node, report);
    return { version, leaseSeconds: this.#seconds };
  }

  /** Releases the Lease: others take over at once what this node announces. @throws as {@link renew}. */
  async release(report: string): Promise<void> {
    await this.#write('', report);
  }

  /**
   * Releases the Lease of another agent, if it still has that version.
   *
   * @returns false: the agent has renewed it.
   * @throws as {@link renew}.
   */
  async releaseOf(node: string, version: string): Promise<boolean> {
    const patch = { metadata: { resourceVersion: version }, spec: { holderIdentity: '' } };
    const options = { timeoutMs: requestTimeoutMs };
    try {
      await this.#client.mergePatch(this.#namespace, announcerLeaseName(node), patch, options);
      return true;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return false;
      throw error;
    }
  }

  async #write(holderIdentity: string, report: string): Promise<string> {
    try {
      return await this.#tryWrite(holderIdentity, report);
    } catch (error) {
      // It may have been written.
      this.#known = undefined;
      this.#writtenReport = undefined;
      // Another agent has released it, or has made it of old.
      if (!isConflict(error) && !isAlreadyExists(error) && !isNotFound(error)) throw error;
      return this.#tryWrite(holderIdentity, report);
    }
  }

  async #tryWrite(holderIdentity: string, report: string): Promise<string> {
    const name = announcerLeaseName(this.#node);
    const options = { timeoutMs: requestTimeoutMs };
    this.#known ??= await this.#read(name);
    const now = formatMicroTime(this.#clock.now());
    const acquired = this.#known.acquired ?? now;
    const spec = {
      ...{ holderIdentity, leaseDurationSeconds: this.#seconds },
      ...{ renewTime: now, acquireTime: acquired },
    };
    const { version } = this.#known;
    const labels = { [announcerLabel]: 'true' };
    const annotations = { [reportAnnotation]: report };
    const isNew = report !== this.#writtenReport;
    const written =
      version === ''
        ? await this.#client.create(
            { metadata: { labels, annotations, name, namespace: this.#namespace }, spec },
            options,
          )
        : await this.#client.mergePatch(
            this.#namespace,
            name,
            { metadata: { resourceVersion: version, ...(isNew ? { labels, annotations } : {}) }, spec },
            options,
          );
    this.#writtenReport = report;
    const { resourceVersion = '' } = written.metadata;
    this.#known = { version: resourceVersion, acquired: holderIdentity === '' ? undefined : acquired };
    return resourceVersion;
  }

  /** The Lease of a former process is this one's, unless it was released. */
  async #read(name: string): Promise<{ readonly version: string; readonly acquired: string | undefined }> {
    try {
      const { metadata, spec } = await this.#client.get(this.#namespace, name, {
        timeoutMs: requestTimeoutMs,
      });
      const { holderIdentity = '', acquireTime = '', leaseDurationSeconds = 0 } = spec;
      const isOurs = holderIdentity === this.#node && acquireTime !== '';
      // The lifetime of the former process's addresses.
      if (isOurs) this.#seconds = Math.max(this.#seconds, leaseDurationSeconds);
      return { version: metadata.resourceVersion ?? '', acquired: isOurs ? acquireTime : undefined };
    } catch (error) {
      if (isNotFound(error)) return { version: '', acquired: undefined };
      throw error;
    }
  }
}

/** An agent asks whether it may keep addresses. */
export interface KeepQuestion {
  readonly node: string;
  /** Canonical. */
  readonly addresses: readonly string[];
  /** For {@link Heartbeats.consent}. */
  readonly ticket: string;
}

/** An agent consents that the one that asked keeps its addresses. */
export interface Consent {
  readonly node: string;
  /** When it was asked, as given to {@link Heartbeats.ask}. */
  readonly askedAtMs: number;
  /** Those that it is to release: the agent that consents has them. */
  readonly except: readonly string[];
}

/** Messages of other agents, with the addresses that they come from. */
export interface HeartbeatHandler {
  readonly asked: (question: KeepQuestion, from: string) => void;
  readonly consented: (consent: Consent, from: string) => void;
}

/** Bytes of a datagram, at most: some 3,000 addresses. */
const maxDatagramBytes = 65_507;

/**
 * Questions of agents without the API server to each other over UDP, and consents. The agent checks that a message
 * came from an address of the node that it names.
 */
export class Heartbeats {
  readonly #host: Host;
  readonly #port: number;
  readonly #log: Logger;
  /** A consent to a question of a former process does not count: that process had another clock. */
  readonly #process = randomUUID();
  readonly #node: string;
  #sockets: readonly Socket[] = [];

  /** @param node this one. @param port the same on all nodes. */
  constructor(host: Host, node: string, port: number, log: Logger) {
    this.#host = host;
    this.#node = node;
    this.#port = port;
    this.#log = log;
  }

  /**
   * Listens on addresses of the node.
   *
   * @throws the system's error where the port is taken.
   */
  async open(addresses: readonly string[], handler: HeartbeatHandler): Promise<void> {
    const sockets: Socket[] = [];
    this.#sockets = sockets;
    for (const address of addresses) {
      const socket = await this.#host.datagram(address, this.#port);
      sockets.push(socket);
      socket.on('message', (bytes, { address: sender }) => {
        const from = parseAddress(sender)?.canonical ?? sender;
        const message = readMessage(bytes);
        const { ask: ticket, consent } = message;
        if (ticket !== undefined) handler.asked({ ...message, ticket }, from);
        const askedAtMs = this.#askedAtMs(consent);
        if (askedAtMs !== undefined) handler.consented({ ...message, askedAtMs }, from);
      });
      // A node that is gone answers with ICMP errors, which are of no use.
      socket.on('error', (error) => this.#log.debug({ err: error }, 'heartbeat not sent'));
    }
  }

  /** Asks an agent at one of its addresses. @param nowMs of a monotonic clock. */
  ask(addresses: readonly string[], nowMs: number, to: string): void {
    this.#send({ node: this.#node, ask: `${this.#process} ${nowMs}`, addresses }, to);
  }

  /** Consents to a question. @param except the addresses that this node keeps. */
  consent(ticket: string, except: readonly string[], to: string): void {
    this.#send({ node: this.#node, consent: ticket, except }, to);
  }

  #send(message: object, address: string): void {
    const socket = this.#sockets.find((one) => one.address().family === familyOf(address));
    if (socket === undefined) return;
    sendDatagram(socket, JSON.stringify(message), { address, port: this.#port }, (error) =>
      this.#log.debug({ address, err: error }, 'heartbeat not sent'),
    );
  }

  /** When a question of this process was asked. */
  #askedAtMs(ticket = ''): number | undefined {
    const [process, askedAt = ''] = ticket.split(' ');
    return process === this.#process && /^\d+(\.\d+)?$/.test(askedAt) ? Number(askedAt) : undefined;
  }

  close(): void {
    for (const socket of this.#sockets) socket.close();
    this.#sockets = [];
  }
}

function familyOf(address: string): string {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

/** A question where it has `ask`, the ticket of which is in `consent` of the answer. */
interface Message {
  readonly node: string;
  readonly ask: string | undefined;
  readonly consent: string | undefined;
  readonly addresses: readonly string[];
  readonly except: readonly string[];
}

/** Messages that do not parse are ignored. */
function readMessage(bytes: Buffer): Message {
  let value: unknown;
  try {
    value = bytes.length > maxDatagramBytes ? undefined : JSON.parse(bytes.toString());
  } catch {
    value = undefined;
  }
  return {
    node: textAt(value, 'node'),
    ask: scalarAt(value, 'ask'),
    consent: scalarAt(value, 'consent'),
    addresses: textsAt(value, 'addresses'),
    except: textsAt(value, 'except'),
  };
}
