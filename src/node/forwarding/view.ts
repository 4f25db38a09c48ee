import type { Container, Node, Pod, Service } from '../../objects/types/core.generated.ts';
import type { Endpoint, EndpointConditions, EndpointSlice } from '../../objects/types/discovery.generated.ts';
import { type KubeObject, keyOf, type ObjectKey } from '../../objects/meta.ts';
import { onEach } from '../../client/informers/cache.ts';
import type { Informer, Informers } from '../../client/informers/informer.ts';
import { endpointSlices, nodes, serviceCIDRs, services } from '../../client/resources.ts';
import type { ForwardingPlan } from '../../network/forwarding/forwarding-plan.ts';
import { ForwardingPlanner, type ServiceChange } from '../../network/forwarding/planner.ts';
import type { ForwardingNode, ForwardingOptions } from '../../network/forwarding/node-plan.ts';
import { bySliceService, indexBySliceService, serviceOfSlice } from '../../network/forwarding/endpoints.ts';
import { type ParsedAddress, parseAddress, parseCidr, ipFamilies } from '../../objects/address.ts';
import { jsonEqual } from '../../objects/json.ts';
import type { ServiceCIDR } from '../../objects/types/networking.generated.ts';
import { parseTime } from '../../objects/formats/time.ts';
import { serviceNameLabel } from '../../objects/endpoints.ts';

/** The fields of objects in the agent's caches: a cluster has hundreds of thousands of endpoints. */

/** The time of the change behind a slice (RFC 3339), written by the controller of the slice. */
const triggerTime = 'endpoints.kubernetes.io/last-change-trigger-time';

/** A Service without annotations and selector. */
export function trimService(service: Service): Service {
  const { selector: _, ...spec } = service.spec;
  return { ...service, metadata: trimMetadata(service), spec };
}

export function trimSlice(slice: EndpointSlice): EndpointSlice {
  return {
    ...slice,
    metadata: trimMetadata(slice),
    endpoints: slice.endpoints?.map(trimEndpoint) ?? null,
  };
}

/** A Node without images, volumes, capacity and conditions: most of it, and new every few minutes. */
export function trimNode(node: Node): Node {
  const { podCIDRs, taints } = node.spec;
  const { addresses } = node.status;
  return {
    ...node,
    metadata: trimMetadata(node),
    spec: { ...(podCIDRs === undefined ? {} : { podCIDRs }), ...(taints === undefined ? {} : { taints }) },
    status: addresses === undefined ? {} : { addresses },
  };
}

/** A Pod as policies see it: labels, addresses, names of ports. */
export function trimPod(pod: Pod): Pod {
  const { annotations: _annotations, managedFields: _managedFields, ...metadata } = pod.metadata;
  const { nodeName, hostNetwork, initContainers, containers } = pod.spec;
  const { phase, podIP, podIPs } = pod.status;
  const spec = {
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(hostNetwork === undefined ? {} : { hostNetwork }),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(trimContainer) }),
    ...(containers === undefined ? {} : { containers: containers.map(trimContainer) }),
  };
  const status = {
    ...(phase === undefined ? {} : { phase }),
    ...(podIP === undefined ? {} : { podIP }),
    ...(podIPs === undefined ? {} : { podIPs }),
  };
  return { ...pod, metadata, spec, status };
}

