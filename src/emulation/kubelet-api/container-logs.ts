import type { LogLine } from '../../controllers/kubelet/container-runtime.ts';
import { parseTime } from '../../objects/time.ts';

/** What of a log is wanted (`PodLogOptions`, as kube-apiserver has validated it). */
export interface PodLogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  /** Of the end of what is there; undefined: all. */
  readonly tailLines: number | undefined;
  /** Milliseconds since the epoch; undefined: from the beginning. */
  readonly since: number | undefined;
  /** Undefined: no limit. */
  readonly limitBytes: number | undefined;
  /** Undefined: both. */
  readonly stream: LogLine['stream'] | undefined;
}

/** Reads the query of `/containerLogs`. @param now milliseconds since the epoch. */
export function logOptions(query: URLSearchParams, now: number): PodLogOptions {
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
    since: sinceSeconds === undefined ? sinceTime : now - sinceSeconds * 1000,
    limitBytes: number('limitBytes'),
    stream: stream === 'stdout' || stream === 'stderr' ? stream : undefined,
  };
}

/**
 * A log as bytes, as the kubelet writes it.
 *
 * @param lines of the whole log, following it or not.
 * @param present how many lines the log has now, for `tailLines`; counted by reading it once.
 */
export async function* logBytes(
  lines: AsyncIterable<LogLine>,
  { timestamps, tailLines, since, limitBytes = Infinity, stream }: PodLogOptions,
  present: () => Promise<number>,
): AsyncGenerator<Buffer> {
  let skipped = tailLines === undefined ? 0 : Math.max(0, (await present()) - tailLines);
  let left = limitBytes;
  let isStart = true;
  for await (const line of lines) {
    const begins = isStart;
    isStart = line.isWhole;
    if (skipped > 0) {
      if (line.isWhole) skipped--;
      continue;
    }
    if (stream !== undefined && line.stream !== stream) continue;
    if (since !== undefined && (parseTime(line.time) ?? Infinity) < since) continue;
    const bytes = Buffer.concat([
      ...(timestamps && begins ? [Buffer.from(`${line.time} `)] : []),
      line.text,
      ...(line.isWhole ? [lineEnd] : []),
    ]);
    yield bytes.subarray(0, left);
    left -= bytes.length;
    if (left <= 0) return;
  }
}

const lineEnd = Buffer.from('\n');

/** How many lines a log has. */
export async function countLines(lines: AsyncIterable<LogLine>): Promise<number> {
  let count = 0;
  for await (const { isWhole } of lines) if (isWhole) count++;
  return count;
}
