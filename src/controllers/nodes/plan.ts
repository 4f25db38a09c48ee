import { fullVersion } from '../../objects/kubernetes-version.ts';
import { jsonEqual } from '../../objects/json.ts';
import { parseCidr, formatAddress, addressBits, type IPFamily } from '../../objects/address.ts';
import type {
  NodeSystemInfo,
  NodeAddress,
  Node,
  NodeCondition,
  Taint,
  Toleration,
} from '../../objects/types/core.generated.ts';
import { formatTime, parseTime } from '../../objects/formats/time.ts';
import { conditionOf } from '../../objects/meta.ts';
import { type Bitmap, createBitmap } from '../../allocation/bitmap.ts';

/** The annotation of Nodes that this program simulates: `simulated`. */
const kubeletAnnotation = 'servicenet.dev/kubelet';
/** The annotation of such a Node whose value `down` makes it fail, as if its machine had been switched off. */
const stateAnnotation = 'servicenet.dev/state';

export const zoneLabel = 'topology.kubernetes.io/zone';
const zones = ['zone-a', 'zone-b', 'zone-c'];

/** True for a Node that this program simulates. */
export function isSimulated({ metadata }: Node): boolean {
  return metadata.annotations?.[kubeletAnnotation] === 'simulated';
}

/** True for a Node that its annotation makes fail. */
export function isDown({ metadata }: Node): boolean {
  return metadata.annotations?.[stateAnnotation] === 'down';
}

/** The Node to register as the n-th, from 1 on: `node-1` in `zone-a`. */
export function draftNode(number: number): Pick<Node, 'metadata'> {
  const name = `node-${number}`;
  const zone = zones[(number - 1) % zones.length] ?? '';
  return {
    metadata: {
      name,
      annotations: { [kubeletAnnotation]: 'simulated' },
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        [zoneLabel]: zone,
      },
    },
  };
}

const capacity = {
  cpu: '8',
  'ephemeral-storage': '100Gi',
  'hugepages-1Gi': '0',
  'hugepages-2Mi': '0',
  memory: '16Gi',
  pods: '250',
};

const pressures: readonly Omit<NodeCondition, 'lastHeartbeatTime'>[] = [
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'kubelet has no disk pressure',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'kubelet has sufficient PID available',
  },
];
const ready = {
  type: 'Ready',
  status: 'True',
  reason: 'KubeletReady',
  message: 'kubelet is posting ready status',
};
/** Of a Node that no pod CIDR is left for: no Pod of it could have an address. */
const withoutCidr = {
  type: 'Ready',
  status: 'False',
  reason: 'KubeletNotReady',
  message:
    'container runtime network not ready: no pod CIDR is left: delete a Node, or choose a larger --cluster-cidr',
};
const silent = {
  status: 'Unknown',
  reason: 'NodeStatusUnknown',
  message: 'Kubelet stopped posting node status.',
};

/** The port of kubelets (`pkg/cluster/ports`). */
const kubeletEndpoints = { kubeletEndpoint: { Port: 10_250 } };

/** `nodeStatusReportFrequency` of a kubelet: how often it writes a status without news. */
export const nodeStatusReportMs = 300_000;

/** The version of Kubernetes that is simulated, and the name of the simulation. */
const simulation = '+servicenet';
const kubeletVersion = `${fullVersion}${simulation}`;

/**
 * The wanted status of the Node: addresses, size and conditions, as kubelet writes them (pkg/kubelet/nodestatus). The
 * present one when nothing changed, heartbeats included, for {@link nodeStatusReportMs}.
 */