function trimContainer({ name, ports, restartPolicy }: Container): Container {
  return {
    name,
    ...(ports === undefined ? {} : { ports }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}

/** Identity and owners, and the labels and the annotation that are read. */
function trimMetadata({ metadata }: KubeObject): KubeObject['metadata'] {
  const { annotations, labels, generateName: _, ...kept } = metadata;
  const triggered = annotations?.[triggerTime];
  const readLabels = Object.entries(labels ?? {}).filter(([name]) => labelsRead.has(name));
  return {
    ...kept,
    ...(readLabels.length === 0 ? {} : { labels: Object.fromEntries(readLabels) }),
    ...(triggered === undefined ? {} : { annotations: { [triggerTime]: triggered } }),
  };
}

const labelsRead: ReadonlySet<string> = new Set([
  serviceNameLabel,
  'service.kubernetes.io/headless',
  'service.kubernetes.io/service-proxy-name',
  'topology.kubernetes.io/zone',
]);

function trimEndpoint({ addresses, conditions, hints, nodeName }: Endpoint): Endpoint {
  return {
    addresses: addresses.slice(0, 1),
    ...(conditions === undefined ? {} : { conditions: sharedConditions(conditions) }),
    ...(hints === undefined ? {} : { hints }),
    ...(nodeName === undefined ? {} : { nodeName: sharedName(nodeName) }),
  };
}

/** There are 27 at most. */
const conditionsByText = new Map<string, EndpointConditions>();

function sharedConditions(conditions: EndpointConditions): EndpointConditions {
  const { ready, serving, terminating } = conditions;
  const text = `${ready} ${serving} ${terminating}`;
  const known = conditionsByText.get(text) ?? conditions;
  conditionsByText.set(text, known);
  return known;
}

/** Names of nodes. They are forgotten when there are more than in the largest clusters. */
const names = new Map<string, string>();
const maxNames = 20_000;

function sharedName(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (names.size >= maxNames) names.clear();
  names.set(name, name);
  return name;
}

/**
 * {@link ForwardingOptions}; the ranges of cluster IPs are those of ServiceCIDR objects where none are given, and Pods
 * can also be recognised by `spec.podCIDRs` of the Node (`--detect-local-mode=NodeCIDR`).
 */
export type NodeForwardingOptions = Omit<ForwardingOptions, 'serviceCIDRs' | 'podDetection'> &
  Partial<Pick<ForwardingOptions, 'serviceCIDRs'>> & {
    readonly podDetection: ForwardingOptions['podDetection'] | { readonly by: 'nodeCIDR' };
  };

/** The plan as it is now, and what has changed in it. */
export interface Planned {
  readonly plan: ForwardingPlan;
  readonly changes: readonly ServiceChange[];
}

/** A change of an object that forwarding depends on. */
export interface ViewChange {
  readonly kind: 'service' | 'endpoints' | 'other';
  /**
   * When the cause of a new or changed slice occurred, in milliseconds since 1970; undefined if the slice has no
   * such annotation.
   */
  readonly triggeredMs: number | undefined;
}

/** Follows the objects that forwarding depends on, and keeps the plan of one node. */
export class ForwardingView {
  readonly #nodeName: string;
  readonly #options: NodeForwardingOptions;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #nodes: Informer<Node>;
  readonly #ranges: Informer<ServiceCIDR> | undefined;
  /** Services to be planned, since the last {@link update}. */
  readonly #touched = new Set<ObjectKey>();
  #rangesTouched = false;
  /** `spec.podCIDRs` of the Node, where Pods are recognised by it. */
  #podCIDRs: readonly string[] = [];
  #planner: ForwardingPlanner | undefined;

  /** @param changed is called when {@link update} may find something to do. */
  constructor(
    informers: Informers,
    nodeName: string,
    options: NodeForwardingOptions,
    changed: (change: ViewChange) => void,
  ) {
    this.#nodeName = nodeName;
    this.#options = options;
    this.#services = informers.informer(services, { transform: trimService });
    this.#slices = informers.informer(endpointSlices, { transform: trimSlice });
    this.#nodes = informers.informer(nodes, { transform: trimNode });
    this.#ranges = options.serviceCIDRs === undefined ? informers.informer(serviceCIDRs) : undefined;
    this.#slices.addIndex(bySliceService, indexBySliceService);

    this.#services.addHandler(
      onEach((service) => {
        this.#touched.add(keyOf(service));
        changed({ kind: 'service', triggeredMs: undefined });
      }),
    );
    this.#slices.addHandler({
      added: (slice) => this.#touchSlice(slice, changed, triggeredAtMs(slice)),
      updated: (slice, old) => {
        const former = serviceOfSlice(old);
        if (former !== undefined) this.#touched.add(former); // It may change hands.
        this.#touchSlice(slice, changed, triggeredAtMs(slice));
      },
      deleted: (slice) => this.#touchSlice(slice, changed, undefined),
    });
    this.#nodes.addHandler(
      onEach((node) => {
        if (node.metadata.name === nodeName) changed(otherChange);
      }),
    );
    this.#ranges?.addHandler(
      onEach(() => {
        this.#rangesTouched = true;
        changed(otherChange);
      }),
    );
  }

  /** Nothing may be planned before this resolves true; false: the signal has aborted. */
  async synced(signal: AbortSignal): Promise<boolean> {
    const sources = [
      this.#services,
      this.#slices,
      this.#nodes,
      ...(this.#ranges === undefined ? [] : [this.#ranges]),
    ];
    const synced = await Promise.all(sources.map((source) => source.synced(signal)));
    return synced.every(Boolean);
  }

  /** As it was at the last {@link update}; undefined before the first. */
  get plan(): ForwardingPlan | undefined {
    return this.#planner?.plan;
  }

  /** The Service of a key, for Events about it. */
  service(key: ObjectKey): Service | undefined {
    return this.#services.cache.get(key);
  }

  /**
   * Whether load balancers may send new connections to the node (KEP-3836): it exists, is not being deleted, and the
   * cluster autoscaler has not chosen it to go. Before the Nodes have been listed, it may.
   */
  get isNodeEligible(): boolean {
    if (!this.#nodes.hasSynced) return true;
    const node = this.#nodes.cache.get(this.#nodeName);
    if (node === undefined || node.metadata.deletionTimestamp !== undefined) return false;
    return !(node.spec.taints ?? []).some(({ key }) => key === toBeDeletedTaint);
  }

  /**
   * Plans what changed since the last call; everything the first time.
   *
   * @param interfaceAddresses of the node.
   * @returns undefined while the API has no such node.
   */
  update(interfaceAddresses: readonly ParsedAddress[]): Planned | undefined {
    const node = this.#node(interfaceAddresses);
    if (node === undefined) return undefined;
    let planner = this.#planner;
    const podCIDRs = this.#options.podDetection?.by === 'nodeCIDR' ? this.#nodePodCIDRs() : [];
    const hasNewOptions = this.#rangesTouched || !jsonEqual(podCIDRs, this.#podCIDRs);
    this.#rangesTouched = false;
    this.#podCIDRs = podCIDRs;
    let all = true;
    if (planner === undefined)
      this.#planner = planner = new ForwardingPlanner(node, this.#forwardingOptions());
    else all = planner.setNode(node, hasNewOptions ? this.#forwardingOptions() : undefined);
    // Those that have gone are touched, and in no cache.
    const keys = all ? new Set([...this.#services.cache.keys(), ...this.#touched]) : this.#touched;
    const changes = planner.apply(
      [...keys].map((key) => ({
        key,
        service: this.#services.cache.get(key),
        slices: this.#slices.cache.byIndex(bySliceService, key),
      })),
    );
    this.#touched.clear();
    return { plan: planner.plan, changes };
  }

  #touchSlice(
    slice: EndpointSlice,
    changed: (change: ViewChange) => void,
    triggeredMs: number | undefined,
  ): void {
    const key = serviceOfSlice(slice);
    if (key !== undefined) this.#touched.add(key);
    changed({ kind: 'endpoints', triggeredMs });
  }

  #node(interfaceAddresses: readonly ParsedAddress[]): ForwardingNode | undefined {
    const node = this.#nodes.cache.get(this.#nodeName);
    if (node === undefined) return undefined;
    const internal = (node.status.addresses ?? []).flatMap(({ type, address }) =>
      type === 'InternalIP' ? (parseAddress(address) ?? []) : [],
    );
    const primaryAddresses = ipFamilies.flatMap(
      (family) => internal.find((address) => address.family === family) ?? [],
    );
    return { name: this.#nodeName, labels: node.metadata.labels ?? {}, primaryAddresses, interfaceAddresses };
  }

  #forwardingOptions(): ForwardingOptions {
    const ranges = [...(this.#ranges?.cache.values() ?? [])]
      .flatMap(({ spec }) => spec.cidrs ?? [])
      .flatMap((cidr) => parseCidr(cidr) ?? []);
    const { podDetection } = this.#options;
    return {
      serviceCIDRs: ranges,
      ...this.#options,
      podDetection:
        podDetection?.by === 'nodeCIDR'
          ? { by: 'cidr', cidrs: this.#podCIDRs.flatMap((cidr) => parseCidr(cidr) ?? []) }
          : podDetection,
    };
  }

  #nodePodCIDRs(): readonly string[] {
    return this.#nodes.cache.get(this.#nodeName)?.spec.podCIDRs ?? [];
  }
}

const otherChange: ViewChange = { kind: 'other', triggeredMs: undefined };

const toBeDeletedTaint = 'ToBeDeletedByClusterAutoscaler';

function triggeredAtMs({ metadata }: EndpointSlice): number | undefined {
  return parseTime(metadata.annotations?.[triggerTime] ?? '');
}
