import { describe, expect, it } from 'vitest';
import { AnswerRates } from '../../../src/emulation/kubelet-api/node-statistics.ts';
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

  it('of the CPU follows what a container answers, up to its limit', () => {
    const limited: Container = {
      ...asking,
      resources: { ...asking.resources, limits: { cpu: '1', memory: '1Gi' } },
    };
    const cpuAt = (rate: number, each = pod([limited])) =>
      podMetrics(each, now, () => rate).containers.map(({ usage }) => usage['cpu']);
    expect([cpuAt(0), cpuAt(1), cpuAt(20), cpuAt(1000)]).toEqual([['50m'], ['70m'], ['450m'], ['1']]);
    expect(cpuAt(20, pod([limited], { 'servicenet.dev/cpu-usage': '2' }))).toEqual(['2']);
    expect(podMetrics(pod([limited]), now, () => 1000).containers[0]?.usage['memory']).toBe('512Mi');
  });

  it('counts answers of a container over a window that goes on', () => {
    let nowMs = 100_000;
    const rates = new AnswerRates(15, () => nowMs);
    rates.count([
      ['shop/web', 30, 'main'],
      ['shop/web', 15, 'side'],
    ]);
    nowMs += 5000;
    rates.count([['shop/web', 15, 'main']]);
    expect(rates.perSecond('shop/web', 'main')).toBe(3);
    expect(rates.perSecond('shop/web', 'side')).toBe(1);
    expect(rates.perSecond('shop/other', 'main')).toBe(0);
    nowMs += 10_000;
    expect(rates.perSecond('shop/web', 'main')).toBe(1);
    nowMs += 5000;
    expect(rates.perSecond('shop/web', 'main')).toBe(0);
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
