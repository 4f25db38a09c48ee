import { type PlannedInterface, planInterfaces } from '../../network/attachments/interface-plan.ts';
import { addAddress, lanInterface, otherDefaultRouteLines } from '../lan.ts';
import type { Informer } from '../../client/informers/informer.ts';
import { SandboxError } from '../../controllers/kubelet/container-runtime.ts';
import { attachedInterfaces, clusterInterface } from '../../network/attachments/attachments.ts';
import { isAttached } from '../../network/attachments/network-status.ts';
import { AttachmentError } from '../../network/attachments/ipam.ts';
import { Nft } from '../../node/nftables/nft.ts';
import type { NetworkAttachmentDefinition } from '../../objects/types/openshift.ts';
import type { Pod } from '../../objects/types/core.generated.ts';
import { joinKey } from '../../objects/meta.ts';
import { ip, type NamespaceHost, type NetworkNamespace } from '../namespaces.ts';
import { SecondLans } from './lan.ts';
import type { NodeMachine } from './simulated-nodes.ts';
import type { EgressRouterPlan } from '../../network/egress/egress-router.ts';

/**
 * The lines of `ip -batch` in the namespace of the node: they make a further interface in that of the Pod. It goes with
 * the Pod's. Pure.
 *
 * @param pod the name of the Pod's namespace.
 * @param port of the node, for an interface on a bridge: at most 15 bytes, of this interface alone.
 */
function interfaceLines(
  { name, mac, mtu, below }: PlannedInterface,
  pod: string,
  port: string,
): readonly string[] {
  const size = mtu === undefined ? '' : ` mtu ${mtu}`;
  if (below.kind === 'macvlan') {
    const { master = lanInterface, mode } = below;
    return [
      `link add link ${master} name ${name} address ${mac}${size} netns ${pod} type macvlan mode ${mode}`,
    ];
  }
  const { bridge, addresses } = below;
  return [
    `link add name ${port}${size} type veth peer name ${name} address ${mac}${size} netns ${pod}`,
    `link set ${port} master ${bridge} up`,
    // It may have it already.
    ...addresses.map(
      ({ family, address, prefixLength }) =>
        `address replace ${address}/${prefixLength} dev ${bridge}${family === 'IPv6' ? ' nodad' : ''}`,
    ),
  ];
}

/** In the namespace of the node, before {@link interfaceLines}: fails where there is the bridge already. */
function bridgeLines(bridge: string): readonly string[] {
  return [`link add name ${bridge} type bridge`];
}

/**
 * In the namespace of the Pod, behind {@link interfaceLines}.
 *
 * @param ranges of the cluster, CIDRs, which stay behind `eth0`.
 * @param node its addresses.
 */
function addressLines(
  { name, addresses, routes, defaultGateways }: PlannedInterface,
  ranges: readonly string[],
  node: readonly string[],
): readonly string[] {
  return [
    `link set ${name} up`,
    ...addresses.map(({ address, prefixLength }) => addAddress(`${address}/${prefixLength}`, name)),
    ...routes.map(({ destination, gateway }) =>
      gateway === undefined
        ? `route add ${destination} dev ${name}`
        : `route add ${destination} via ${gateway} dev ${name}`,
    ),
    ...[...defaultGateways.values()].flatMap((gateway) =>
      otherDefaultRouteLines(name, gateway, ranges, node),
    ),
  ];
}

/** Milliseconds that a Pod waits for the first list of NetworkAttachmentDefinitions. */
const timeoutMs = 10_000;

export interface PodInterfacesOptions {
  readonly definitions: Informer<NetworkAttachmentDefinition>;
  readonly lans: SecondLans;
  /** Ranges of Pods and of Services. */
  readonly clusterRanges: readonly string[];
  /** There is no nftables. */
  readonly isUserspace: boolean;
}

/** The namespace of a Pod, and its link to the node. */
export interface PodLink {
  readonly node: NodeMachine;
  readonly host: NamespaceHost;
  readonly namespace: NetworkNamespace;
  /** The name of the link on the node. */
  readonly link: string;
}

/** Makes the further interfaces of Pods, which their annotations and NetworkAttachmentDefinitions name. */
export class PodInterfaces {
  readonly #options: PodInterfacesOptions;

  constructor(options: PodInterfacesOptions) {
    this.#options = options;
  }

