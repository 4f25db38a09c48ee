import { parseAddress } from '../../objects/address.ts';
import { textAt } from '../../objects/json.ts';
import { splitList } from '../../objects/lists.ts';
import type { Flow } from './flow.ts';
import { setYoungest } from './oldest.ts';

/** How agents of nodes that report flows are found: each has a ConfigMap, written by itself. */

/** How an agent is reached: the data of its ConfigMap. */
export interface AgentAddress {
  readonly node: string;
  /** Canonical; those of the Node. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** PEM, of the authority that signed its certificate. */
  readonly authority: string;
}

/** The labels of these ConfigMaps. */
export const agentLabels = { 'servicenet.dev/flows': 'agent' } as const;

/** A token for this audience opens nothing but flows. */
export const flowsAudience = 'servicenet-flows';
/** The nonResourceURL whose `get` allows to look. */
export const flowsPath = '/flows';

/** The name in the certificates: addresses change, and each agent has an authority of its own. */
export const agentServerName = 'servicenet-flows';

/** Of a name of an object (RFC 1123 subdomain). */
const maxName = 253;
const prefix = 'servicenet-flows-';

/** The name of the ConfigMap of a node. */
export function agentName(node: string): string {
  return `${prefix}${node.slice(-(maxName - prefix.length)).replace(/^[.-]+/, '')}`;
}

/** Reads a ConfigMap; undefined where it says nothing of use. */
export function readAgent(configMap: unknown): AgentAddress | undefined {
  const [node, authority] = [textAt(configMap, 'data', 'node'), textAt(configMap, 'data', 'authority')];
  const port = Number(textAt(configMap, 'data', 'port'));
  const addresses = splitList(textAt(configMap, 'data', 'addresses')).flatMap(
    (text) => parseAddress(text)?.canonical ?? [],
  );
  const isPort = Number.isInteger(port) && port > 0 && port <= 65_535;
  if (node === '' || authority === '' || addresses.length === 0 || !isPort) return undefined;
  return { node, addresses, port, authority };
}

/** Ids of agents whose ids here are kept. */
const maxIds = 100_000;
/** Denials, connections and reporters: so many are kept of each. */
const maxFlows = 10_000;
/** Milliseconds by which the clocks of nodes, and the times of denied packets, may be wrong. */
const slackMs = 3000;

/**
 * Makes one list of the flows of agents, each of which knows its own node alone: a connection is reported by the node that
 * it begins at, packets by that which denied them, and these are one flow where they are of one connection.
 */
export class FlowMerge {
  #lastId = 0;
  /** By agent and the id that it gave. */
  readonly #ids = new Map<string, number>();
  /** The last denied packets between two ends. */
  readonly #denials = new Map<string, Flow>();
  /** The last connection without an answer between two ends. */
  readonly #opened = new Map<string, Flow>();
  /** The agent that reports a connection from outside, which several nodes may see. */
  readonly #reporters = new Map<string, string>();

  /**
   * Takes flows of an agent.
   *
   * @param agent has another name when it begins anew.
   * @returns those that are new or have changed.
   */
  take(agent: string, flows: readonly Flow[]): readonly Flow[] {
    // Who denied a packet is known before its connection is looked at.
    const inOrder = flows.toSorted((a, b) => Number(isDenial(b)) - Number(isDenial(a)));
    return inOrder.flatMap((flow) => {
      const own = { ...flow, id: this.#idOf(agent, flow.id) };
      if (isDenial(flow)) return this.#denied(own);
      if (this.#isReportedElsewhere(agent, flow)) return [];
      return flow.outcome === 'opened' ? this.#unanswered(own) : [own];
    });
  }

  #idOf(agent: string, id: number): number {
    const key = `${agent} ${id}`;
    const known = this.#ids.get(key) ?? ++this.#lastId;
    setYoungest(this.#ids, key, known, maxIds);
    return known;
  }

  /** The node that denied a packet may not know the Service, which was translated on another one. */
  #denied(flow: Flow): readonly Flow[] {
    const key = endsOf(flow);
    if (key === undefined) return [flow];
    const [before, opened] = [this.#denials.get(key), this.#opened.get(key)];
    const service = flow.service ?? before?.service ?? opened?.service;
    this.#opened.delete(key);
    // It takes the place of the connection that was said to have no answer.
    const id = opened !== undefined && isOneOf(opened, flow) ? opened.id : (before?.id ?? flow.id);
    const whole = { ...flow, id, ...(service === undefined ? {} : { service }) };
    setYoungest(this.#denials, key, whole, maxFlows);
    return [whole];
  }

  #unanswered(flow: Flow): readonly Flow[] {
    const key = endsOf(flow);
    const denial = key === undefined ? undefined : this.#denials.get(key);
    if (key === undefined) return [flow];
    if (denial === undefined || !isOneOf(flow, denial)) {
      setYoungest(this.#opened, key, flow, maxFlows);
      return [flow];
    }
    if (denial.service !== undefined || flow.service === undefined) return [];
    const whole = { ...denial, service: flow.service };
    setYoungest(this.#denials, key, whole, maxFlows);
    return [whole];
  }

  #isReportedElsewhere(agent: string, { protocol, from, sourcePort, service, to, time }: Flow): boolean {
    if (sourcePort === undefined || from.kind !== 'outside') return false;
    const minute = Math.round(Date.parse(time) / 60_000);
    const at = service === undefined ? to?.address : service.address;
    const port = service === undefined ? to?.port : service.port;
    const key = `${protocol} ${from.address} ${sourcePort} ${at} ${port} ${minute}`;
    const reporter = this.#reporters.get(key) ?? agent;
    setYoungest(this.#reporters, key, reporter, maxFlows);
    return reporter !== agent;
  }
}

/** Whether it is of packets that rules denied. */
function isDenial({ packets }: Flow): boolean {
  return packets !== undefined;
}

/** Whether a connection began before the last packet that was denied. */
function isOneOf(connection: Flow, denial: Flow): boolean {
  return Date.parse(connection.time) <= Date.parse(denial.time) + slackMs;
}

function endsOf({ protocol, from, to }: Flow): string | undefined {
  return to === undefined ? undefined : `${protocol} ${from.address} ${to.address} ${to.port}`;
}
