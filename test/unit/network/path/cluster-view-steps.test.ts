import { beforeAll, describe, expect, it } from 'vitest';
import { FlowNames } from '../../../../src/network/flows/names.ts';
import { type CountedDenial, FlowTracker } from '../../../../src/network/flows/tracker.ts';
import { type ClusterObjects, ClusterView } from '../../../../src/network/path/cluster-view.ts';
import { reachSteps } from '../../../../src/network/path/reach.ts';
import { cpuMs, slowness, threadMs } from '../../../support/reference-time.ts';
import { options } from '../forwarding/fixtures.ts';

/** What is asked of a large cluster is done in slices of time: each step has to be short. */

const counts = { nodes: 200, namespaces: 100, pods: 20_000, services: 5000, policies: 1000 };
/** Milliseconds of CPU that a step may take: a slice goes on for 20 more at most. */
const stepMs = 50;

const list = <T>(count: number, each: (index: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, index) => each(index));
const namespaceOf = (index: number): string => `ns-${index % counts.namespaces}`;
const nodeOf = (index: number): string => `node-${index % counts.nodes}`;
const podAddress = (index: number): string => `10.1.${index >> 8}.${index & 255}`;
const serviceAddress = (index: number): string => `10.96.${index >> 8}.${index & 255}`;

const objects: ClusterObjects = {
  namespaces: list(counts.namespaces, (index) => ({
    ...{ metadata: { name: namespaceOf(index), labels: {} }, spec: {}, status: {} },
  })),
  nodes: list(counts.nodes, (index) => ({
    metadata: { name: nodeOf(index) },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address: `192.0.2.${index}` }] },
  })),
  pods: list(counts.pods, (index) => ({
    metadata: { namespace: namespaceOf(index), name: `web-${index}`, labels: { app: `web-${index % 5000}` } },
    spec: {
      nodeName: nodeOf(index),
      containers: [{ name: 'main', ports: [{ containerPort: 8080, protocol: 'TCP' }] }],
    },
    status: { phase: 'Running', podIP: podAddress(index), podIPs: [{ ip: podAddress(index) }] },
  })),
  services: list(counts.services, (index) => ({
    metadata: { namespace: namespaceOf(index), name: `web-${index}` },
    spec: {
      ...{ type: 'ClusterIP', clusterIP: serviceAddress(index), clusterIPs: [serviceAddress(index)] },
      ports: [{ name: '', port: 80, targetPort: 8080, protocol: 'TCP' }],
    },
    status: {},
  })),
  slices: list(counts.services, (index) => ({
    metadata: {
      ...{ namespace: namespaceOf(index), name: `web-${index}` },
      labels: { 'kubernetes.io/service-name': `web-${index}` },
    },
    addressType: 'IPv4',
    ports: [{ name: '', protocol: 'TCP', port: 8080 }],
    endpoints: [0, 1, 2, 3].map((part) => ({
      addresses: [podAddress(index + part * counts.services)],
      conditions: { ready: true },
    })),
  })),
  policies: list(counts.policies, (index) => ({
    metadata: { namespace: namespaceOf(index), name: `from-${index}` },
    spec: {
      ...{ podSelector: { matchLabels: { app: `web-${index}` } }, policyTypes: ['Ingress'] },
      ingress: [{ from: [{ podSelector: { matchLabels: { app: `web-${index + counts.namespaces}` } } }] }],
    },
  })),
  firewalls: list(counts.namespaces, (index) => ({
    metadata: { namespace: namespaceOf(index), name: 'default' },
    spec: { egress: [{ type: 'Deny', to: { cidrSelector: '0.0.0.0/0' } }] },
    status: {},
  })),
};

/**
 * Does all of it, three times: a collection of garbage is of no step, and falls into the longest one of some times.
 *
 * @returns what it makes, and milliseconds of CPU of its longest step on the reference machine, the least of the three.
 */
