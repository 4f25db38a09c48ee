import { joinHostPort } from '../../objects/address.ts';
import { joinKey, keyOf, type ObjectKey, splitKey } from '../../objects/meta.ts';
import { workloadOf } from '../../objects/pods.ts';
import { workloadKinds } from '../../objects/references.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { refusalText, sourceOf, type Verdict, verdictFor } from '../forwarding/verdict.ts';
import type { Protocol } from '../forwarding/forwarding-plan.ts';
import type { ClusterView } from '../path/cluster-view.ts';
import { firewallStage, policyStage, type Stage } from '../path/stages.ts';
import type { FlowDecision, FlowEnd, FlowService } from './flow.ts';

/** A packet that was denied on a node, as that node saw it. */
export interface DeniedPacket {
  readonly node: string;
  /** Which rules denied it: those of policies, or those of Services. */
  readonly by: 'policies' | 'services';
  readonly source: string;
  readonly destination: string;
  readonly protocol: Protocol;
  readonly port: number;
}

const changedSince: FlowDecision = { message: 'nothing denies it by now: the objects have changed since' };

/** Names addresses by the objects of a cluster, and finds who decided. */
export class FlowNames {
  readonly #view: ClusterView;
  readonly #controlPlane: ReadonlySet<string>;
  /** What was asked for: many connections are between the same ends. */
  readonly #services = new Map<string, { readonly found: FlowService | undefined }>();
  readonly #allowed = new Map<string, { readonly found: FlowDecision | undefined }>();
  readonly #inside = new Map<string, { readonly found: boolean }>();
  readonly #denied = new Map<string, { readonly found: FlowDecision }>();

  /** @param controlPlane its addresses. */
  constructor(view: ClusterView, controlPlane: Iterable<string>) {
    this.#view = view;
    this.#controlPlane = new Set(controlPlane);
  }

  /** Whose an address is. */
  endAt(address: string, port?: number): FlowEnd {
    const at = port === undefined ? { address } : { address, port };
    const pod = this.#view.podAt(address);
    if (pod !== undefined) return { kind: 'Pod', ...podNames(pod), ...at };
    const node = this.#view.nodeAt(address);
    if (node !== undefined) return { kind: 'Node', name: node.metadata.name ?? '', ...at };
    if (this.#controlPlane.has(address)) return { kind: 'control-plane', ...at };
    const isInside = remembered(this.#inside, address, () => this.#view.isInRanges(address));
    return { kind: isInside ? 'address' : 'outside', ...at };
  }

  /** The node that a packet of an address begins at; undefined: none of the cluster. */
  nodeOf(address: string): string | undefined {
    return this.#view.nodeNameAt(address);
  }

  /** The Service that a connection to an address and port is opened to, as a node has it. */
  serviceAt(node: string, address: string, protocol: Protocol, port: number): FlowService | undefined {
    return remembered(this.#services, `${node} ${address} ${protocol} ${port}`, () => {
      const verdict = this.#verdict(node, address, { destination: address, protocol, port });
      if (verdict === undefined || verdict.verdict === 'pass') return undefined;
      const key = verdict.port?.service ?? this.#view.serviceAt(address);
      return key === undefined ? undefined : { ...splitKey(key), port: verdict.port?.port ?? port, address };
    });
  }

  /** The Service at an address that a denied packet was sent to. */
  serviceLeadingTo(
    { node, destination, protocol, port }: DeniedPacket,
    sentTo: string,
  ): FlowService | undefined {
    if (sentTo === destination) return this.serviceAt(node, destination, protocol, port);
    const key = `${node} ${sentTo} ${destination} ${protocol} ${port}`;
    return remembered(this.#services, key, () => {
      const found = this.#view.node(node);
      if (found === undefined) return undefined;
      for (const { port: plan, destination: at } of this.#view.forwardingPlan(found).destinations.values()) {
        if (plan.protocol !== protocol || (at.address !== undefined && at.address !== sentTo)) continue;
        const endpoints = [...plan.clusterEndpoints, ...plan.localEndpoints];
        if (!endpoints.some((each) => each.address === destination && each.port === port)) continue;
        return { ...splitKey(plan.service), port: plan.port, address: sentTo };
      }
      return undefined;
    });
  }

