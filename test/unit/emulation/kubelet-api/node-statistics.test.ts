import { describe, expect, test } from 'vitest';
import { nodeAnswer, type NodeState } from '../../../../src/emulation/kubelet-api/node-statistics.ts';
import { recordAt } from '../../../../src/objects/json.ts';

const started = '2026-01-01T00:00:00Z';
const startedMs = Date.parse(started);

/** A node of four cores for `seconds`, with a Pod that uses a quarter of one and 100 MiB, and one that waits. */
function state(seconds: number): NodeState {
  const annotations = { 'servicenet.dev/cpu-usage': '250m', 'servicenet.dev/memory-usage': '100Mi' };
  const metadata = { name: 'web', namespace: 'shop', uid: 'u1', annotations };
  const containers = [{ name: 'main', image: 'nginx' }];
  return {
    node: {
      metadata: { name: 'node-1', creationTimestamp: started },
      spec: { podCIDR: '10.244.0.0/24' },
      status: { capacity: { cpu: '4', memory: '8Gi', pods: '110' } },
    },
    pods: [
      {
        metadata,
        spec: { containers, nodeName: 'node-1' },
        status: {
          phase: 'Running',
          startTime: started,
          containerStatuses: [
            {
              ...{ name: 'main', image: 'nginx', imageID: '', ready: true, restartCount: 0 },
              ...{ containerID: 'servicenet://abc', state: { running: { startedAt: started } } },
            },
          ],
        },
      },
      {
        metadata: { name: 'waiting', namespace: 'shop', uid: 'u2' },
        spec: { containers, nodeName: 'node-1' },
        status: { phase: 'Pending' },
      },
    ],
    now: startedMs + seconds * 1000,
  };
}

const text = (path: string, seconds = 60): string => nodeAnswer(path, state(seconds))?.body ?? '';
const json = (path: string, seconds = 60): unknown => JSON.parse(text(path, seconds));

/** The value of a sample, by its name and the labels that it must have. */
function sample(metrics: string, name: string, labels: Record<string, string> = {}): number {
  const line = metrics
    .split('\n')
    .find(
      (each) =>
        new RegExp(`^${name}(\\{| )`).test(each) &&
        Object.entries(labels).every(([label, value]) => each.includes(`${label}="${value}"`)),
    );
  return Number(line?.split(' ').at(-1));
}

describe('a kubelet says of its node', () => {
  test('its Pods, and those that run', () => {
    const names = (path: string) => recordAt(json(path))['items'];
    expect(names('/pods')).toMatchObject([{ metadata: { name: 'web' } }, { metadata: { name: 'waiting' } }]);
    expect(names('/runningpods/')).toMatchObject([{ metadata: { name: 'web' } }]);
  });

  test('a summary whose counters grow with the time', () => {
    const mebibyte = 1024 * 1024;
    expect(json('/stats/summary')).toMatchObject({
      node: {
        nodeName: 'node-1',
        cpu: { usageNanoCores: 300_000_000, usageCoreNanoSeconds: 18_000_000_000 },
        memory: { workingSetBytes: 356 * mebibyte, availableBytes: (8192 - 356) * mebibyte },
      },
      pods: [
        {
          podRef: { name: 'web', namespace: 'shop', uid: 'u1' },
          startTime: started,
          containers: [
            {
              name: 'main',
              cpu: { usageNanoCores: 250_000_000, usageCoreNanoSeconds: 15_000_000_000 },
              memory: { workingSetBytes: 100 * mebibyte },
            },
          ],
          cpu: { usageNanoCores: 250_000_000 },
        },
      ],
    });
    expect(json('/stats/summary', 120)).toMatchObject({
      node: { cpu: { usageCoreNanoSeconds: 36_000_000_000 } },
    });
  });

  test('metrics under the names of cAdvisor and of a metrics-server', () => {
    const cadvisor = text('/metrics/cadvisor');
    const labels = { container: 'main', namespace: 'shop', pod: 'web', image: 'nginx' };
    expect(sample(cadvisor, 'container_cpu_usage_seconds_total', { ...labels, cpu: 'total' })).toBe(15);
    expect(sample(cadvisor, 'container_memory_working_set_bytes', labels)).toBe(100 * 1024 * 1024);
    expect(sample(cadvisor, 'machine_cpu_cores')).toBe(4);
    const resource = text('/metrics/resource');
    expect(sample(resource, 'node_cpu_usage_seconds_total')).toBe(18);
    expect(sample(resource, 'pod_memory_working_set_bytes', { pod: 'web' })).toBe(100 * 1024 * 1024);
    expect(sample(text('/metrics'), 'kubelet_running_pods')).toBe(1);
    // Each family is described once.
    for (const metrics of [cadvisor, resource]) {
      const types = metrics.split('\n').filter((line) => line.startsWith('# TYPE '));
      expect(new Set(types).size).toBe(types.length);
    }
  });

  test('its configuration, and nothing elsewhere', () => {
    expect(json('/configz')).toMatchObject({ kubeletconfig: { kind: 'KubeletConfiguration', maxPods: 110 } });
    expect(text('/healthz/ping')).toBe('ok');
    for (const path of ['/', '/nothing', '/pods/x', '/exec'])
      expect(nodeAnswer(path, state(1))).toBeUndefined();
  });
});
