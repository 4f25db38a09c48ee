import { dnsServiceKey } from '../dns/dns-service.ts';
import { joinKey } from '../../objects/meta.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { TrackedConnection } from './conntrack.ts';
import type { Flow, FlowEnd, FlowService } from './flow.ts';
import type { DeniedPacket, FlowNames } from './names.ts';
import { setYoungest, takeOldest } from './oldest.ts';

/** Milliseconds within which the kernel's events are read. */
const eventMs = 1000;
/** Requests that wait for their connections. */
const maxRequests = 1000;
/** Characters of a host or path. */
const maxText = 200;
/** Flows that are kept, and connections that are told apart; a tenth more for a moment. */
const maxFlows = 10_000;
/** Milliseconds that a connection may be without an answer before it is said to be `opened`. */
const answerMs = 3000;
/** A connection that ends so soon without an answer was refused by a reset; later, the kernel has forgotten it. */
const resetMs = 60_000;
/** Milliseconds by which the times of the kernel's sets may be wrong: they are whole seconds. */
const deniedSlackMs = 2000;

/** Packets of one source that a node denied at one port, as its kernel has counted them. */
export interface CountedDenial extends DeniedPacket {
  readonly outcome: 'dropped' | 'refused';
  /** The address that its sender sent it to. */
  readonly sentTo: string;
  /** All that the kernel knows of. */
  readonly packets: number;
  readonly lastMs: number;
}

/** A request that the router refused, with the ends of its connection as the router sees them. */
export interface RefusedRequest {
  readonly client: string;
  readonly clientPort: number;
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly status: number;
  /** The word of its logs and metrics. */
  readonly reason: string;
  /** `Ingress shop/shop`; undefined: no rule. */
  readonly object: string | undefined;
}

/** A connection, from its first event on. */
interface Known {
  readonly id: number;
  readonly node: string;
  readonly connection: TrackedConnection;
  readonly beganMs: number;
  state: 'waiting' | 'opened' | 'decided';
}

interface WaitingRequest {
  readonly request: RefusedRequest;
  readonly atMs: number;
}

/** What is said of a denial, and what the kernel has counted of it. */
interface Denial {
  flow: Flow;
  /** In the flow; the kernel's may begin anew. */
  counted: number;
  lastMs: number;
}

export interface FlowTrackerOptions {
  /** By the objects as they are. */
  readonly names: () => FlowNames;
  /** Is given each flow, and again when it is another. */
  readonly tell: (flow: Flow) => void;
}

/**
 * Makes flows of what nodes and servers see: of each connection one, told by the node that it begins at, and of denied
 * packets one for each source, destination and port. What the other nodes see of a connection is left out.
 */
export class FlowTracker {
  readonly #options: FlowTrackerOptions;
  #lastId = 0;
  /** The last ones, by id. */
  readonly #flows = new Map<number, Flow>();
  readonly #connections = new Map<string, Known>();
  /** Those without an answer, by {@link answerKey}. */
  readonly #waiting = new Map<string, Set<Known>>();
  /** By the port of the client, as the destination sees it. */
  readonly #byReply = new Map<string, Known>();
  readonly #denials = new Map<string, Denial>();
  /** The last one for {@link answerKey}. */
  readonly #lastDenials = new Map<string, Denial>();
  readonly #requests: WaitingRequest[] = [];
  #forgotten = 0;

  constructor(options: FlowTrackerOptions) {
    this.#options = options;
  }

