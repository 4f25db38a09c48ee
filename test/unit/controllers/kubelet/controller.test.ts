import { expect, it } from 'vitest';
import { SharedInformer } from '../../../../src/client/informers/shared-informer.ts';
import { nodes as nodesResource, pods as podsResource } from '../../../../src/client/resources.ts';
import type { Transport } from '../../../../src/client/transport.ts';
import { kubeletController } from '../../../../src/controllers/kubelet/controller.ts';
import { isRecord } from '../../../../src/objects/json.ts';
import type { Pod } from '../../../../src/objects/types/core.generated.ts';
import { runnableOf } from '../../../../src/runtime/key-loop.ts';
import { TimeSlices } from '../../../../src/telemetry/time-slice.ts';
import { controllerContext } from '../../../support/controller-context.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { until } from '../../../support/until.ts';
import { node, pod } from '../workloads/samples.ts';

const host = {
  ...node('n1', {}, { podCIDRs: ['10.244.0.0/30'] }),
  status: { addresses: [{ type: 'InternalIP', address: '172.18.0.2' }] },
};

function withAddress(podIP: string): Pod {
  const made = pod('old');
  return { ...made, status: { ...made.status, podIP, podIPs: [{ ip: podIP }] } };
}

/** The pod CIDR has two addresses. */
it.each([
  { first: 'Pods', used: '10.244.0.1', free: '10.244.0.2' },
  { first: 'Pods', used: '10.244.0.2', free: '10.244.0.1' },
  { first: 'nodes', used: '10.244.0.1', free: '10.244.0.2' },
  { first: 'nodes', used: '10.244.0.2', free: '10.244.0.1' },
])('gives no address that a Pod had before the start ($first first, $used used)', async (each) => {
  const given: unknown[] = [];
  const transport: Transport = {
    server: 'none',
    request: (method, path, { body } = {}) => {
      const answer = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'new', namespace: 'ns' },
        status: {},
      };
      const status = isRecord(body) ? body['status'] : undefined;
      if (method === 'PATCH' && path.endsWith('/pods/new/status') && isRecord(status)) {
        given.push(status['podIP']);
      }
      return Promise.resolve({ status: 200, headers: {}, bytes: Buffer.alloc(0), json: () => answer });
    },
    stream: () => Promise.reject(new Error('no watch is expected')),
    close: () => Promise.resolve(),
  };
  const context = controllerContext(new FakeClock(), transport);
  const runnable = runnableOf(kubeletController({ awaitsNetworks: false }), context);
  const pods = context.informers.informer(podsResource);
  const nodes = context.informers.informer(nodesResource);
  if (!(pods instanceof SharedInformer) || !(nodes instanceof SharedInformer))
    throw new Error('other caches');
  const waiting: Pod = { ...pod('new'), status: { phase: 'Pending' } };
  const listPods = async (): Promise<void> => {
    for (const one of [withAddress(each.used), waiting]) pods.upsert(one, true);
    await pods.listed(new TimeSlices());
  };
  const listNodes = async (): Promise<void> => {
    nodes.upsert(structuredClone(host), true);
    await nodes.listed(new TimeSlices());
  };
  const stop = new AbortController();
  const running = runnable.run(stop.signal);
  for (const list of each.first === 'Pods' ? [listPods, listNodes] : [listNodes, listPods]) await list();
  await until(() => given.length > 0);
  stop.abort();
  await running;
  expect(given[0]).toBe(each.free);
});
