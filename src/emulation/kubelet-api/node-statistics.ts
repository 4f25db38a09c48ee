import { scalarAt } from '../../objects/json.ts';
import type { ObjectKey } from '../../objects/meta.ts';
import { parseQuantity } from '../../objects/formats/quantity.ts';
import type { Container, Pod, Node } from '../../objects/types/core.generated.ts';
import type { PodResponses } from '../pod-server.ts';
import { formatTime, parseTime } from '../../objects/formats/time.ts';

/** What Pods and nodes are said to use: there is nothing to measure. */

/** The usage of a container, in billionths as in quantities. */
export interface Usage {
  readonly cpu: bigint;
  readonly memory: bigint;
}

/** Annotations of a Pod: what each of its containers uses, as quantities. */
const cpuUsageAnnotation = 'servicenet.dev/cpu-usage';
const memoryUsageAnnotation = 'servicenet.dev/memory-usage';

const mebibyte = 1_048_576n * 1_000_000_000n;
const millicore = 1_000_000n;
/** Of a container that requests nothing. */
const idle: Usage = { cpu: millicore, memory: 4n * mebibyte };
/** Of the parts of a node that are no Pods. */
export const systemUsage: Usage = { cpu: 50n * millicore, memory: 256n * mebibyte };
/** The parts of its requests that a container uses. */
const share = { cpu: 10n, memory: 2n } as const;

/** CPU that an answer takes: 20 thousandths of a CPU for one in each second. */
const cpuOfAnswer = 20n * millicore;

/**
 * The usage of a container: as its Pod's annotations say, else a tenth of the CPU and half of the memory that it requests,
 * and CPU for what it answers, up to its limit.
 *
 * @param answersPerSecond of a built-in server.
 */
export function usageOf({ metadata }: Pod, { resources }: Container, answersPerSecond = 0): Usage {
  const part = (resource: 'cpu' | 'memory', annotation: string, load: bigint): bigint => {
    const set = amountOf(metadata.annotations?.[annotation]);
    if (set !== undefined) return set;
    const requested = amountOf(scalarAt(resources, 'requests', resource));
    const used = (requested === undefined ? idle[resource] : requested / share[resource]) + load;
    const limit = amountOf(scalarAt(resources, 'limits', resource));
    return limit !== undefined && limit < used ? limit : used;
  };
  const load = BigInt(Math.round(answersPerSecond * Number(cpuOfAnswer)));
  return { cpu: part('cpu', cpuUsageAnnotation, load), memory: part('memory', memoryUsageAnnotation, 0n) };
}

/** How often containers answer, over the time that figures are about. */
export class AnswerRates {
  /** By container and second: answers. */
  readonly #counts = new Map<string, Map<number, number>>();
  readonly #now: () => number;
  readonly #windowSeconds: number;

  /** @param now milliseconds of a clock that never goes back. */
  constructor(windowSeconds: number, now: () => number) {
    this.#windowSeconds = windowSeconds;
    this.#now = now;
  }

  /** @param answers as {@link PodResponses}. */
  count(answers: PodResponses): void {
    const second = this.#second();
    for (const [pod, count, container] of answers) {
      const key = `${pod} ${container}`;
      const ofContainer = this.#counts.get(key) ?? new Map<number, number>();
      ofContainer.set(second, (ofContainer.get(second) ?? 0) + count);
      this.#counts.set(key, ofContainer);
    }
    this.#forget(second);
  }

  perSecond(pod: ObjectKey, container: string): number {
    const first = this.#second() - this.#windowSeconds;
    let answers = 0;
    for (const [second, count] of this.#counts.get(`${pod} ${container}`) ?? []) {
      if (second > first) answers += count;
    }
    return answers / this.#windowSeconds;
  }

  #second(): number {
    return Math.floor(this.#now() / 1000);
  }

