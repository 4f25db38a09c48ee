import { describe, expect, test } from 'vitest';
import {
  nodeRow,
  podRow,
  sliceRow,
  workloadKey,
  workloadOf,
  workloadRow,
} from '../../../../src/view/rows/pods.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';

function pod(status: Pod['status'], metadata: Pod['metadata'] = {}): Pod {
  return { metadata: { namespace: 'shop', name: 'web-1', ...metadata }, spec: {}, status };
}

const ready = (status: 'True' | 'False') => [
  { type: 'Ready', status, reason: 'ContainersNotReady', message: 'c' },
];

describe('a Pod', () => {
  test.each<[string, Pod, string, string | undefined]>([
    ['is ready', pod({ phase: 'Running', conditions: ready('True') }), 'ready', undefined],
    ['runs', pod({ phase: 'Running', conditions: ready('False') }), 'not ready', 'ContainersNotReady'],
    ['starts', pod({ phase: 'Pending' }), 'starting', undefined],
    ['has ended', pod({ phase: 'Succeeded', conditions: ready('False') }), 'completed', undefined],
    ['has failed', pod({ phase: 'Failed', reason: 'Evicted', message: 'full' }), 'failed', 'Evicted'],
    [
      'is being deleted',
      pod({ phase: 'Running', conditions: ready('False') }, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      'terminating',
      undefined,
    ],
    [
      'fails again and again',
      pod({ phase: 'Running', containerStatuses: [waiting('CrashLoopBackOff')], conditions: ready('False') }),
      'not ready',
      'CrashLoopBackOff',
    ],
    [
      'makes its containers',
      pod({ phase: 'Pending', containerStatuses: [waiting('ContainerCreating')] }),
      'starting',
      undefined,
    ],
    [
      'finds no node',
      pod({
        phase: 'Pending',
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
      }),
      'starting',
      'Unschedulable',
    ],
  ])('%s', (_, object, state, reason) => {
    const row = podRow(object, [], undefined);
    expect({ state: row.state, reason: row.trouble?.reason }).toEqual({ state, reason });
  });

  test('that is not ready has the words of its newest Warning, and one that is ready none', () => {
    const warning = { reason: 'Unhealthy', message: 'probe failed: 503' };
    expect(podRow(pod({ phase: 'Running', conditions: ready('False') }), [], warning).trouble).toEqual(
      warning,
    );
    expect(podRow(pod({ phase: 'Running', conditions: ready('True') }), [], warning).trouble).toBeUndefined();
  });
});

function waiting(reason: string): NonNullable<Pod['status']['containerStatuses']>[number] {
  return {
    name: 'c',
    ready: false,
    restartCount: 2,
    image: 'i',
    imageID: '',
    state: { waiting: { reason } },
  };
}

const owned = (kind: string, name: string, labels: Record<string, string> = {}): Pod =>
  pod({}, { labels, ownerReferences: [{ apiVersion: 'v1', kind, name, uid: 'u', controller: true }] });

test.each<[string, Pod, string]>([
  [
    'of a Deployment',
    owned('ReplicaSet', 'cart-57f4', { 'pod-template-hash': '57f4' }),
    'deployment/shop/cart',
  ],
  ['of a ReplicaSet alone', owned('ReplicaSet', 'cart'), 'replicaset/shop/cart'],
  [
    'of a ReplicaSet whose name has another end',
    owned('ReplicaSet', 'cart-1', { 'pod-template-hash': '57f4' }),
    'replicaset/shop/cart-1',
  ],
  ['of a StatefulSet', owned('StatefulSet', 'db'), 'statefulset/shop/db'],
  ['of nobody', pod({}), 'pod/shop/web-1'],
])('the workload of a Pod %s', (_, object, key) => {
  expect(workloadKey(workloadOf(object))).toBe(key);
});

test('a workload counts Pods that have not ended', () => {
  const pods = [
    pod({ phase: 'Running', conditions: ready('True') }),
    pod({ phase: 'Pending' }),
    pod({ phase: 'Failed' }),
  ];
  const name = { kind: 'Job', namespace: 'shop', name: 'j' };
  expect(workloadRow(name, pods)).toEqual({ key: 'job/shop/j', ...name, pods: 2, ready: 1 });
});

test('a slice: conditions that are absent count as Kubernetes has it', () => {
  const row = sliceRow({
    metadata: { namespace: 'shop', name: 's', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [
      { name: 'http', port: 8080 },
      { port: 53, protocol: 'UDP' },
    ],
    endpoints: [
      {
        addresses: ['10.0.0.1'],
        targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-1' },
        hints: { forZones: [{ name: 'a' }] },
      },
      {
        addresses: ['10.0.0.2'],
        conditions: { ready: false, serving: true, terminating: true },
        targetRef: { kind: 'Node', name: 'n' },
      },
    ],
  });
  expect(row).toMatchObject({
    key: 'shop/s',
    service: 'shop/web',
    ports: ['http 8080/TCP', '53/UDP'],
    managedBy: '',
  });
  expect(row.endpoints).toEqual([
    { address: '10.0.0.1', pod: 'shop/web-1', hints: ['a'], ready: true, serving: true, terminating: false },
    { address: '10.0.0.2', ready: false, serving: true, terminating: true },
  ]);
});

test('a node that is not ready says so in its words', () => {
  const conditions = [
    {
      type: 'Ready',
      status: 'Unknown' as const,
      message: 'no heartbeat',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ];
  const node = {
    metadata: { name: 'n' },
    spec: { unschedulable: true },
    status: {
      conditions,
      addresses: [
        { type: 'Hostname', address: 'n' },
        { type: 'InternalIP', address: '10.1.0.1' },
      ],
    },
  };
  expect(nodeRow(node, 3)).toMatchObject({
    ...{ isReady: false, isCordoned: true, pods: 3, addresses: ['10.1.0.1'], since: '2026-01-01T00:00:00Z' },
    trouble: { reason: 'NodeNotReady', message: 'no heartbeat' },
  });
});
