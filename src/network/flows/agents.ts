import { parseAddress } from '../../objects/address.ts';
import { textAt } from '../../objects/json.ts';
import { splitList } from '../../objects/lists.ts';

/** How agents of nodes that tell flows are found: each has a ConfigMap, written by itself. */

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