export function planNodeStatus(node: Node, now: number): Node['status'] {
  const time = formatTime(now);
  const down = isDown(node);
  const hasCidr = (node.spec.podCIDRs ?? []).length > 0;
  const conditions = [...pressures, hasCidr ? ready : withoutCidr].map((healthy): NodeCondition => {
    const wanted = down ? { type: healthy.type, ...silent } : healthy;
    const present = conditionOf(node.status.conditions, healthy.type);
    const beatAt = parseTime(present?.lastHeartbeatTime ?? '') ?? Number.NEGATIVE_INFINITY;
    const isFresh = down || now - beatAt < nodeStatusReportMs;
    if (isFresh && present?.status === wanted.status && present.reason === wanted.reason) return present;
    const { lastHeartbeatTime } = present ?? {};
    return {
      type: wanted.type,
      status: wanted.status,
      // A failed node sent its last heartbeat earlier.
      lastHeartbeatTime: (down ? lastHeartbeatTime : undefined) ?? time,
      lastTransitionTime: present?.status === wanted.status ? (present.lastTransitionTime ?? time) : time,
      ...(wanted.reason === undefined ? {} : { reason: wanted.reason }),
      ...(wanted.message === undefined ? {} : { message: wanted.message }),
    };
  });
  const { nodeInfo: info, daemonEndpoints = kubeletEndpoints } = node.status;
  // The default of an API server is 0.
  const isPortKnown = (daemonEndpoints.kubeletEndpoint?.Port ?? 0) !== 0;
  return {
    ...node.status,
    capacity: node.status.capacity ?? capacity,
    allocatable: node.status.allocatable ?? node.status.capacity ?? capacity,
    conditions,
    addresses: addressesOf(node),
    daemonEndpoints: isPortKnown ? daemonEndpoints : kubeletEndpoints,
    nodeInfo: info === undefined || isOutdated(info) ? nodeInfo(node) : info,
  };
}

/** A Node that has not been simulated yet, or by an older servicenet. */
function isOutdated({ kubeletVersion: version }: NodeSystemInfo): boolean {
  return version === '' || (version.endsWith(simulation) && version !== kubeletVersion);
}

/** Shows that the Node is not a machine. */
function nodeInfo({ metadata }: Node): NodeSystemInfo {
  return {
    machineID: '',
    systemUUID: metadata.uid ?? '',
    bootID: '',
    kernelVersion: 'none',
    osImage: 'servicenet (simulated)',
    containerRuntimeVersion: 'simulated://1.0.0',
    kubeletVersion,
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: 'amd64',
  };
}

/** The range of node addresses, per family: the first address is that of node number 0. */
const nodeNetworks = { IPv4: 0xac12_0002n, IPv6: 0xfd00_0172_0018_0000_0000_0000_0000_0002n } as const;

/** InternalIPs by the position of the Node's pod CIDR, so that each Node has its own. */
function addressesOf({ metadata, spec }: Node): NodeAddress[] {
  const internal = (spec.podCIDRs ?? []).flatMap((text) => {
    const cidr = parseCidr(text);
    if (cidr === undefined) return [];
    const position = (cidr.network >> BigInt(cidr.family === 'IPv4' ? 8 : 64)) & 0xffffn;
    return [
      { type: 'InternalIP', address: formatAddress(cidr.family, nodeNetworks[cidr.family] + position) },
    ];
  });
  return [
    ...internal,
    { type: 'Hostname', address: metadata.labels?.['kubernetes.io/hostname'] ?? metadata.name ?? '' },
  ];
}

/** The taints that controllers set; all others are set by users. */
const cordoned = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const unreachable = 'node.kubernetes.io/unreachable';
const notReady = 'node.kubernetes.io/not-ready';

/**
 * The wanted taints of the Node: those of users, and those for its conditions (pkg/controller/nodelifecycle,
 * `TaintNodesByCondition`).
 */
export function planTaints(node: Node, now: number): Taint[] {
  const wanted: Pick<Taint, 'key' | 'effect'>[] = [];
  if (node.spec.unschedulable === true) wanted.push(cordoned);
  if (isDown(node)) {
    wanted.push({ key: unreachable, effect: 'NoSchedule' }, { key: unreachable, effect: 'NoExecute' });
  }
  const present = node.spec.taints ?? [];
  const isOurs = ({ key }: Taint): boolean => key === cordoned.key || key === unreachable || key === notReady;
  const kept = present.filter(
    (taint) =>
      !isOurs(taint) || wanted.some(({ key, effect }) => key === taint.key && effect === taint.effect),
  );
  const missing = wanted.filter(
    ({ key, effect }) => !kept.some((taint) => taint.key === key && taint.effect === effect),
  );
  return [...kept, ...missing.map((taint) => ({ ...taint, timeAdded: formatTime(now) }))];
}