  #forget(now: number): void {
    for (const [key, counts] of this.#counts) {
      for (const second of counts.keys()) if (second <= now - this.#windowSeconds) counts.delete(second);
      if (counts.size === 0) this.#counts.delete(key);
    }
  }
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

/**
 * What a kubelet says of its node and Pods, besides the streams of containers (`pkg/kubelet/server/server.go`). Usage is
 * simulated, as in metrics.k8s.io; counters grow with it from the start of what they count.
 */

/** A node, the Pods that are bound to it, and the time, in milliseconds since the epoch. */
export interface NodeState {
  readonly node: Node;
  readonly pods: readonly Pod[];
  readonly now: number;
}

/** An answer of a kubelet. */
export interface NodeAnswer {
  readonly contentType: string;
  readonly body: string;
}

const json = (value: unknown): NodeAnswer => ({
  contentType: 'application/json',
  body: JSON.stringify(value),
});
const plain = (body: string): NodeAnswer => ({ contentType: 'text/plain; charset=utf-8', body });
const metrics = (body: string): NodeAnswer => ({
  contentType: 'text/plain; version=0.0.4; charset=utf-8',
  body,
});

/** By path, without a slash at its end. */
const answers: ReadonlyMap<string, (state: NodeState) => NodeAnswer> = new Map<
  string,
  (state: NodeState) => NodeAnswer
>([
  ['/pods', ({ pods }) => json(podList(pods))],
  ['/runningpods', ({ pods }) => json(podList(pods.filter(isRunning)))],
  ['/stats/summary', (state) => json(summaryOf(state))],
  ['/metrics', (state) => metrics(ownMetrics(state))],
  ['/metrics/cadvisor', (state) => metrics(containerMetrics(state))],
  ['/metrics/resource', (state) => metrics(resourceMetrics(state))],
  ['/metrics/probes', () => metrics('')],
  ['/configz', ({ node }) => json({ kubeletconfig: configurationOf(node) })],
  ...['/healthz/ping', '/healthz/log', '/healthz/syncloop'].map((path) => [path, () => plain('ok')] as const),
]);

/** The answer to a path; undefined: a kubelet has none there. */
export function nodeAnswer(path: string, state: NodeState): NodeAnswer | undefined {
  return answers.get(path.endsWith('/') ? path.slice(0, -1) : path)?.(state);
}

function isRunning({ status }: Pod): boolean {
  return status.phase === 'Running';
}

function podList(items: readonly Pod[]): object {
  return { kind: 'PodList', apiVersion: 'v1', metadata: {}, items };
}

/** Of a container that runs. */
interface Running {
  readonly pod: Pod;
  readonly container: Container;
  readonly usage: Usage;
  /** Milliseconds since the epoch. */
  readonly startedMs: number;
}

function runningOf(pod: Pod): Running[] {
  return (pod.spec.containers ?? []).flatMap((container) => {
    const status = pod.status.containerStatuses?.find(({ name }) => name === container.name);
    const startedAt = status?.state?.running?.startedAt;
    if (typeof startedAt !== 'string') return [];
    return [{ pod, container, usage: usageOf(pod, container), startedMs: parseTime(startedAt) ?? 0 }];
  });
}

const billion = 1_000_000_000n;
/** Usage counts in billionths: of CPUs, and of bytes. */
const bytesOf = ({ memory }: Usage): number => Number(memory / billion);
const nanoCoresOf = ({ cpu }: Usage): number => Number(cpu);
/** CPU time since a start, in billionths of seconds. */
const coreNanoSeconds = (usage: Usage, startedMs: number, now: number): number =>
  Math.floor(nanoCoresOf(usage) * (Math.max(0, now - startedMs) / 1000));

function sumOf(usages: readonly Usage[]): Usage {
  return usages.reduce((sum, { cpu, memory }) => ({ cpu: sum.cpu + cpu, memory: sum.memory + memory }), {
    cpu: 0n,
    memory: 0n,
  });
}

function startOf(node: Node): number {
  return parseTime(node.metadata.creationTimestamp ?? '') ?? 0;
}

function nodeUsage(running: readonly Running[]): Usage {
  return sumOf([systemUsage, ...running.map(({ usage }) => usage)]);
}

function capacityOf(node: Node, resource: string): number {
  const text = node.status.capacity?.[resource];
  return text === undefined ? 0 : Number(parseQuantity(text).nanos / billion);
}

/** `stats/v1alpha1` Summary. */
function summaryOf({ node, pods, now }: NodeState): object {
  const time = formatTime(now);
  const cpuAndMemory = (usage: Usage, startedMs: number) => ({
    cpu: {
      ...{ time, usageNanoCores: nanoCoresOf(usage) },
      usageCoreNanoSeconds: coreNanoSeconds(usage, startedMs, now),
    },
    memory: {
      ...{ time, usageBytes: bytesOf(usage), workingSetBytes: bytesOf(usage), rssBytes: bytesOf(usage) },
      ...{ pageFaults: 0, majorPageFaults: 0 },
    },
  });
  const running = pods.flatMap(runningOf);
  const total = nodeUsage(running);
  const ofNode = cpuAndMemory(total, startOf(node));
  const availableBytes = Math.max(0, capacityOf(node, 'memory') - bytesOf(total));
  return {
    node: {
      nodeName: node.metadata.name ?? '',
      startTime: formatTime(startOf(node)),
      cpu: ofNode.cpu,
      memory: { ...ofNode.memory, availableBytes },
    },
    pods: [...Map.groupBy(running, ({ pod }) => pod)].map(([{ metadata, status }, containers]) => {
      const { name = '', namespace = '', uid = '' } = metadata;
      const startedMs = containers.reduce((first, each) => Math.min(first, each.startedMs), now);
      return {
        podRef: { name, namespace, uid },
        startTime: status.startTime ?? formatTime(startedMs),
        containers: containers.map((each) => ({
          name: each.container.name,
          startTime: formatTime(each.startedMs),
          ...cpuAndMemory(each.usage, each.startedMs),
        })),
        ...cpuAndMemory(sumOf(containers.map(({ usage }) => usage)), startedMs),
      };
    }),
  };
}

type Labels = Readonly<Record<string, string>>;

/** A family of metrics in the text format of Prometheus. */
function family(
  name: string,
  type: 'counter' | 'gauge',
  help: string,
  samples: readonly (readonly [Labels, number])[],
): string {
  const lines = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`);
    return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

const secondsOf = ({ usage, startedMs }: Running, now: number): number =>
  coreNanoSeconds(usage, startedMs, now) / 1e9;

/** As cAdvisor names them; of one network interface, one disk and so on nothing is known. */
function containerMetrics({ node, pods, now }: NodeState): string {
  const running = pods.flatMap(runningOf);
  const of = (value: (each: Running) => number, more: Labels = {}) =>
    running.map((each) => {
      const { metadata, status } = each.pod;
      const { name = '', namespace = '', uid = '' } = metadata;
      const id = status.containerStatuses?.find((one) => one.name === each.container.name)?.containerID ?? '';
      const labels = {
        ...{
          container: each.container.name,
          ...more,
          id: `/kubepods/pod${uid}/${id.replace(/^.*:\/\//, '')}`,
        },
        ...{ image: each.container.image ?? '', name: id.replace(/^.*:\/\//, ''), namespace, pod: name },
      };
      return [labels, value(each)] as const;
    });
  const memory = of(({ usage }) => bytesOf(usage));
  const seconds = of((each) => secondsOf(each, now), { cpu: 'total' });
  return [
    family(
      'container_cpu_usage_seconds_total',
      'counter',
      'Cumulative cpu time consumed in seconds.',
      seconds,
    ),
    family('container_memory_rss', 'gauge', 'Size of RSS in bytes.', memory),
    family('container_memory_usage_bytes', 'gauge', 'Current memory usage in bytes.', memory),
    family('container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.', memory),
    family(
      ...(['container_start_time_seconds', 'gauge', 'Start time since the epoch in seconds.'] as const),
      of(({ startedMs }) => startedMs / 1000),
    ),
    family('machine_cpu_cores', 'gauge', 'Number of logical CPU cores.', [[{}, capacityOf(node, 'cpu')]]),
    family('machine_memory_bytes', 'gauge', 'Memory installed, in bytes.', [
      [{}, capacityOf(node, 'memory')],
    ]),
  ].join('');
}

/** Those that a metrics-server reads (KEP-727). */
function resourceMetrics({ node, pods, now }: NodeState): string {
  const running = pods.flatMap(runningOf);
  const total = nodeUsage(running);
  const of = (value: (each: Running) => number) =>
    running.map((each) => {
      const { name = '', namespace = '' } = each.pod.metadata;
      return [{ container: each.container.name, namespace, pod: name }, value(each)] as const;
    });
  const ofPods = (value: (all: readonly Running[]) => number) =>
    [...Map.groupBy(running, ({ pod }) => pod)].map(([{ metadata }, all]) => {
      const { name = '', namespace = '' } = metadata;
      return [{ namespace, pod: name }, value(all)] as const;
    });
  const nodeSeconds = coreNanoSeconds(total, startOf(node), now) / 1e9;
  const cpu = 'Cumulative cpu time consumed in core-seconds';
  const memory = 'Current working set in bytes';
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  return [
    family(
      'container_cpu_usage_seconds_total',
      'counter',
      cpu,
      of((each) => secondsOf(each, now)),
    ),
    family(
      'container_memory_working_set_bytes',
      'gauge',
      memory,
      of(({ usage }) => bytesOf(usage)),
    ),
    family(
      'container_start_time_seconds',
      'gauge',
      'Start time since the epoch',
      of(({ startedMs }) => startedMs / 1000),
    ),
    family('node_cpu_usage_seconds_total', 'counter', cpu, [[{}, nodeSeconds]]),
    family('node_memory_working_set_bytes', 'gauge', memory, [[{}, bytesOf(total)]]),
    family(
      ...(['pod_cpu_usage_seconds_total', 'counter', cpu] as const),
      ofPods((all) => sum(all.map((each) => secondsOf(each, now)))),
    ),
    family(
      ...(['pod_memory_working_set_bytes', 'gauge', memory] as const),
      ofPods((all) => sum(all.map(({ usage }) => bytesOf(usage)))),
    ),
    family('resource_scrape_error', 'gauge', '1 if there was an error, 0 otherwise', [[{}, 0]]),
  ].join('');
}

function ownMetrics({ node, pods }: NodeState): string {
  const running = pods.filter(isRunning);
  return [
    family('kubelet_node_name', 'gauge', "The node's name.", [[{ node: node.metadata.name ?? '' }, 1]]),
    family('kubelet_running_pods', 'gauge', 'Pods that have a running sandbox.', [[{}, running.length]]),
    family('kubelet_running_containers', 'gauge', 'Containers by state.', [
      [{ container_state: 'running' }, pods.flatMap(runningOf).length],
    ]),
  ].join('');
}

/** `kubelet.config.k8s.io/v1beta1` KubeletConfiguration, as far as anything here follows it. */
function configurationOf(node: Node): object {
  return {
    ...{ kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' },
    ...{ enableServer: true, port: 10_250, clusterDomain: 'cluster.local', cgroupDriver: 'systemd' },
    ...{ maxPods: capacityOf(node, 'pods'), podCIDR: node.spec.podCIDR ?? '' },
    ...{ nodeStatusReportFrequency: '5m0s', nodeLeaseDurationSeconds: 40 },
    ...{ streamingConnectionIdleTimeout: '4h0m0s', evictionHard: {}, featureGates: {} },
  };
}
