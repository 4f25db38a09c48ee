import type { ResourceClient } from '../../client/resource-client.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { nodes as nodesResource, serviceCIDRs as serviceCIDRsResource } from '../../client/resources.ts';
import type { Transport } from '../../client/transport.ts';
import type { NetlinkHost } from '../../host/host.ts';
import { type AgentAddress, agentLabels, agentName, agentServerName } from '../../network/flows/agents.ts';
import { cidrContains, type ForwardingOptions } from '../../network/forwarding/node-plan.ts';
import { addressesOfNode } from '../../network/path/cluster-view.ts';
import { ipFamilies, type ParsedCidr, parseAddress, parseCidr } from '../../objects/address.ts';
import { StatusError } from '../../objects/status.ts';
import type { ConfigMap, Node } from '../../objects/types/core.generated.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import type { ControllerContext, Runnable } from '../../runtime/context.ts';
import { KeyLoop, type LoopContext } from '../../runtime/key-loop.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../tls/certificates.ts';
import { trimNode, type NodeForwardingOptions } from '../forwarding/view.ts';
import { type BindAddress, serveAt } from '../listening.ts';
import { Nft } from '../nftables/nft.ts';
import { FlowAccess } from './access.ts';
import { FlowCollector, flowInformers, type FlowNode } from './flow-collector.ts';
import { FlowServer } from './flow-server.ts';
import { removeFlowsTable } from './node-flows.ts';

export interface FlowAgentOptions {
  readonly context: Pick<ControllerContext, 'informers' | 'events' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly host: NetlinkHost;
  /** Of the Node object. */
  readonly nodeName: string;
  readonly address: BindAddress;
  /** Where agents say how they are reached. */
  readonly namespace: string;
  readonly configMaps: ResourceClient<ConfigMap>;
  /** By which the API server is asked about users. */
  readonly transport: Transport;
  readonly forwarding: NodeForwardingOptions;
  /** Whether policies are enforced by this agent. */
  readonly hasPolicies: boolean;
}

/** The one key of the work queue. */
const everything = 'flows';

/** Tells the flows of its node to who may see them; without a viewer, nothing of it runs but a listener. */
export class FlowAgent implements Runnable {
  readonly #options: FlowAgentOptions;
  readonly #nodes: Informer<Node>;
  readonly #ranges: Informer<ServiceCIDR>;
  readonly #collector: FlowCollector;
  readonly #loop: KeyLoop<LoopContext>;
  readonly #server: FlowServer;
  /** PEM, of the authority of the server's certificate. */
  readonly #authority: string;
  #published = '';
  /** As it was found last; undefined: Nodes have changed since. */
  #flowNodes: readonly FlowNode[] | undefined;