  /** Flows that are known, the oldest first; connections without an answer yet among them. */
  known(): readonly Flow[] {
    const waiting = [...this.#waiting.values()].flatMap((set) =>
      [...set].map((known) => this.#flowOf(known, 'opened')),
    );
    return [...this.#flows.values(), ...waiting].toSorted((a, b) => (a.time < b.time ? -1 : 1));
  }

  /** How many connections were forgotten before anything was said of them: too many came. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** A node has seen a connection. */
  saw(node: string, connection: TrackedConnection, nowMs: number): void {
    if (isLoopback(connection.original.source)) return;
    const names = this.#options.names();
    const home = names.nodeOf(connection.original.source);
    if (home !== undefined && home !== node) return;
    const key = connectionKey(connection);
    const before = this.#connections.get(key);
    // Of a source outside, the first node tells.
    if (before !== undefined && before.node !== node) return;
    if (connection.event === 'destroy') {
      if (before !== undefined && before.state !== 'decided') this.#ended(before, connection, nowMs);
      return;
    }
    const isAgain = connection.event === 'new' && before !== undefined && before.state !== 'waiting';
    // The event of its beginning was lost, and counts as lost.
    if (before === undefined && connection.event === 'update') return;
    const known = before === undefined || isAgain ? this.#begin(key, node, connection, nowMs) : before;
    if (connection.isReplied && known.state !== 'decided') this.#decide(known, 'connected');
  }

  /** A node's kernel has counted denied packets. */
  denied(denial: CountedDenial): void {
    const { node, by, source, destination, protocol, port, sentTo, packets, lastMs, outcome } = denial;
    const key = [node, by, outcome, source, destination, protocol, port, sentTo].join(' ');
    const before = this.#denials.get(key);
    if (before !== undefined && before.counted === packets) return;
    const attempts = this.#takeWaiting(answerKey(protocol, source, destination, port), lastMs);
    // Fewer than before: the kernel had forgotten them, and has begun anew.
    const more = before === undefined || packets < before.counted ? packets : packets - before.counted;
    const names = this.#options.names();
    const connection = attempts[0]?.connection.original;
    const service =
      before?.flow.service ??
      (connection === undefined
        ? names.serviceLeadingTo(denial, sentTo)
        : names.serviceAt(node, connection.destination, protocol, connection.destinationPort));
    const flow: Flow = {
      id: before?.flow.id ?? ++this.#lastId,
      time: timeOf(lastMs),
      node,
      from: before?.flow.from ?? names.endAt(connection?.source ?? source),
      ...(service === undefined ? {} : { service }),
      // Rules of Services deny before an endpoint is chosen.
      ...(by === 'services' && service !== undefined ? {} : { to: names.endAt(destination, port) }),
      ...{ protocol, outcome },
      packets: (before?.flow.packets ?? 0) + more,
      decidedBy: names.decisionOn(denial),
    };
    const now: Denial = { flow, counted: packets, lastMs };
    setYoungest(this.#denials, key, now, maxFlows);
    setYoungest(this.#lastDenials, answerKey(protocol, source, destination, port), now, maxFlows);
    this.#tell(flow);
  }

  /** There is no such name. @param client the address that asked. */
  missing(name: string, client: string, nowMs: number): void {
    const names = this.#options.names();
    this.#tell({
      ...{ id: ++this.#lastId, time: timeOf(nowMs), from: names.endAt(client), protocol: 'UDP' },
      ...{ outcome: 'NXDOMAIN', dns: { name }, decidedBy: names.missingName(name, client) },
    });
  }

  /** The router has refused a request. Its connection, which tells its client, may be seen later. */
  refused(request: RefusedRequest, nowMs: number): void {
    this.#requests.push({ request, atMs: nowMs });
    if (this.#requests.length > maxRequests) this.#tellRequest(this.#requests.shift());
  }

  #tellRequest(waiting: WaitingRequest | undefined): void {
    if (waiting === undefined) return;
    const { atMs: nowMs } = waiting;
    const { client, clientPort, object, ...http } = waiting.request;
    const names = this.#options.names();
    const known = this.#byReply.get(`${client} ${clientPort}`);
    const { source, destination, destinationPort } = known?.connection.original ?? {
      ...{ source: client, destination: '', destinationPort: 0 },
    };
    const service =
      known === undefined ? undefined : names.serviceAt(known.node, destination, 'TCP', destinationPort);
    const { method, status, reason } = http;
    // They are kept: a client may send long ones.
    const [host, path] = [http.host.slice(0, maxText), http.path.slice(0, maxText)];
    this.#tell({
      ...{ id: ++this.#lastId, time: timeOf(nowMs), from: names.endAt(source), protocol: 'TCP' },
      ...(service === undefined ? {} : { service }),
      ...{ outcome: 'refused', http: { method, host, path, status, reason } },
      decidedBy: {
        ...(object === undefined ? {} : { object }),
        message: `${reason}: ${method} ${host}${path} ${status}`,
      },
    });
  }

  /** Says what has waited for long enough. */
  tick(nowMs: number): void {
    for (let [first] = this.#requests; first !== undefined; [first] = this.#requests) {
      if (nowMs - first.atMs < eventMs) break;
      this.#tellRequest(this.#requests.shift());
    }
    for (const set of this.#waiting.values()) {
      for (const known of set) {
        if (nowMs - known.beganMs < answerMs) continue;
        this.#forgetWaiting(known);
        const denial = this.#denialOf(known);
        known.state = denial === undefined ? 'opened' : 'decided';
        const flow = this.#flowOf(known, 'opened');
        if (denial === undefined) this.#tell(flow);
        else if (denial.flow.service === undefined && flow.service !== undefined) {
          // Its packets were counted before the connection was seen, which alone has the Service.
          denial.flow = { ...denial.flow, from: flow.from, service: flow.service };
          this.#tell(denial.flow);
        }
      }
    }
  }

  #begin(key: string, node: string, connection: TrackedConnection, nowMs: number): Known {
    const former = this.#connections.get(key);
    if (former !== undefined) this.#forgetWaiting(former);
    const known: Known = {
      ...{ id: ++this.#lastId, node, connection, beganMs: nowMs - connection.ageSeconds * 1000 },
      state: 'waiting',
    };
    this.#connections.delete(key);
    this.#connections.set(key, known);
    const { reply, protocol } = connection;
    setYoungest(this.#byReply, `${reply.destination} ${reply.destinationPort}`, known, maxFlows);
    for (const oldest of takeOldest(this.#connections, maxFlows)) {
      if (oldest.state === 'waiting') this.#forgotten++;
      this.#forgetWaiting(oldest);
    }
    const waiting = answerKey(protocol, reply.destination, reply.source, reply.sourcePort);
    const set = this.#waiting.get(waiting);
    if (set === undefined) this.#waiting.set(waiting, new Set([known]));
    else set.add(known);
    return known;
  }

  #ended(known: Known, { protocol, isReplied }: TrackedConnection, nowMs: number): void {
    if (isReplied) this.#decide(known, 'connected');
    else if (protocol === 'TCP' && nowMs - known.beganMs < resetMs) this.#decide(known, 'refused');
  }

  #decide(known: Known, outcome: 'connected' | 'refused'): void {
    this.#forgetWaiting(known);
    known.state = 'decided';
    this.#tell(this.#flowOf(known, outcome));
  }

  #flowOf({ id, node, connection, beganMs }: Known, outcome: 'connected' | 'refused' | 'opened'): Flow {
    const names = this.#options.names();
    const { original, reply, protocol } = connection;
    // A node filters before it masquerades.
    const seenAs = names.nodeOf(reply.source) === node ? original.source : reply.destination;
    const from = names.endAt(original.source);
    const service = names.serviceAt(node, original.destination, protocol, original.destinationPort);
    const to = names.endAt(reply.source, reply.sourcePort);
    const decidedBy =
      outcome === 'connected'
        ? names.allowedBy(seenAs, reply.source, protocol, reply.sourcePort)
        : outcome === 'refused'
          ? { message: 'the destination has reset the connection: nothing listens at its port' }
          : undefined;
    return {
      ...{ id, time: timeOf(beganMs), node, from, sourcePort: original.sourcePort },
      ...(service === undefined ? {} : { service }),
      ...{ to, protocol, outcome },
      ...(decidedBy === undefined ? {} : { decidedBy }),
      ...(isOwn(node, from, service, to, outcome, names) ? { own: true as const } : {}),
    };
  }

  /** The denied packets that its own are counted among; undefined: none. */
  #denialOf({ connection: { reply, protocol }, beganMs }: Known): Denial | undefined {
    const key = answerKey(protocol, reply.destination, reply.source, reply.sourcePort);
    const denial = this.#lastDenials.get(key);
    return denial !== undefined && beganMs <= denial.lastMs + deniedSlackMs ? denial : undefined;
  }

