import { isForbidden, isNotFound } from '../client/errors.ts';
import { listIfServed } from '../client/resource-client.ts';
import {
  addressPools,
  egressFirewalls,
  egressIPs,
  egressQoSes,
  endpointSlices,
  gatewayClasses,
  gateways,
  grpcRoutes,
  httpRoutes,
  ingressClasses,
  ingresses,
  leases,
  namespaces,
  networkAttachmentDefinitions,
  networkPolicies,
  nodes,
  pods,
  listenerSets,
  referenceGrants,
  routes,
  tlsRoutes,
  serviceCIDRs,
  services,
} from '../client/resources.ts';
import type { Transport } from '../client/transport.ts';
import { readYaml } from '../client/yaml.ts';
import { type IPFamily, type ParsedCidr, parseCidr } from '../objects/address.ts';
import type { ServiceCIDR } from '../objects/types/networking.generated.ts';
import type { Lease } from '../objects/types/coordination.generated.ts';
import type { Node } from '../objects/types/core.generated.ts';
import { isStringList } from '../objects/json.ts';
import { at, textAt } from '../objects/json.ts';
import type { ForwardingOptions } from '../network/forwarding/node-plan.ts';
import { announceSelectors } from '../network/announcing/agent-report.ts';
import { type ClusterObjects, ClusterView } from '../network/path/cluster-view.ts';
import { announcingNodes } from '../network/path/entry.ts';
import type { GatewayLists } from '../network/path/gateway.ts';
import type { HttpObjects } from '../network/path/http.ts';
import { runInSlices } from '../telemetry/time-slice.ts';

/** Said with every answer: the options may be others than the defaults that are taken. */
export const hiddenObjects = {
  kubeProxy: "kube-proxy's ConfigMap may not be read",
  announcers: 'the Leases of announcing agents may not be read',
} as const;

/** A cluster, and where the options of its proxy come from, as lines for users. */
export interface TracedCluster {
  readonly view: ClusterView;
  readonly proxyOptions: readonly string[];
}

/** Lists what decides where packets go. Throws what a list throws. */
export async function readTracedCluster(transport: Transport, flags: ProxyFlags): Promise<TracedCluster> {
  const announcerLeases = await listAnnouncerLeases(transport);
  const objects: ClusterObjects = {
    namespaces: (await listIfServed(transport, namespaces)) ?? [],
    nodes: (await listIfServed(transport, nodes)) ?? [],
    pods: (await listIfServed(transport, pods)) ?? [],
    services: (await listIfServed(transport, services)) ?? [],
    slices: (await listIfServed(transport, endpointSlices)) ?? [],
    policies: (await listIfServed(transport, networkPolicies)) ?? [],
    firewalls: (await listIfServed(transport, egressFirewalls)) ?? [],
    egressIPs: (await listIfServed(transport, egressIPs)) ?? [],
    egressQoSes: (await listIfServed(transport, egressQoSes)) ?? [],
    attachments: (await listIfServed(transport, networkAttachmentDefinitions)) ?? [],
    pools: (await listIfServed(transport, addressPools)) ?? [],
    agents: announcingNodes(announcerLeases === forbidden ? [] : announcerLeases, Date.now()),
  };
  const cidrs = (await listIfServed(transport, serviceCIDRs)) ?? [];
  return await tracedCluster(transport, objects, cidrs, flags, announcerLeases === forbidden);
}

/**
 * The same of objects that are at hand: of the cluster, only kube-proxy's ConfigMap is asked for.
 *
 * @param hidesAnnouncers whether the Leases of agents may not be read.
 */
export async function tracedCluster(
  transport: Transport,
  objects: ClusterObjects,
  cidrs: readonly ServiceCIDR[],
  flags: ProxyFlags,
  hidesAnnouncers: boolean,
): Promise<TracedCluster> {
  const ranges = cidrs.flatMap(({ spec }) => parsedCidrs(spec.cidrs ?? []));
  const kubeProxy = await kubeProxyOptions(transport);
  const isHidden = kubeProxy === forbidden;
  const { options, lines } = proxyOptions(flags, isHidden ? undefined : kubeProxy, objects.nodes, ranges);
  const hidden = [
    ...(isHidden ? [hiddenObjects.kubeProxy] : []),
    ...(hidesAnnouncers ? [hiddenObjects.announcers] : []),
  ];
  const view = await runInSlices(ClusterView.steps(objects, options));
  return { view, proxyOptions: [...lines, ...hidden] };
}

/** Lists what decides where requests of HTTP go. Throws what a list throws. */
export async function readHttpObjects(transport: Transport): Promise<HttpObjects> {
  return {
    ingresses: (await listIfServed(transport, ingresses)) ?? [],
    routes: (await listIfServed(transport, routes)) ?? [],
    classes: (await listIfServed(transport, ingressClasses)) ?? [],
    gateways: await readGatewayLists(transport),
  };
}

