/**
 * What a simulated Node reports: addresses, size, conditions and taints, as kubelet and the node lifecycle controller
 * write them (pkg/kubelet/nodestatus, pkg/controller/nodelifecycle).
 */
import { jsonEqual } from '../../objects/json.ts';
import { parseCidr, formatAddress } from '../../objects/address.ts';
import type { NodeSystemInfo } from '../../objects/core.generated.ts';
import type { Node, NodeCondition, Taint } from '../../objects/core.generated.ts';
import { formatTime } from '../../objects/time.ts';
import { conditionOf } from '../../objects/pods.ts';

/** On Nodes that this program simulates: `simulated`. */
const kubeletAnnotation = 'servicenet.dev/kubelet';
/** On such a Node: `down` makes it fail, as if its machine had been switched off. */
const stateAnnotation = 'servicenet.dev/state';

export const zoneLabel = 'topology.kubernetes.io/zone';
const zones = ['zone-a', 'zone-b', 'zone-c'];

/** True for a Node whose kubelet is ours. */
export function isSimulated({ metadata }: Node): boolean {
  return metadata.annotations?.[kubeletAnnotation] === 'simulated';
}

/** True for a Node that was failed by annotation. */
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
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'kubelet is posting ready status' },
];
const silent = {
  status: 'Unknown',
  reason: 'NodeStatusUnknown',
  message: 'Kubelet stopped posting node status.',
};

/** The version of Kubernetes whose behaviour is simulated, and by whom. */
const kubeletVersion = 'v1.36.0+servicenet';

/** The status that the Node should have; the present one where nothing changed, heartbeats included. */
export function planNodeStatus(node: Node, now: number): Node['status'] {
  const time = formatTime(now);
  const down = isDown(node);
  const conditions = pressures.map((healthy): NodeCondition => {
    const wanted = down ? { type: healthy.type, ...silent } : healthy;
    const present = conditionOf(node.status.conditions, healthy.type);
    if (present?.status === wanted.status && present.reason === wanted.reason) return present;
    const { lastHeartbeatTime } = present ?? {};
    return {
      type: wanted.type,
      status: wanted.status,
      // A node that fell silent sent its last heartbeat earlier.
      lastHeartbeatTime: (down ? lastHeartbeatTime : undefined) ?? time,
      lastTransitionTime: present?.status === wanted.status ? (present.lastTransitionTime ?? time) : time,
      ...(wanted.reason === undefined ? {} : { reason: wanted.reason }),
      ...(wanted.message === undefined ? {} : { message: wanted.message }),
    };
  });
  const { nodeInfo: info } = node.status;
  return {
    ...node.status,
    capacity: node.status.capacity ?? capacity,
    allocatable: node.status.allocatable ?? node.status.capacity ?? capacity,
    conditions,
    addresses: addressesOf(node),
    nodeInfo: info === undefined || info.kubeletVersion === '' ? nodeInfo(node) : info,
  };
}

/** Says openly that nothing here is a machine. */
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

/** The part of the address space that nodes live in, per family: the first address of node number 0. */
const nodeNetworks = { IPv4: 0xac12_0002n, IPv6: 0xfd00_0172_0018_0000_0000_0000_0000_0002n } as const;

/** InternalIPs by the position of the Node's pod CIDR, so that no two Nodes have the same. */
function addressesOf({ metadata, spec }: Node): { type: string; address: string }[] {
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

/** The taints that controllers set; all others are the users'. */
const cordoned = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
const unreachable = 'node.kubernetes.io/unreachable';
const notReady = 'node.kubernetes.io/not-ready';

/** The taints that the Node should have: the users', and those of its conditions (`TaintNodesByCondition`). */
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

/** True when the taints are as they should be. */
export function hasTaints(node: Node, taints: readonly Taint[]): boolean {
  return jsonEqual(node.spec.taints ?? [], taints);
}
