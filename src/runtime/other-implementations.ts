/**
 * Other projects that implement a kind, and how they are recognized. Two of them in one cluster would both write,
 * or both drop: servicenet's controllers and agents do not start beside one, and name it.
 */

/** The tasks of controllers and agents for the kinds of a cluster's network. */
export type NetworkWork =
  | 'policies'
  | 'egress firewalls'
  | 'egress addresses'
  | 'egress QoS'
  | 'cloud addresses'
  | 'egress routers'
  | 'network attachments'
  | 'address ranges'
  | 'connectivity checks';

/** The signs of other implementations in a cluster and on a node. */
export interface ImplementationSigns {
  /** Names of DaemonSets and Deployments. */
  readonly workloads?: Iterable<string>;
  /** Chains of the node's kernel, each with the table that it is in. */
  readonly chains?: Iterable<{ readonly name: string; readonly table: string }>;
}

interface Implementation {
  readonly project: string;
  readonly does: readonly NetworkWork[];
  /** Names of its DaemonSets and Deployments, as its own manifests have them. */
  readonly workloads?: readonly string[];
  /** How the names of its chains begin (iptables). */
  readonly chains?: readonly string[];
  /** Its tables of nftables. */
  readonly tables?: readonly string[];
}

const implementations: readonly Implementation[] = [
  {
    project: 'Calico',
    does: ['policies'],
    workloads: ['calico-node'],
    chains: ['cali-'],
    tables: ['calico'],
  },
  { project: 'Cilium', does: ['policies'], workloads: ['cilium'], chains: ['CILIUM_'] },
  {
    // k3s has it in its own process: only the chains show it there.
    project: "kube-router, k3s' policy engine among others",
    does: ['policies'],
    workloads: ['kube-router'],
    chains: ['KUBE-ROUTER-', 'KUBE-POD-FW-'],
  },
  {
    project: 'kube-network-policies',
    does: ['policies'],
    workloads: ['kube-network-policies'],
    tables: ['kube-network-policies'],
  },
  // Of kind since 0.24, and of minikube. Before, its DaemonSet enforced nothing: only the table shows it.
  { project: 'kindnet', does: ['policies'], tables: ['kindnet-network-policies'] },
  { project: 'Antrea', does: ['policies'], workloads: ['antrea-agent'], chains: ['ANTREA-'] },
  { project: 'Weave Net', does: ['policies'], workloads: ['weave-net'], chains: ['WEAVE-NPC'] },
  {
    project: 'OVN-Kubernetes',
    does: ['policies', 'egress firewalls', 'egress addresses', 'egress QoS'],
    workloads: ['ovnkube-node', 'ovnkube-control-plane', 'ovnkube-cluster-manager', 'ovnkube-master'],
    chains: ['OVN-KUBE-'],
    tables: ['ovn-kubernetes'],
  },
  {
    project: 'cloud-network-config-controller',
    does: ['cloud addresses'],
    workloads: ['cloud-network-config-controller'],
  },
  {
    project: 'cluster-network-operator',
    does: ['egress routers', 'connectivity checks'],
    workloads: ['network-operator'],
  },
  {
    project: 'multus',
    does: ['network attachments'],
    workloads: ['multus', 'kube-multus-ds', 'kube-multus-ds-amd64'],
  },
  {
    project: 'whereabouts',
    does: ['address ranges'],
    workloads: ['whereabouts', 'whereabouts-reconciler', 'whereabouts-controller'],
  },
];

/** The projects that do this work already, as far as the signs show them. */
export function otherImplementations(work: NetworkWork, signs: ImplementationSigns): readonly string[] {
  const workloads = new Set(signs.workloads);
  const chains = [...(signs.chains ?? [])];
  return implementations
    .filter(({ does }) => does.includes(work))
    .filter(
      (known) =>
        known.workloads?.some((name) => workloads.has(name)) === true ||
        chains.some(
          ({ name, table }) =>
            known.chains?.some((prefix) => name.startsWith(prefix)) === true ||
            known.tables?.includes(table) === true,
        ),
    )
    .map(({ project }) => project);
}