function longestOf<T>(begin: () => Generator<undefined, T, undefined>): {
  readonly made: T;
  readonly ms: number;
} {
  const once = () => {
    const slownessBefore = slowness();
    const steps = begin();
    let longest = 0;
    for (;;) {
      const before = threadMs();
      const { done, value } = steps.next();
      longest = Math.max(longest, threadMs() - before);
      if (done === true) return { made: value, ms: longest / Math.max(slownessBefore, slowness()) };
    }
  };
  const [first, ...others] = [once(), once(), once()];
  return others.reduce((least, each) => (each.ms < least.ms ? each : least), first);
}

describe('a cluster of 20,000 Pods and 5,000 Services', () => {
  let view: ClusterView;
  beforeAll(() => {
    view = new ClusterView(objects, options());
  });

  it('is made ready for questions in short steps, and then as at once', () => {
    const { made, ms } = longestOf(() => ClusterView.steps(objects, options()));
    expect(ms).toBeLessThan(stepMs);
    const addresses = [...objects.pods.keys()].map(podAddress);
    expect(addresses.every((address) => made.podAt(address) === view.podAt(address))).toBe(true);
    expect(made.podAt(podAddress(7))).toBe(objects.pods[7]);
  });

  it('has the plan of a node made in short steps, once', () => {
    const [node] = objects.nodes;
    if (node === undefined) throw new Error('there is no node');
    const { made, ms } = longestOf(() => new ClusterView(objects, options()).forwardingPlanSteps(node));
    expect(ms).toBeLessThan(stepMs);
    expect(made.services.size).toBe(counts.services);
    const { made: known } = longestOf(() => view.forwardingPlanSteps(node));
    expect(view.forwardingPlan(node)).toBe(known);
  });

  it('says who reaches whom in short steps', () => {
    const question = { namespace: 'ns-1', protocol: 'TCP', by: 'workload', most: 60 } as const;
    const { made, ms } = longestOf(() => reachSteps(view, question));
    expect(ms).toBeLessThan(stepMs);
    expect(made.total.sources).toBeGreaterThan(counts.pods / counts.namespaces);
  });

  it('names the packets that were denied, and connections, as they come', () => {
    const names = new FlowNames(view, []);
    let told = 0;
    const tracker = new FlowTracker({ names: () => names, tell: () => told++ });
    const [node] = objects.nodes;
    if (node !== undefined) view.forwardingPlan(node);
    // All that one turn of the event loop takes of a node's sets.
    const denials = list(100, (index): CountedDenial => {
      const isEgress = index % 2 === 0;
      const source = podAddress(isEgress ? index * counts.nodes : index);
      const destination = isEgress ? `198.51.100.${index}` : podAddress(index * counts.nodes);
      return {
        ...{ node: 'node-0', by: 'policies', outcome: 'dropped', protocol: 'TCP', port: 8080 },
        ...{ source, destination, packets: 1, lastMs: 1 },
        sentTo: isEgress ? destination : serviceAddress(index),
      };
    });
    const taken = cpuMs(() => {
      for (const each of denials) tracker.denied(each);
    });
    expect(taken).toBeLessThan(stepMs);
    // More than a chunk of conntrack's output has.
    const connecting = cpuMs(() => {
      for (const index of Array(500).keys()) {
        const [source, port] = [podAddress((index % 100) * counts.nodes), 1000 + index];
        const [destination, endpoint] = [serviceAddress(index), podAddress(index)];
        tracker.saw(
          'node-0',
          {
            ...{ event: 'new', protocol: 'TCP', isReplied: true, ageSeconds: 0 },
            original: { source, sourcePort: port, destination, destinationPort: 80 },
            reply: { source: endpoint, sourcePort: 8080, destination: source, destinationPort: port },
          },
          1,
        );
      }
    });
    expect(told).toBe(600);
    expect(connecting).toBeLessThan(stepMs);
  });
});