  constructor(options: FlowAgentOptions) {
    const { context, nodeName, transport, hasPolicies } = options;
    const { informers, clock, log } = context;
    this.#options = options;
    this.#nodes = informers.informer(nodesResource, { transform: trimNode });
    this.#ranges = informers.informer(serviceCIDRsResource);
    flowInformers(informers, hasPolicies);
    this.#collector = new FlowCollector({
      ...{ informers, clock, log, families: ipFamilies, hasPolicies, controlPlane: [], domain: '' },
      nodes: () => (this.#flowNodes ??= this.#findNodes()),
      forwarding: () => this.#forwarding(),
    });
    // Its key is not kept: the authority signs this one certificate.
    const authority = createCertificateAuthority(`servicenet flows of ${nodeName}`, {
      now: new Date(clock.now()),
    });
    this.#authority = authority.certificate;
    const certificate = issueServerCertificate(authority, agentServerName, [agentServerName], {
      ...{ now: new Date(clock.now()), days: certificateDays },
    });
    const access = new FlowAccess(transport, clock);
    this.#server = new FlowServer({ certificate, access, collector: this.#collector, clock, log });
    this.#loop = new KeyLoop(
      context,
      `flows_${nodeName}`,
      { workers: 1, backoff: { base: 1000, max: 60_000 } },
      (loop) => {
        loop.waitFor(this.#nodes);
        return async () => {
          await this.#publish();
          return undefined;
        };
      },
    );
    const changed = (node: Node): void => {
      this.#flowNodes = undefined;
      if (node.metadata.name === nodeName) this.#loop.enqueue(everything);
    };
    this.#nodes.addHandler({ added: changed, updated: changed, deleted: changed });
  }

  /** Serves until the signal aborts. @throws {NftError} where nft is missing. */
  async run(signal: AbortSignal): Promise<void> {
    const { context, host, address } = this.#options;
    const { clock, log } = context;
    await removeFlowsTable(new Nft(host));
    const message = 'cannot tell flows of this node yet';
    try {
      await Promise.all([
        this.#loop.run(signal),
        serveAt({ host, clock, log, address, message }, () => this.#server.open(), signal),
      ]);
    } finally {
      await this.#collector.close();
    }
  }

  /** Says in a ConfigMap how this agent is reached, and by which authority it is known. @throws {StatusError} */
  async #publish(): Promise<void> {
    const { nodeName, namespace, configMaps, address, context } = this.#options;
    const node = this.#nodes.cache.get(nodeName);
    if (node === undefined) return;
    const addresses = isUnspecified(address.host)
      ? addressesOfNode(node).map(({ canonical }) => canonical)
      : [address.host];
    const data: Record<keyof AgentAddress, string> = {
      ...{ node: nodeName, addresses: addresses.join(','), port: String(address.port) },
      authority: this.#authority,
    };
    const text = JSON.stringify(data);
    if (text === this.#published) return;
    const name = agentName(nodeName);
    const uid = node.metadata.uid;
    const metadata = {
      labels: agentLabels,
      // It goes with its Node.
      ...(uid === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid }] }),
    };
    try {
      await configMaps.mergePatch(namespace, name, { metadata, data });
    } catch (error) {
      if (!(error instanceof StatusError && error.code === 404)) throw error;
      await configMaps.create({ metadata: { ...metadata, namespace, name }, data });
    }
    this.#published = text;
    context.log.info(
      { node: nodeName, addresses, port: address.port },
      'flows of this node can be asked for',
    );
  }

  #findNodes(): readonly FlowNode[] {
    const { host, nodeName } = this.#options;
    const elsewhere = [...this.#nodes.cache.values()].flatMap((node) =>
      node.metadata.name === nodeName
        ? []
        : [...addressesOfNode(node).map(({ canonical }) => canonical), ...(node.spec.podCIDRs ?? [])],
    );
    return [{ name: nodeName, host, elsewhere: disjoint(elsewhere) }];
  }

  #forwarding(): ForwardingOptions {
    const { podDetection, ...options } = this.#options.forwarding;
    const ranges = [...this.#ranges.cache.values()].flatMap(({ spec }) => spec.cidrs ?? []);
    return {
      ...options,
      serviceCIDRs: ranges.flatMap((text) => parseCidr(text) ?? []),
      podDetection: podDetection?.by === 'nodeCIDR' ? undefined : podDetection,
    };
  }
}

/** The next agent has another one. */
const certificateDays = 3650;

function isUnspecified(host: string): boolean {
  return ['', '0.0.0.0', '::'].includes(host);
}

/** Addresses and ranges without those that another one of them holds: a set of the kernel takes no others. */
export function disjoint(texts: readonly string[]): readonly string[] {
  const kept: ParsedCidr[] = [];
  const all = texts.flatMap((text) => rangeOf(text) ?? []);
  // Ranges hold one another or have nothing in common: what one holds stands behind it.
  for (const range of all.toSorted(byBeginning)) {
    const { family, network: value } = range;
    const last = kept.at(-1);
    if (last === undefined || !cidrContains(last, { family, value })) kept.push(range);
  }
  return kept.map(({ canonical }) => canonical);
}

function byBeginning(a: ParsedCidr, b: ParsedCidr): number {
  if (a.family !== b.family) return a.family < b.family ? -1 : 1;
  if (a.network !== b.network) return a.network < b.network ? -1 : 1;
  return a.prefixLength - b.prefixLength;
}

function rangeOf(text: string): ParsedCidr | undefined {
  const address = parseAddress(text);
  return parseCidr(
    address === undefined ? text : `${address.canonical}/${address.family === 'IPv4' ? 32 : 128}`,
  );
}
