/**
 * The status of a PodNetworkConnectivityCheck after one more check (cluster-network-operator
 * `pkg/cmd/checkendpoints/controller/connection_checker.go`). Times are milliseconds since 1970. PURE.
 */
import type {
  CheckCondition,
  CheckEntry,
  ConnectivityCheckStatus,
  OutageEntry,
} from '../../../objects/types/openshift.ts';
import { formatMicroTime, formatTime, parseTime } from '../../../objects/formats/time.ts';
import type { PlannedEvent } from '../../../client/events/events.ts';
import { replacedCondition, transitionTime } from '../../../objects/meta.ts';

/** An action of a check: when it began, and how many milliseconds it took. */
interface Action {
  readonly start: number;
  readonly latency: number;
}

/** The result of one check. */
export interface CheckResult {
  /** The lookup of the host; absent for an address. */
  readonly dns?: Action;
  /** Absent where the lookup failed. */
  readonly connect?: Action;
  /** Why it failed, in Go's words: of the connection, or without one of the lookup. */
  readonly error?: string;
}

/** The source of a check. */
export type CheckSource =
  /** The network of the source Pod. */
  | 'PodNetwork'
  /** That of the process of servicenet: the source Pod has no network that it is in. */
  | 'Process';

export type CheckEvent = PlannedEvent<'ConnectivityOutageDetected' | 'ConnectivityRestored'>;

const maxEntries = 10;
const maxOutages = 20;
const maxOutageLogs = 5;

/** The status with one more check, and the Event of an outage that begins or ends. */
export function statusAfter(
  check: { readonly name: string; readonly targetEndpoint: string },
  status: ConnectivityCheckStatus,
  result: CheckResult,
  source: CheckSource,
  now: number,
): { readonly status: ConnectivityCheckStatus; readonly event: CheckEvent | undefined } {
  const added = logEntriesOf(check, result);
  const successes = addEntries(
    status.successes,
    added.filter(({ success }) => success),
  );
  const failures = addEntries(
    status.failures,
    added.filter(({ success }) => !success),
  );
  const { outages, event } = outagesAfter(status.outages ?? [], failures[0], successes[0]);
  const conditions = [reachable(outages, failures[0], successes[0]), sourceCondition(source)].reduce(
    (present, condition) =>
      replacedCondition(present, {
        ...condition,
        lastTransitionTime: transitionTime(present, condition, now),
      }),
    status.conditions ?? [],
  );
  return { status: stored({ successes, failures, outages, conditions }), event };
}

/** The entries of a check: a lookup that was done, then the connection. */
export function logEntriesOf(
  { name, targetEndpoint }: { readonly name: string; readonly targetEndpoint: string },
  { dns, connect, error = '' }: CheckResult,
): readonly CheckEntry[] {
  const prefix = name.slice(name.lastIndexOf('-to-') + (name.includes('-to-') ? 4 : 1));
  const { host } = hostAndPort(targetEndpoint);
  const entry = (action: Action, success: boolean, reason: string, message: string): CheckEntry => ({
    time: exactTime(action.start),
    success,
    reason,
    message: `${prefix}: ${message}`,
    latency: goDuration(action.latency),
  });
  if (connect === undefined) {
    const looked = dns ?? { start: 0, latency: 0 };
    return [entry(looked, false, 'DNSError', `failure looking up host ${host}: ${error}`)];
  }
  const found =
    dns === undefined ? [] : [entry(dns, true, 'DNSResolve', `resolved host name ${host} successfully`)];
  const connected =
    error === ''
      ? entry(connect, true, 'TCPConnect', `tcp connection to ${targetEndpoint} succeeded`)
      : entry(
          connect,
          false,
          'TCPConnectError',
          `failed to establish a TCP connection to ${targetEndpoint}: ${error}`,
        );
  return [...found, connected];
}

/** The outages when the newest failure and success are these. */
export function outagesAfter(
  outages: readonly OutageEntry[],
  failure: CheckEntry | undefined,
  success: CheckEntry | undefined,
): { readonly outages: OutageEntry[]; readonly event: CheckEvent | undefined } {
  const failed = timeOf(failure?.time);
  const succeeded = timeOf(success?.time);
  const [first, ...rest] = outages;
  const current = first !== undefined && (first.end ?? '') === '' ? first : undefined;
  if (failure !== undefined && failed > succeeded) {
    const { outage, event } =
      current === undefined ? beginning(failure) : { outage: lasting(current, failure), event: undefined };
    const others = current === undefined ? outages : rest;
    return { outages: [outage, ...others].slice(0, maxOutages), event };
  }
  if (current === undefined || success === undefined || succeeded <= failed) {
    return { outages: outages.slice(0, maxOutages), event: undefined };
  }
  const lasted = goDuration(succeeded - timeOf(current.start));
  const restored: OutageEntry = {
    ...current,
    end: success.time,
    endLogs: [success, ...(current.endLogs ?? [])].slice(0, maxOutageLogs),
    message: `Connectivity restored after ${lasted}`,
  };
  const message = `Connectivity restored after ${lasted}: ${success.message ?? ''}`;
  return {
    outages: [restored, ...rest].slice(0, maxOutages),
    event: { type: 'Normal', reason: 'ConnectivityRestored', message },
  };
}

