import type { LogLine } from '../../controllers/kubelet/container-runtime.ts';
import { parseTime } from '../../objects/formats/time.ts';
import type { ContainerStatus, Pod } from '../../objects/types/core.generated.ts';

/** The requested part of a log (`PodLogOptions`, as kube-apiserver has validated it). */
export interface PodLogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  /** Of the end of what is there; undefined: all. */
  readonly tailLines: number | undefined;
  /** Milliseconds since the epoch; undefined: from the beginning. */
  readonly sinceMs: number | undefined;
  /** Undefined: no limit. */
  readonly limitBytes: number | undefined;
  /** Undefined: both. */
  readonly stream: LogLine['stream'] | undefined;
}

/** Reads the query of `/containerLogs`. @param nowMs milliseconds since the epoch. */
export function logOptions(query: URLSearchParams, nowMs: number): PodLogOptions {
  const number = (name: string): number | undefined => {
    const text = query.get(name) ?? '';
    return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  };
  const is = (name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '');
  const sinceSeconds = number('sinceSeconds');
  const sinceTime = parseTime(query.get('sinceTime') ?? '');
  const stream = (query.get('stream') ?? '').toLowerCase();
  return {
    ...{ follow: is('follow'), previous: is('previous'), timestamps: is('timestamps') },
    tailLines: number('tailLines'),
    sinceMs: sinceSeconds === undefined ? sinceTime : nowMs - sinceSeconds * 1000,
    limitBytes: number('limitBytes'),
    stream: stream === 'stdout' || stream === 'stderr' ? stream : undefined,
  };
}

/** Why a container has no log, in the kubelet's words (`validateContainerLogStatus`); undefined: it has one. */
export function logRefusal(pod: Pod, name: string, previous: boolean): string | undefined {
  const what = `container ${JSON.stringify(name)} in pod ${JSON.stringify(pod.metadata.name ?? '')}`;
  const status = findContainerStatus(pod, name);
  if (status === undefined) return `${what} is not available`;
  const { state, lastState } = status;
  if (previous)
    return lastState?.terminated === undefined ? `previous terminated ${what} not found` : undefined;
  if ([state?.running, state?.terminated, lastState?.terminated].some((each) => each !== undefined))
    return undefined;
  const reason = state?.waiting?.reason;
  if (reason === undefined) return `${what} is waiting to start - no logs yet`;
  return `${what} is waiting to start: ${pullProblems.get(reason) ?? reason}`;
}

const pullProblems: ReadonlyMap<string, string> = new Map([
  ['ErrImagePull', "image can't be pulled"],
  ['ImagePullBackOff', 'trying and failing to pull image'],
]);

/**
 * A log as bytes, as the kubelet writes it.
 *
 * @param lines of the log from the first that `tailLines` wants, following it or not; many at once.
 */
export async function* logBytes(
  lines: AsyncIterable<readonly LogLine[]>,
  { timestamps, sinceMs = -Infinity, limitBytes = Infinity, stream }: PodLogOptions,
): AsyncGenerator<Buffer> {
  let left = limitBytes;
  let isStart = true;
  // Lines are in the order of their times.
  let isSince = false;
  for await (const some of lines) {
    const parts: Buffer[] = [];
    for (const line of some) {
      const begins = isStart;
      isStart = line.isWhole;
      if (stream !== undefined && line.stream !== stream) continue;
      isSince ||= (parseTime(line.time) ?? Infinity) >= sinceMs;
      if (!isSince) continue;
      if (timestamps && begins) parts.push(Buffer.from(`${line.time} `));
      parts.push(line.text);
      if (line.isWhole) parts.push(lineEnd);
    }
    if (parts.length === 0) continue;
    const bytes = Buffer.concat(parts).subarray(0, left);
    yield bytes;
    left -= bytes.length;
    if (left <= 0) return;
  }
}

const lineEnd = Buffer.from('\n');

/** The status of a container of any kind; undefined: the Pod has none of this name. */
export function findContainerStatus({ status }: Pod, name: string): ContainerStatus | undefined {
  const { containerStatuses = [], initContainerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...containerStatuses, ...initContainerStatuses, ...ephemeralContainerStatuses].find(
    (each) => each.name === name,
  );
}