/** True when the taints are the wanted ones. */
export function hasTaints(node: Node, taints: readonly Taint[]): boolean {
  return jsonEqual(node.spec.taints ?? [], taints);
}

/** True when the toleration matches this taint (k8s.io/component-helpers/scheduling/corev1). */
function tolerates({ key = '', operator = '', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key !== '' && key !== taint.key) return false;
  return (
    operator === 'Exists' || ((operator === '' || operator === 'Equal') && value === (taint.value ?? ''))
  );
}

/** The taints of an effect that no toleration covers. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint[] {
  return taints.filter(
    (taint) =>
      effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}

/**
 * When a Pod must leave its node because of NoExecute taints, in milliseconds since 1970: `now` when a taint is not
 * tolerated, undefined when all are for ever. The first toleration of a taint applies (`GetMatchingTolerations`).
 */
export function evictionTime(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  now: number,
): number | undefined {
  let earliest: number | undefined;
  for (const taint of taints) {
    if (taint.effect !== 'NoExecute') continue;
    const matching = tolerations.find((toleration) => tolerates(toleration, taint));
    if (matching === undefined) return now;
    const { tolerationSeconds } = matching;
    if (tolerationSeconds === undefined) continue;
    const since = parseTime(taint.timeAdded ?? '') ?? now;
    const time = since + Math.max(0, tolerationSeconds) * 1000;
    earliest = earliest === undefined ? time : Math.min(earliest, time);
  }
  return earliest;
}

/** `--node-cidr-mask-size-ipv4` and `…-ipv6` of kube-controller-manager. */
const nodeMask = { IPv4: 24, IPv6: 64 } as const;
/** The most nodes in one CIDR. */
const maxNodes = 2 ** 16;

/** Allocates the node-sized parts of one cluster CIDR, lowest first (pkg/controller/nodeipam/ipam/cidrset). */
export class NodeCidrs {
  readonly family: IPFamily;
  readonly #network: bigint;
  readonly #hostBits: bigint;
  readonly #mask: number;
  readonly #taken: Bitmap;

  /** @throws {Error} for an invalid CIDR, or one that is smaller than a node's part. */
  constructor(clusterCidr: string) {
    const cidr = parseCidr(clusterCidr);
    if (cidr === undefined || cidr.hostBitsSet || cidr.leadingZeros || cidr.ipv4Mapped) {
      throw new Error(`"${clusterCidr}" is no CIDR`);
    }
    this.family = cidr.family;
    this.#mask = nodeMask[cidr.family];
    if (cidr.prefixLength > this.#mask) {
      throw new Error(`"${clusterCidr}" is too small: each node takes a /${this.#mask}`);
    }
    this.#network = cidr.network;
    this.#hostBits = BigInt(addressBits(cidr.family) - this.#mask);
    this.#taken = createBitmap(Math.min(2 ** (this.#mask - cidr.prefixLength), maxNodes));
  }

  /** Allocates the lowest free part; undefined when all are taken. */
  next(): string | undefined {
    const index = this.#taken.nextFree(0);
    if (index < 0) return undefined;
    this.#taken.set(index);
    const network = this.#network + (BigInt(index) << this.#hostBits);
    return `${formatAddress(this.family, network)}/${this.#mask}`;
  }

  /** Marks a part as taken; CIDRs outside of the cluster's are ignored. */
  occupy(nodeCidr: string): void {
    const index = this.#indexOf(nodeCidr);
    if (index !== undefined) this.#taken.set(index);
  }

  /** Releases a part. */
  release(nodeCidr: string): void {
    const index = this.#indexOf(nodeCidr);
    if (index !== undefined) this.#taken.clear(index);
  }

  #indexOf(nodeCidr: string): number | undefined {
    const cidr = parseCidr(nodeCidr);
    if (cidr?.family !== this.family || cidr.network < this.#network) return undefined;
    const index = (cidr.network - this.#network) >> this.#hostBits;
    return index < BigInt(this.#taken.size) ? Number(index) : undefined;
  }
}
