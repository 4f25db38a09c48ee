/** The cases of cluster-network-operator's connection_checker_test.go: which entries and outages a check leads to. */
import { describe, expect, test } from 'vitest';
import {
  logEntriesOf,
  goDuration,
  hostAndPort,
  outagesAfter,
  statusAfter,
} from '../../../../../src/platforms/openshift/connectivity-check/status.ts';
import type {
  CheckEntry,
  ConnectivityCheckStatus,
  OutageEntry,
} from '../../../../../src/objects/types/openshift.ts';

const check = { name: 'test-to-target-endpoint', targetEndpoint: 'host:port' };
const second = (at: number): number => Date.UTC(2000, 0, 1, 0, 0, at);
const time = (at: number): string => `2000-01-01T00:00:${String(at).padStart(2, '0')}Z`;
const action = (at: number) => ({ start: second(at), latency: 1 });

const entry = (at: number, success: boolean, reason: string, message: string): CheckEntry => ({
  ...{ time: time(at), success, reason, message: `target-endpoint: ${message}`, latency: '1ms' },
});
const connected = (at: number): CheckEntry =>
  entry(at, true, 'TCPConnect', 'tcp connection to host:port succeeded');
const resolved = (at: number): CheckEntry =>
  entry(at, true, 'DNSResolve', 'resolved host name host successfully');
const failed = (at: number, why = 'connect tcp: test error'): CheckEntry =>
  entry(at, false, 'TCPConnectError', `failed to establish a TCP connection to host:port: ${why}`);
const unresolved = (at: number): CheckEntry =>
  entry(at, false, 'DNSError', 'failure looking up host host: lookup host: test error');

describe('the entries', () => {
  test.each([
    ['of a connection', { connect: action(0) }, [connected(0)]],
    ['of a name and a connection', { dns: action(0), connect: action(1) }, [resolved(0), connected(1)]],
    ['of a name that is not found', { dns: action(0), error: 'lookup host: test error' }, [unresolved(0)]],
    ['of no connection', { connect: action(0), error: 'connect tcp: test error' }, [failed(0)]],
    [
      'of a name without a connection',
      { dns: action(0), connect: action(1), error: 'connect tcp: test error' },
      [resolved(0), failed(1)],
    ],
  ])('%s', (_what, result, entries) => {
    expect(logEntriesOf(check, result)).toEqual(entries);
  });

  test('begin with what is behind the last -to- of the name', () => {
    const name = 'from-a-to-b-to-c';
    expect(logEntriesOf({ ...check, name }, { connect: action(0) })[0]?.message).toMatch(/^c: tcp/);
    expect(logEntriesOf({ ...check, name: 'plain' }, { connect: action(0) })[0]?.message).toMatch(
      /^plain: tcp/,
    );
  });

  test('are ten at most, the newest first', () => {
    let status: ConnectivityCheckStatus = {};
    for (let at = 0; at < 6; at++) {
      const result = { dns: action(2 * at), connect: action(2 * at + 1) };
      ({ status } = statusAfter(check, status, result, 'Process', second(at)));
    }
    expect(status.successes).toHaveLength(10);
    expect(status.successes?.slice(0, 3)).toEqual([connected(11), resolved(10), connected(9)]);
    expect(status.failures).toEqual([]);
  });
});

const detected = (at: number, change: Partial<OutageEntry> = {}): OutageEntry => ({
  ...{ start: time(at), message: `Connectivity outage detected at ${time(at)}` },
  ...{ startLogs: [failed(at)], endLogs: [failed(at)], ...change },
});
const over = (from: number, to: number): OutageEntry => ({ start: time(from), end: time(to) });
const words = ['zero', 'one', 'two', 'three', 'four', 'five'];
const five = words
  .slice(0, 5)
  .map((why, at) => failed(at, why))
  .toReversed();

