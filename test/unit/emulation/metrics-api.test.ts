import { describe, expect, it } from 'vitest';
import { nodeMetrics, podMetrics } from '../../../src/emulation/metrics-api.ts';
import type { Container, Node, Pod } from '../../../src/objects/types/core.generated.ts';

const now = Date.parse('2026-11-23T12:00:00Z');

function pod(containers: Container[], annotations: Record<string, string> = {}): Pod {
  return { metadata: { name: 'a', namespace: 'ns', annotations }, spec: { containers }, status: {} };
}

const asking: Container = { name: 'asks', resources: { requests: { cpu: '500m', memory: '1Gi' } } };

describe('the simulated usage', () => {
  it('of containers follows their requests, and annotations first', () => {
    const usages = (each: Pod) => podMetrics(each, now).containers;
    expect(usages(pod([asking, { name: 'idle' }]))).toEqual([
      { name: 'asks', usage: { cpu: '50m', memory: '512Mi' } },
      { name: 'idle', usage: { cpu: '1m', memory: '4Mi' } },
    ]);
    const annotations = { 'servicenet.dev/cpu-usage': '2', 'servicenet.dev/memory-usage': 'much' };
    expect(usages(pod([asking], annotations))).toEqual([
      { name: 'asks', usage: { cpu: '2', memory: '512Mi' } },
    ]);
  });

  it('of Pods is named and dated', () => {
    expect(podMetrics(pod([]), now)).toMatchObject({
      ...{ kind: 'PodMetrics', apiVersion: 'metrics.k8s.io/v1beta1' },
      metadata: { name: 'a', namespace: 'ns', creationTimestamp: '2026-11-23T12:00:00Z' },
      timestamp: '2026-11-23T12:00:00Z',
    });
  });

  it('of nodes is that of their Pods and of the system', () => {
    const node: Node = { metadata: { name: 'n' }, spec: {}, status: {} };
    expect(nodeMetrics(node, [pod([asking]), pod([asking])], now).usage).toEqual({
      cpu: '150m',
      memory: '1280Mi',
    });
  });
});