function beginning(failure: CheckEntry): { outage: OutageEntry; event: CheckEvent } {
  const message = `Connectivity outage detected: ${failure.message ?? ''}`;
  return {
    outage: {
      start: failure.time,
      startLogs: [failure],
      endLogs: [failure],
      message: `Connectivity outage detected at ${failure.time ?? ''}`,
    },
    event: { type: 'Warning', reason: 'ConnectivityOutageDetected', message },
  };
}

function lasting(outage: OutageEntry, failure: CheckEntry): OutageEntry {
  const { startLogs = [], endLogs = [] } = outage;
  const isNew =
    startLogs.length === 0 || (startLogs.length < maxOutageLogs && startLogs[0]?.message !== failure.message);
  return {
    ...outage,
    startLogs: isNew ? [failure, ...startLogs] : startLogs,
    endLogs: [failure, ...endLogs].slice(0, maxOutageLogs),
  };
}

function reachable(
  [outage]: readonly OutageEntry[],
  failure: CheckEntry | undefined,
  success: CheckEntry | undefined,
): Omit<CheckCondition, 'lastTransitionTime'> {
  const type = 'Reachable';
  if (outage === undefined || (outage.end ?? '') !== '') {
    return { type, status: 'True', reason: 'TCPConnectSuccess', message: success?.message ?? '' };
  }
  return { type, status: 'False', reason: failure?.reason ?? '', message: failure?.message ?? '' };
}

/** Ours alone: the real checker is a process of the source Pod. */
function sourceCondition(source: CheckSource): Omit<CheckCondition, 'lastTransitionTime'> {
  const type = 'FromSourcePod';
  return source === 'PodNetwork'
    ? {
        type,
        status: 'True',
        reason: source,
        message: 'servicenet connects from the network of the source Pod',
      }
    : {
        type,
        status: 'False',
        reason: source,
        message: 'servicenet connects from its own process: it has no way into a network of the source Pod',
      };
}

/** The newest first, ten at most. */
function addEntries(present: readonly CheckEntry[] = [], added: readonly CheckEntry[]): CheckEntry[] {
  return [...added, ...present].sort((a, b) => timeOf(b.time) - timeOf(a.time)).slice(0, maxEntries);
}

function timeOf(text: string | null | undefined): number {
  return parseTime(text ?? '') ?? Number.NEGATIVE_INFINITY;
}

/** RFC3339Nano of Go, to the microsecond: without zeros at the end. */
function exactTime(milliseconds: number): string {
  return formatMicroTime(milliseconds).replace(/\.?0{0,6}Z$/, 'Z');
}

/** metav1.Time has whole seconds: what is stored is cut, what is compared with it is not. */
function stored(status: ConnectivityCheckStatus): ConnectivityCheckStatus {
  const cut = (text: string | null): string | null => {
    const time = parseTime(text ?? '');
    return time === undefined ? text : formatTime(time);
  };
  const entries = (list: readonly CheckEntry[] = []): CheckEntry[] =>
    list.map((entry) => ({ ...entry, time: cut(entry.time) }));
  return {
    ...status,
    successes: entries(status.successes),
    failures: entries(status.failures),
    outages: (status.outages ?? []).map((outage) => ({
      ...outage,
      start: cut(outage.start),
      ...(outage.end === undefined ? {} : { end: cut(outage.end) }),
      startLogs: entries(outage.startLogs),
      endLogs: entries(outage.endLogs),
    })),
  };
}

/** A duration as Go prints it: `1h2m3.5s`, `1.5ms`, `20µs`, `0s`. */
export function goDuration(milliseconds: number): string {
  const micros = Math.round(milliseconds * 1000);
  if (micros === 0) return '0s';
  if (micros < 1000) return `${micros}µs`;
  if (micros < 1_000_000) return `${micros / 1000}ms`;
  const hours = Math.floor(micros / 3_600_000_000);
  const minutes = Math.floor((micros % 3_600_000_000) / 60_000_000);
  const seconds = (micros % 60_000_000) / 1_000_000;
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${seconds}s`;
}

/** `host:port` in its parts; an IPv6 address is in brackets. */
export function hostAndPort(endpoint: string): { readonly host: string; readonly port: string } {
  const colon = endpoint.lastIndexOf(':');
  return { host: endpoint.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: endpoint.slice(colon + 1) };
}