  /** The connections whose packets were denied. */
  #takeWaiting(key: string, lastMs: number): readonly Known[] {
    const taken = [...(this.#waiting.get(key) ?? [])].filter(
      ({ beganMs }) => beganMs <= lastMs + deniedSlackMs,
    );
    for (const known of taken) {
      this.#forgetWaiting(known);
      known.state = 'decided';
    }
    return taken;
  }

  #forgetWaiting(known: Known): void {
    const { reply, protocol } = known.connection;
    const key = answerKey(protocol, reply.destination, reply.source, reply.sourcePort);
    const set = this.#waiting.get(key);
    set?.delete(known);
    if (set?.size === 0) this.#waiting.delete(key);
  }

  #tell(flow: Flow): void {
    setYoungest(this.#flows, flow.id, flow, maxFlows);
    this.#options.tell(flow);
  }
}

/** The cluster's own: from the control plane, between machines, from a node to its own Pods, and answered questions to DNS. */
function isOwn(
  node: string,
  from: FlowEnd,
  service: FlowService | undefined,
  to: FlowEnd,
  outcome: 'connected' | 'refused' | 'opened',
  names: FlowNames,
): boolean {
  if (from.kind === 'control-plane') return true;
  if (service !== undefined) {
    return outcome === 'connected' && joinKey(service.namespace, service.name) === dnsServiceKey;
  }
  if (from.kind !== 'Node') return false;
  return to.kind === 'Node' || to.kind === 'control-plane' || names.nodeOf(to.address) === node;
}

function connectionKey({ protocol, original }: TrackedConnection): string {
  const { source, sourcePort, destination, destinationPort } = original;
  return `${protocol} ${source} ${sourcePort} ${destination} ${destinationPort}`;
}

/** What the first packet of a connection and a denied one have in common, once Services were translated. */
function answerKey(protocol: Protocol, source: string, destination: string, port: number): string {
  return `${protocol} ${source} ${destination} ${port}`;
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
