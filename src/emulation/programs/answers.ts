import type { PodIdentity } from './http.ts';

/** The user agent of probes, whose answers are not reported. */
const probeAgent = /^kube-probe\//;

const answered = new Map<string, number>();
let listener: ((answers: PodAnswers) => void) | undefined;
let timer: NodeJS.Timeout | undefined;

/**
 * The number of answers of built-in servers, by the key of the Pod: HTTP requests, TCP connections, UDP datagrams.
 */
export type PodAnswers = readonly (readonly [string, number])[];

/** Milliseconds between two reports. */
const pause = 200;

/** Counts one answer of a Pod. @param agent the header User-Agent of its client. */
export function reportAnswer({ namespace, pod }: PodIdentity, agent = ''): void {
  if (listener === undefined || probeAgent.test(agent)) return;
  const key = `${namespace}/${pod}`;
  answered.set(key, (answered.get(key) ?? 0) + 1);
  timer ??= setTimeout(report, pause).unref();
}

/** Reports answers from now on, every 200 ms at most. */
export function reportAnswers(tell: (answers: PodAnswers) => void): void {
  listener = tell;
}

function report(): void {
  timer = undefined;
  const answers = [...answered];
  answered.clear();
  listener?.(answers);
}