/** Lists what decides where requests to Gateways go; kinds that are not served count as empty. */
async function readGatewayLists(transport: Transport): Promise<GatewayLists | 'forbidden'> {
  try {
    return {
      classes: (await listIfServed(transport, gatewayClasses)) ?? [],
      gateways: (await listIfServed(transport, gateways)) ?? [],
      listenerSets: (await listIfServed(transport, listenerSets)) ?? [],
      httpRoutes: (await listIfServed(transport, httpRoutes)) ?? [],
      grpcRoutes: (await listIfServed(transport, grpcRoutes)) ?? [],
      tlsRoutes: (await listIfServed(transport, tlsRoutes)) ?? [],
      grants: (await listIfServed(transport, referenceGrants)) ?? [],
    };
  } catch (error) {
    if (isForbidden(error)) return forbidden;
    throw error;
  }
}

async function listAnnouncerLeases(transport: Transport): Promise<readonly Lease[] | typeof forbidden> {
  const labelSelector = announceSelectors['leases.coordination.k8s.io'];
  try {
    return (await listIfServed(transport, leases, { labelSelector })) ?? [];
  } catch (error) {
    if (isForbidden(error)) return forbidden;
    throw error;
  }
}

/** Options of the proxy that translates Services; undefined: those of the cluster, or that its configuration has none. */
export interface ProxyFlags {
  readonly clusterCidrs: readonly ParsedCidr[] | undefined;
  readonly masqueradeAll: boolean | undefined;
  readonly nodePortAddresses: readonly ParsedCidr[] | 'primary' | undefined;
}

/** What may not be read. */
const forbidden = 'forbidden';

const kubeProxyMap = '/api/v1/namespaces/kube-system/configmaps/kube-proxy';

/** The ConfigMap that kubeadm makes; undefined where there is none. */
async function kubeProxyOptions(transport: Transport): Promise<ProxyFlags | undefined | typeof forbidden> {
  let body: unknown;
  try {
    body = (await transport.request('GET', kubeProxyMap)).json();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    if (isForbidden(error)) return forbidden;
    throw error;
  }
  const [config] = readYaml(textAt(body, 'data', 'config.conf'));
  const mode = textAt(config, 'mode') || 'iptables';
  const addresses = at(config, 'nodePortAddresses');
  const given = isStringList(addresses) ? addresses : [];
  const masqueradeAll = at(config, mode, 'masqueradeAll');
  const ranges = parsedCidrs(textAt(config, 'clusterCIDR').split(','));
  return {
    clusterCidrs: ranges.length === 0 ? undefined : ranges,
    masqueradeAll: typeof masqueradeAll === 'boolean' ? masqueradeAll : undefined,
    nodePortAddresses:
      given.includes('primary') || (given.length === 0 && mode === 'nftables')
        ? 'primary'
        : parsedCidrs(given),
  };
}

function proxyOptions(
  flags: ProxyFlags,
  kubeProxy: ProxyFlags | undefined,
  nodeList: readonly Node[],
  serviceRanges: readonly ParsedCidr[],
): { readonly options: ForwardingOptions; readonly lines: readonly string[] } {
  const fromNodes = nodeList.flatMap(({ spec }) => parsedCidrs(spec.podCIDRs ?? []));
  const [clusterCidrs, cidrsFrom] = firstGiven(
    [flags.clusterCidrs, 'flag'],
    [kubeProxy?.clusterCidrs, "kube-proxy's ConfigMap"],
    [fromNodes, 'spec.podCIDRs of the Nodes'],
  );
  const [masqueradeAll, masqueradeFrom] = firstGiven(
    [flags.masqueradeAll, 'flag'],
    [kubeProxy?.masqueradeAll, "kube-proxy's ConfigMap"],
    [false, 'default'],
  );
  const [nodePortAddresses, nodePortsFrom] = firstGiven(
    [flags.nodePortAddresses, 'flag'],
    [kubeProxy?.nodePortAddresses, "kube-proxy's ConfigMap"],
    ['primary' as const, 'default'],
  );
  const families: readonly IPFamily[] = ['IPv4', 'IPv6'];
  return {
    options: {
      families,
      masqueradeAll,
      nodePortAddresses,
      serviceCIDRs: serviceRanges,
      podDetection: clusterCidrs.length === 0 ? undefined : { by: 'cidr', cidrs: clusterCidrs },
      allowExternalIPs: true,
    },
    lines: [
      `cluster CIDR ${textOf(clusterCidrs)} (${cidrsFrom})`,
      `masquerade all ${String(masqueradeAll)} (${masqueradeFrom})`,
      `node port addresses ${nodePortAddresses === 'primary' ? 'primary' : textOf(nodePortAddresses)} (${nodePortsFrom})`,
    ],
  };
}

/** The first value that is there, and where it is from. */
function firstGiven<T>(
  ...[first, second, last]: readonly [
    readonly [T | undefined, string],
    readonly [T | undefined, string],
    readonly [T, string],
  ]
): readonly [T, string] {
  if (first[0] !== undefined) return [first[0], first[1]];
  if (second[0] !== undefined) return [second[0], second[1]];
  return last;
}

function textOf(cidrs: readonly ParsedCidr[]): string {
  return cidrs.length === 0 ? 'all' : cidrs.map(({ canonical }) => canonical).join(',');
}

function parsedCidrs(given: readonly string[]): ParsedCidr[] {
  return given.flatMap((text) => parseCidr(text.trim()) ?? []);
}