  /** The object that denies a packet now. */
  decisionOn(packet: DeniedPacket): FlowDecision {
    const { node, by, source, destination, protocol, port } = packet;
    const key = `${node} ${by} ${source} ${destination} ${protocol} ${port}`;
    return remembered(this.#denied, key, () =>
      by === 'services' ? this.#serviceDecision(packet) : this.#policyDecision(packet),
    );
  }

  /** Why there is no name. @param client the address that asked. */
  missingName(name: string, client: string): FlowDecision {
    const [service = '', given, ...rest] = name.split('.');
    const namespace = given ?? this.#view.podAt(client)?.metadata.namespace ?? '';
    const isOfServices = rest.length === 0 || rest[0] === 'svc';
    if (!isOfServices) return { message: `the cluster has no name ${name}` };
    if (!this.#view.hasNamespace(namespace)) {
      return { message: `there is no namespace ${namespace}, and the cluster has no other names` };
    }
    const key = joinKey(namespace, service);
    return this.#view.service(key) === undefined
      ? { message: `there is no Service ${key}` }
      : { object: `Service ${key}`, message: `it has no name ${name}` };
  }

  #verdict(
    node: string,
    source: string,
    { destination, protocol, port }: Pick<DeniedPacket, 'destination' | 'protocol' | 'port'>,
  ): Verdict | undefined {
    const found = this.#view.node(node);
    if (found === undefined) return undefined;
    const plan = this.#view.forwardingPlan(found);
    return verdictFor(plan, {
      ...{ source: sourceOf(plan, source), sourceAddress: source, protocol },
      ...{ destinationAddress: destination, destinationPort: port },
    });
  }

  #serviceDecision(packet: DeniedPacket): FlowDecision {
    const { node, source, destination, protocol } = packet;
    const verdict = this.#verdict(node, source, packet);
    if (verdict?.verdict !== 'reject' && verdict?.verdict !== 'drop') return changedSince;
    const { reason, port } = verdict;
    const key: ObjectKey | undefined = port?.service ?? this.#view.serviceAt(destination);
    return {
      ...(key === undefined ? {} : { object: `Service ${key}` }),
      ...(reason === 'SourceNotAllowed' ? { field: 'spec.loadBalancerSourceRanges' } : {}),
      message: `${protocol} ${joinHostPort(destination, packet.port)}: ${refusalText(reason, `node ${node}`)}`,
    };
  }

  #policyDecision({ node, source, destination, protocol, port }: DeniedPacket): FlowDecision {
    const view = this.#view;
    const connection = {
      ...{ source: view.sideAt(source), sourceAddress: source, protocol, port },
      ...{ destination: view.sideAt(destination), destinationAddress: destination },
    };
    const stages: readonly Stage[] = [
      ...(this.nodeOf(source) === node
        ? [policyStage(view, connection, 'egress'), firewallStage(view, connection, new Map())]
        : []),
      ...(this.nodeOf(destination) === node ? [policyStage(view, connection, 'ingress')] : []),
    ];
    // A name of an EgressFirewall is not looked up here: it decided where nothing else did.
    const stage =
      stages.find(({ verdict }) => verdict === 'deny') ?? stages.find(({ verdict }) => verdict === 'unknown');
    if (stage === undefined) return changedSince;
    const { object, field, message } = stage;
    return {
      ...(object === undefined ? {} : { object }),
      ...(field === undefined ? {} : { field }),
      message,
    };
  }

  /** The rule that lets a connection pass, where a policy isolates an end of it; undefined: none does. */
  allowedBy(source: string, destination: string, protocol: Protocol, port: number): FlowDecision | undefined {
    const view = this.#view;
    return remembered(this.#allowed, `${source} ${destination} ${protocol} ${port}`, () => {
      const connection = {
        ...{ source: view.sideAt(source), sourceAddress: source, protocol, port },
        ...{ destination: view.sideAt(destination), destinationAddress: destination },
      };
      for (const direction of ['ingress', 'egress'] as const) {
        const { verdict, object, field, message } = policyStage(view, connection, direction);
        if (verdict === 'allow' && object !== undefined && field !== undefined)
          return { object, field, message };
      }
      return undefined;
    });
  }
}