  /**
   * Makes the interfaces that a Pod's `network-status` has.
   *
   * @returns what is not made, and why: for Events of the Pod.
   * @throws {SandboxError} then none of them is left.
   */
  async attach(pod: Pod, to: PodLink): Promise<readonly string[]> {
    if (!isAttached(pod)) return [];
    const { definitions, isUserspace } = this.#options;
    let made: readonly PlannedInterface[] = [];
    try {
      await definitions.synced(AbortSignal.timeout(timeoutMs));
      const find = (namespace: string, name: string): NetworkAttachmentDefinition | undefined =>
        definitions.cache.get(joinKey(namespace, name));
      const { interfaces, missing } = planInterfaces(attachedInterfaces(pod, find) ?? []);
      made = interfaces;
      for (const [index, each] of interfaces.entries()) await this.#make(each, to, `${to.link}-${index + 1}`);
      const routers = interfaces.filter(({ router }) => router !== undefined);
      if (!isUserspace) return missing;
      return [
        ...missing,
        ...routers.map(({ name }) => `there is no nft on this machine: ${name} redirects nothing`),
      ];
    } catch (error) {
      // The next attempt would find them.
      for (const { name } of made)
        await ip([`link delete ${name}`], to.namespace.name).catch(() => undefined);
      if (!(error instanceof Error)) throw error;
      const prefix = error instanceof AttachmentError ? '' : 'failed to attach networks: ';
      throw new SandboxError(`${prefix}${error.message}`, { cause: error });
    }
  }

  async #make(planned: PlannedInterface, { node, host, namespace }: PodLink, port: string): Promise<void> {
    const { below, router, name } = planned;
    const { clusterRanges, lans, isUserspace } = this.#options;
    const onNode = node.namespace.name;
    if (below.kind === 'bridge') await makeBridge(below.bridge, onNode);
    else {
      const { master = lanInterface, mode } = below;
      if (SecondLans.has(master)) await lans.plugIn(node.namespace, master);
      if (mode === 'passthru' && master === lanInterface) {
        throw new Error(`macvlan with mode passthru would take ${lanInterface} from node ${node.name}`);
      }
    }
    await ip(interfaceLines(planned, namespace.name, port), onNode);
    await ip(addressLines(planned, clusterRanges, node.addresses), namespace.name);
    if (router === undefined) return;
    const forwarding = router.family === 'IPv4' ? 'net/ipv4/ip_forward' : 'net/ipv6/conf/all/forwarding';
    namespace.writeSysctl(forwarding, '1');
    if (!isUserspace) await new Nft(host).runText(routerTable(router, clusterInterface, name));
  }
}

/** A bridge lasts, and all Pods of the node that name it are on it. */
async function makeBridge(bridge: string, onNode: string): Promise<void> {
  await ip(bridgeLines(bridge), onNode).catch((error: unknown) => {
    if (!(error instanceof Error && error.message.includes('File exists'))) throw error;
  });
  await ip([`link set ${bridge} up`], onNode);
}

/**
 * The rules of a router's Pod as a transaction of nft, with the plugin's own table and chains. What is put in are numbers
 * and addresses that were read as such, and the name of an interface that the kernel has taken.
 *
 * @param device the interface of the router.
 */
function routerTable(
  { family, address, redirects }: EgressRouterPlan,
  cluster: string,
  device: string,
): string {
  const table = `${family === 'IPv4' ? 'ip' : 'ip6'} egress_cni`;
  const rules = redirects.map(({ match, destination, targetPort }) => {
    const port = match === undefined ? '' : ` ${match.protocol.toLowerCase()} dport ${match.port}`;
    const host = targetPort !== undefined && family === 'IPv6' ? `[${destination}]` : destination;
    const target = targetPort === undefined ? host : `${host}:${targetPort}`;
    return `    iifname "${cluster}"${port} dnat to ${target}\n`;
  });
  return [
    `table ${table}\ndelete table ${table}\ntable ${table} {\n`,
    `  chain prerouting {\n    type nat hook prerouting priority -100;\n${rules.join('')}  }\n`,
    `  chain postrouting {\n    type nat hook postrouting priority 100;\n`,
    `    oifname "${device}" snat to ${address}\n  }\n}\n`,
  ].join('');
}
