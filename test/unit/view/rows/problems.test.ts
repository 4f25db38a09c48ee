import { expect, test } from 'vitest';
import type { PodRow, ServiceRow } from '../../../../src/view/rows/rows.ts';
import { policyRow } from '../../../../src/view/rows/pods.ts';
import { problemRows, type ProblemSources } from '../../../../src/view/rows/problems.ts';

const none: ProblemSources = {
  ...{ services: [], pods: [], nodes: [], pools: [], announcers: [], httpRules: [], policies: [] },
  findings: [],
  ...{ serviceSince: () => undefined, podSince: () => '2026-01-01T00:00:00Z' },
};

function pod(name: string, reason: string | undefined): PodRow {
  return {
    ...{ key: `shop/${name}`, namespace: 'shop', name, workload: 'deployment/shop/web', state: 'not ready' },
    ...{ addresses: [], hostNetwork: false, services: [], restarts: 0, labels: {}, created: '' },
    ...(reason === undefined ? {} : { trouble: { reason, message: 'waits' } }),
  };
}

test('Pods of a workload with one reason are one problem, whatever their order', () => {
  const pods = [
    pod('b', 'CrashLoopBackOff'),
    pod('a', 'CrashLoopBackOff'),
    pod('c', 'Unhealthy'),
    pod('d', undefined),
  ];
  const rows = problemRows({ ...none, pods });
  expect(rows).toEqual(problemRows({ ...none, pods: pods.toReversed() }).toReversed());
  expect(rows.map(({ key, about, message }) => [key, about.name, message])).toEqual([
    ['CrashLoopBackOff deployment/shop/web', 'a', 'waits, and 1 more Pod of deployment/shop/web'],
    ['Unhealthy deployment/shop/web', 'c', 'waits'],
  ]);
});

test('a Service that is well is none, and hosts of one Ingress with one reason are one', () => {
  const service: ServiceRow = {
    ...{
      key: 'shop/web',
      namespace: 'shop',
      name: 'web',
      type: 'ClusterIP',
      clusterIP: '',
      external: '',
      ports: '',
    },
    ...{ labels: {}, created: '' },
  };
  const source = { kind: 'Ingress', namespace: 'shop', name: 'web' };
  const rule = (host: string, reason: string) => ({
    ...{
      key: host,
      host,
      path: '/',
      match: 'Prefix' as const,
      source,
      insecure: 'Allow' as const,
      backends: [],
    },
    trouble: { reason, message: 'm' },
  });
  const httpRules = [
    rule('a', 'HostAlreadyClaimed'),
    rule('b', 'HostAlreadyClaimed'),
    rule('c', 'OtherIngressClass'),
  ];
  const created = '2026-01-01T00:00:00Z';
  const policies = [
    policyRow(
      { metadata: { namespace: 'shop', name: 'p', creationTimestamp: created }, spec: { podSelector: {} } },
      [],
    ),
  ];
  expect(problemRows({ ...none, services: [service], httpRules, policies }).map(({ key }) => key)).toEqual([
    'HostAlreadyClaimed Ingress shop/web',
    'SelectorMatchesNothing NetworkPolicy shop/p',
  ]);
});