const maxRemembered = 20_000;

function remembered<T>(known: Map<string, { readonly found: T }>, key: string, find: () => T): T {
  const before = known.get(key);
  if (before !== undefined) return before.found;
  const found = find();
  if (known.size >= maxRemembered) known.clear();
  known.set(key, { found });
  return found;
}

function podNames(pod: Pod): Pick<FlowEnd, 'namespace' | 'name' | 'workload'> {
  const { namespace, name } = splitKey(keyOf(pod));
  const workload = workloadOf(pod);
  if (workload === undefined) return { namespace, name };
  const { kind, name: of } = workload;
  const known = workloadKind(kind);
  return known === undefined ? { namespace, name } : { namespace, name, workload: { kind: known, name: of } };
}

function workloadKind(kind: string) {
  return workloadKinds.find((each) => each === kind);
}

/** Milliseconds without an answer to a client until a name counts as missing: it may have asked for several. */
const settledMs = 1000;
/** Names of clients at a time; beyond, the oldest is said. */
const maxNames = 1000;

/** A name that a client asked for, as it meant it. */
interface Missing {
  readonly name: string;
  readonly client: string;
  lastMs: number;
}

interface MissingNamesOptions {
  /** Of the cluster: `cluster.local`. */
  readonly domain: string;
  /** The namespace of the Pod that has an address; undefined: none has. */
  readonly namespaceOf: (client: string) => string | undefined;
  /** Is given each name that does not exist, once, as its client meant it. */
  readonly tell: (name: string, client: string) => void;
}

/**
 * Finds the names that clients ask for in vain. A resolver asks for one name in each domain of its search list, and in both
 * families, and most of the answers are that there is none: a name is missing where no answer has it.
 */
export class MissingNames {
  readonly #options: MissingNamesOptions;
  /** The oldest first. */
  readonly #missing: Missing[] = [];

  constructor(options: MissingNamesOptions) {
    this.#options = options;
  }

  /** A client was answered. @param name without a dot at its end. @param exists whether there is such a name. */
  answered(client: string, name: string, exists: boolean, nowMs: number): void {
    const asked = name.toLowerCase();
    const meant = this.#meanings(client, asked);
    const found = this.#missing.findIndex(
      (each) => each.client === client && (meant.includes(each.name) || each.name === asked),
    );
    const known = this.#missing[found];
    if (exists) {
      if (known !== undefined) this.#missing.splice(found, 1);
    } else if (known !== undefined) known.lastMs = nowMs;
    else {
      this.#missing.push({ name: meant[0] ?? asked, client, lastMs: nowMs });
      if (this.#missing.length > maxNames) this.#say(this.#missing.shift());
    }
  }

  /** Says what no answer came for. */
  tick(nowMs: number): void {
    for (let i = 0; i < this.#missing.length;) {
      const missing = this.#missing[i];
      if (missing === undefined || nowMs - missing.lastMs < settledMs) i++;
      else this.#say(this.#missing.splice(i, 1)[0]);
    }
  }

  /** What its user may have typed, the shortest first: without a domain of the search list, and as it is. */
  #meanings(client: string, name: string): readonly string[] {
    const { domain, namespaceOf } = this.#options;
    const namespace = namespaceOf(client);
    const searched = [`svc.${domain}`, domain];
    if (namespace !== undefined) searched.unshift(`${namespace}.svc.${domain}`);
    const short = searched
      .filter((each) => name.endsWith(`.${each}`))
      .map((each) => name.slice(0, -each.length - 1));
    return [...short, name];
  }

  #say(missing: Missing | undefined): void {
    if (missing !== undefined) this.#options.tell(missing.name, missing.client);
  }
}