describe('the outages', () => {
  type Case = readonly [
    what: string,
    given: readonly OutageEntry[],
    failure: CheckEntry | undefined,
    success: CheckEntry | undefined,
    expected: readonly OutageEntry[],
  ];
  const old = Array.from({ length: 20 }, (_, index) => over(48 - 2 * index, 49 - 2 * index));
  const restored = (from: number, to: number, rest: Partial<OutageEntry>): OutageEntry => ({
    ...{ start: time(from), end: time(to), message: `Connectivity restored after ${to - from}s`, ...rest },
  });
  const cases: readonly Case[] = [
    ['without entries', [], undefined, undefined, []],
    ['of a first success', [], undefined, connected(1), []],
    ['of a first failure', [], failed(1), undefined, [detected(1)]],
    ['without entries while one lasts', [{ start: time(0) }], undefined, undefined, [{ start: time(0) }]],
    ['without entries when one is over', [over(0, 1)], undefined, undefined, [over(0, 1)]],
    ['of a failure after successes', [], failed(3), connected(2), [detected(3)]],
    [
      'of a success while one lasts',
      [{ start: time(3), startLogs: [failed(3)] }],
      failed(3),
      connected(4),
      [restored(3, 4, { startLogs: [failed(3)], endLogs: [connected(4)] })],
    ],
    ['of a failure when one is over', [over(0, 1)], failed(5), connected(4), [detected(5), over(0, 1)]],
    [
      'of the same failure again',
      [detected(5)],
      failed(6),
      connected(4),
      [detected(5, { endLogs: [failed(6), failed(5)] })],
    ],
    [
      'of another failure',
      [detected(5)],
      failed(6, 'no route to host'),
      connected(4),
      [
        detected(5, {
          startLogs: [failed(6, 'no route to host'), failed(5)],
          endLogs: [failed(6, 'no route to host'), failed(5)],
        }),
      ],
    ],
    [
      'of a success: an earlier one stays',
      [{ start: time(5) }, over(0, 1)],
      failed(5),
      connected(6),
      [restored(5, 6, { endLogs: [connected(6)] }), over(0, 1)],
    ],
    [
      'with five entries: the beginning stays',
      [{ start: time(0), startLogs: five, endLogs: five }],
      failed(5, 'five'),
      undefined,
      [{ start: time(0), startLogs: five, endLogs: [failed(5, 'five'), ...five.slice(0, 4)] }],
    ],
    [
      'with five entries, when it is over',
      [{ start: time(0), startLogs: five, endLogs: five }],
      undefined,
      connected(5),
      [restored(0, 5, { startLogs: five, endLogs: [connected(5), ...five.slice(0, 4)] })],
    ],
    ['are twenty at most', old, failed(50), undefined, [detected(50), ...old.slice(0, 19)]],
  ];
  for (const [what, given, failure, success, expected] of cases) {
    test(what, () => {
      expect(outagesAfter(given, failure, success).outages).toEqual(expected);
    });
  }

  test('have an Event when they begin and when they end', () => {
    expect(outagesAfter([], failed(1), undefined).event).toEqual({
      ...{ type: 'Warning', reason: 'ConnectivityOutageDetected' },
      message: `Connectivity outage detected: ${failed(1).message ?? ''}`,
    });
    expect(outagesAfter([detected(1)], failed(2), undefined).event).toBeUndefined();
    expect(outagesAfter([detected(1)], failed(2), connected(4)).event).toEqual({
      ...{ type: 'Normal', reason: 'ConnectivityRestored' },
      message: `Connectivity restored after 3s: ${connected(4).message ?? ''}`,
    });
  });
});

describe('the condition', () => {
  const at = (now: number, error: string | undefined, status: ConnectivityCheckStatus) =>
    statusAfter(
      check,
      status,
      { connect: action(now), ...(error === undefined ? {} : { error }) },
      'PodNetwork',
      second(now),
    ).status;

  test('moves its time only when its status does', () => {
    const first = at(1, undefined, {});
    const again = at(2, undefined, first);
    const lost = at(3, 'gone', again);
    const longer = at(4, 'gone away', lost);
    const reachable = (status: ConnectivityCheckStatus) =>
      status.conditions?.find(({ type }) => type === 'Reachable');
    expect(reachable(again)).toEqual({
      ...{ type: 'Reachable', status: 'True', reason: 'TCPConnectSuccess' },
      ...{ message: connected(2).message, lastTransitionTime: time(1) },
    });
    expect(reachable(longer)).toEqual({
      ...{ type: 'Reachable', status: 'False', reason: 'TCPConnectError' },
      ...{ message: failed(4, 'gone away').message, lastTransitionTime: time(3) },
    });
    expect(longer.conditions?.[1]).toMatchObject({
      type: 'FromSourcePod',
      status: 'True',
      reason: 'PodNetwork',
    });
  });

  test('follows a failure within the same second: what is stored has whole seconds', () => {
    const reached = statusAfter(
      check,
      {},
      { connect: { start: second(1) + 200, latency: 1 } },
      'Process',
      second(1),
    );
    const result = { connect: { start: second(1) + 300, latency: 1 }, error: 'gone' };
    const { status } = statusAfter(check, reached.status, result, 'Process', second(1));
    expect(status.outages).toMatchObject([
      { start: time(1), message: 'Connectivity outage detected at 2000-01-01T00:00:01.3Z' },
    ]);
    expect(status.failures?.[0]?.time).toBe(time(1));
  });
});

test('durations are as Go prints them', () => {
  expect([0, 0.02, 1.5, 1000, 61_500, 3_600_000].map(goDuration)).toEqual([
    '0s',
    '20µs',
    '1.5ms',
    '1s',
    '1m1.5s',
    '1h0m0s',
  ]);
});

test('an IPv6 address of an endpoint is in brackets', () => {
  expect(hostAndPort('[fd00::1]:443')).toEqual({ host: 'fd00::1', port: '443' });
});
