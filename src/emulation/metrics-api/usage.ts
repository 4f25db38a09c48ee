/** The simulated usage of Pods and Nodes, as `metrics.k8s.io/v1beta1` shows it. */
import type { KubeObject } from '../../objects/meta.ts';
import { formatQuantity, parseQuantity } from '../../objects/quantity.ts';
import { scalarAt } from '../../objects/read.ts';
import { formatTime } from '../../objects/time.ts';
import type { Container, Node, Pod } from '../../objects/types/core.generated.ts';

/** metrics.k8s.io/v1beta1 PodMetrics. */
export interface PodMetrics extends KubeObject {
  readonly timestamp: string;
  readonly window: string;
  readonly containers: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[];
}

/** metrics.k8s.io/v1beta1 NodeMetrics. */
export interface NodeMetrics extends KubeObject {
  readonly timestamp: string;
  readonly window: string;
  readonly usage: Readonly<Record<string, string>>;
}

/** The usage of a container, in billionths as in quantities. */
interface Usage {
  readonly cpu: bigint;
  readonly memory: bigint;
}

export const metricsVersion = 'metrics.k8s.io/v1beta1';
/** Annotations of a Pod: what each of its containers uses, as quantities. */
const cpuUsageAnnotation = 'servicenet.dev/cpu-usage';
const memoryUsageAnnotation = 'servicenet.dev/memory-usage';

/** The time that a figure is about, as a metrics-server has it by default. */
const window = '15s';
const mebibyte = 1_048_576n * 1_000_000_000n;
const millicore = 1_000_000n;
/** Of a container that requests nothing, and of the parts of a node that are no Pods. */
const idle: Usage = { cpu: millicore, memory: 4n * mebibyte };
const system: Usage = { cpu: 50n * millicore, memory: 256n * mebibyte };
/** The parts of its requests that a container uses. */
const share = { cpu: 10n, memory: 2n } as const;

/** The usage of a Pod's containers: as annotated, else a tenth of the CPU and half of the memory that they request. */
export function podMetrics(pod: Pod, now: number): PodMetrics {
  const { name = '', namespace = '', labels = {} } = pod.metadata;
  return {
    apiVersion: metricsVersion,
    kind: 'PodMetrics',
    metadata: { name, namespace, creationTimestamp: formatTime(now), labels },
    timestamp: formatTime(now),
    window,
    containers: containersOf(pod).map((container) => ({
      name: container.name,
      usage: written(usageOf(pod, container)),
    })),
  };
}

/** The usage of a Node. @param pods those that run there. */
export function nodeMetrics(node: Node, pods: readonly Pod[], now: number): NodeMetrics {
  const { name = '', labels = {} } = node.metadata;
  const all = pods.flatMap((pod) => containersOf(pod).map((container) => usageOf(pod, container)));
  const total = all.reduce(
    (sum, { cpu, memory }) => ({ cpu: sum.cpu + cpu, memory: sum.memory + memory }),
    system,
  );
  return {
    apiVersion: metricsVersion,
    kind: 'NodeMetrics',
    metadata: { name, creationTimestamp: formatTime(now), labels },
    timestamp: formatTime(now),
    window,
    usage: written(total),
  };
}

function containersOf({ spec }: Pod): readonly Container[] {
  return spec.containers ?? [];
}

function usageOf({ metadata }: Pod, { resources }: Container): Usage {
  const part = (resource: 'cpu' | 'memory', annotation: string): bigint => {
    const set = amountOf(metadata.annotations?.[annotation]);
    if (set !== undefined) return set;
    const requested = amountOf(scalarAt(resources, 'requests', resource));
    return requested === undefined ? idle[resource] : requested / share[resource];
  };
  return { cpu: part('cpu', cpuUsageAnnotation), memory: part('memory', memoryUsageAnnotation) };
}

/** Undefined for an invalid or negative quantity. */
function amountOf(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  try {
    const { nanos } = parseQuantity(text);
    return nanos < 0n ? undefined : nanos;
  } catch {
    return undefined;
  }
}

/** CPU in billionths and memory in KiB, as kubelets count. */
function written({ cpu, memory }: Usage): Record<string, string> {
  const kibibytes = (memory / 1_000_000_000n / 1024n) * 1024n * 1_000_000_000n;
  return {
    cpu: formatQuantity({ nanos: cpu, format: 'DecimalSI' }),
    memory: formatQuantity({ nanos: kibibytes, format: 'BinarySI' }),
  };
}
