import { isAborted, whenAborted } from '../client/clock.ts';
import { isForbidden, isNotFound } from '../client/errors.ts';
import { resourceName, type ResourceType, inGroup } from '../client/resources.ts';
import type { ControllerContext, Runnable } from './context.ts';

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

/** Between looks whether a kind is served. */
const servedRetryMs = 15_000;

const workloadKinds = [
  ['daemonsets', 'DaemonSet'],
  ['deployments', 'Deployment'],
] as const;

/** The part that {@link whereServed} starts. */
export interface ServedKind {
  /** The kind that the work is about. */
  readonly resource: ResourceType;
  readonly work: NetworkWork;
  readonly runnables: readonly Runnable[];
}

/**
 * Runs what works on a kind from the moment on at which the server serves it, unless another project does the same work
 * in the cluster: then one line names it, and nothing is started until the process is.
 */
export function whereServed(
  context: Pick<ControllerContext, 'clients' | 'clock' | 'log'>,
  { resource, work, runnables }: ServedKind,
): Runnable {
  return {
    run: async (signal) => {
      const others = await untilKnown(context, resource, work, signal);
      if (isAborted(signal)) return;
      if (others.length > 0) {
        context.log.error(
          { reason: 'OtherImplementation', resource: resourceName(resource), by: others },
          `${others.join(', ')} does this work in the cluster (${work}): not started; leave it to that, or remove it first`,
        );
        await whenAborted(signal);
        return;
      }
      await Promise.all(runnables.map((runnable) => runnable.run(signal)));
    },
  };
}

/**
 * Whether a controller of ours may handle a kind: it is served, and no other project handles it. Checked once.
 *
 * @throws errors of requests.
 */
export async function isWorkOfOurs(
  { clients }: Pick<ControllerContext, 'clients'>,
  resource: ResourceType,
  work: NetworkWork,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await clients.for(resource).list({ limit: 1, signal });
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
  return otherImplementations(work, { workloads: await workloadNames(clients, signal) }).length === 0;
}

/** Waits until the kind is served. @returns the projects that do the work. */
async function untilKnown(
  { clients, clock }: Pick<ControllerContext, 'clients' | 'clock'>,
  resource: ResourceType,
  work: NetworkWork,
  signal: AbortSignal,
): Promise<readonly string[]> {
  while (!isAborted(signal)) {
    try {
      await clients.for(resource).list({ limit: 1, signal });
      return otherImplementations(work, { workloads: await workloadNames(clients, signal) });
    } catch {
      // Not served yet, or the server is unreachable, which its transport logs.
      await clock.sleep(servedRetryMs, signal);
    }
  }
  return [];
}

/** The names of all DaemonSets and Deployments; those that may not be read are left out. @throws what a list throws. */
export async function workloadNames(
  clients: ControllerContext['clients'],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const names: string[] = [];
  for (const [plural, kind] of workloadKinds) {
    const type = inGroup('apps')(kind, plural, []);
    try {
      for await (const { items } of clients.for(type).pages({ signal })) {
        for (const { metadata } of items) names.push(metadata.name ?? '');
      }
    } catch (error) {
      if (!isForbidden(error) && !isNotFound(error)) throw error;
    }
  }
  return names;
}
