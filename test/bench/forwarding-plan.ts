/**
 * What a forwarding plan costs: `node test/bench/forwarding-plan.ts`. Services with one port and 10 endpoints each,
 * from scratch (CPU time of the main thread), and after one endpoint of one Service changed (elapsed time). Prints a
 * table and writes bench-results/forwarding-plan.json.
 */
import type { EndpointSlice } from '../../src/objects/types/discovery.generated.ts';
import { keyOf } from '../../src/objects/meta.ts';
import type { Service } from '../../src/objects/types/core.generated.ts';
import { ForwardingPlanner, planForwarding } from '../../src/network/forwarding/planner.ts';
import type { ForwardingNode, ForwardingOptions } from '../../src/network/forwarding/node-plan.ts';
import { parseAddress, parseCidr } from '../../src/objects/address.ts';
import { report, type Row } from './report.ts';

const endpointCount = 10;
const nodeCount = 50;
const runs = 9;
const changeCount = 500;

const node: ForwardingNode = {
  name: 'node-0',
  labels: { 'topology.kubernetes.io/zone': 'a' },
  primaryAddresses: [parseAddress('192.0.2.1')].filter((address) => address !== undefined),
  interfaceAddresses: [parseAddress('192.0.2.1')].filter((address) => address !== undefined),
};
const options: ForwardingOptions = {
  families: ['IPv4'],
  masqueradeAll: false,
  nodePortAddresses: 'primary',
  serviceCIDRs: [parseCidr('10.96.0.0/12')].filter((cidr) => cidr !== undefined),
  podDetection: {
    by: 'cidr',
    cidrs: [parseCidr('10.128.0.0/9')].filter((cidr) => cidr !== undefined),
  },
  allowExternalIPs: true,
};

function service(i: number): Service {
  const clusterIP = `10.96.${(i >> 8) & 255}.${i & 255}`;
  return {
    metadata: { namespace: 'bench', name: `svc-${i}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ports: [{ name: 'http', protocol: 'TCP', port: 80, targetPort: 8080 }],
    },
    status: {},
  };
}

/** @param generation changes the address of one endpoint. */
function slice(i: number, generation: number): EndpointSlice {
  return {
    metadata: {
      namespace: 'bench',
      name: `svc-${i}-abcde`,
      labels: { 'kubernetes.io/service-name': `svc-${i}` },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    endpoints: Array.from({ length: endpointCount }, (_, j) => {
      const n = i * endpointCount + j;
      const moved = j === 0 ? generation % 64 : 0;
      return {
        addresses: [`10.${128 + (n >> 16) + moved}.${(n >> 8) & 255}.${n & 255}`],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: `node-${n % nodeCount}`,
        zone: n % 2 === 0 ? 'a' : 'b',
      };
    }),
  };
}

const rows: Row[] = [];
for (const count of [1000, 10_000]) {
  const services = Array.from({ length: count }, (_, i) => service(i));
  const slices = services.map((_, i) => slice(i, 0));
  const scratch: number[] = [];
  for (let run = 0; run < runs; run++) {
    const before = process.threadCpuUsage();
    planForwarding(services, slices, node, options);
    const { user, system } = process.threadCpuUsage(before);
    scratch.push(user + system);
  }
  const planner = new ForwardingPlanner(node, options);
  planner.apply(
    services.map((service, i) => ({ key: keyOf(service), service, slices: slices.slice(i, i + 1) })),
  );
  const one: number[] = [];
  for (let n = 1; n <= changeCount; n++) {
    const i = (n * 7919) % count;
    const changed = services[i];
    if (changed === undefined) continue;
    const input = { key: keyOf(changed), service: changed, slices: [slice(i, n)] };
    const start = performance.now();
    planner.apply([input]);
    one.push((performance.now() - start) * 1000);
  }
  const name = `${count.toLocaleString('en-US')} Services × ${endpointCount}`;
  const [first] = scratch;
  rows.push(
    { name: `${name}: from scratch, first run`, value: (first ?? 0) / 1000, unit: 'ms' },
    {
      name: `${name}: from scratch, median`,
      value: quantile(scratch, 0.5) / 1000,
      unit: 'ms',
      ...budget(count, '≤ 150 ms'),
    },
    {
      name: `${name}: one change, median`,
      value: quantile(one, 0.5),
      unit: 'µs',
      ...budget(count, '≤ 1,000 µs'),
    },
    { name: `${name}: one change, p99`, value: quantile(one, 0.99), unit: 'µs' },
  );
}
await report('forwarding-plan', rows);

function budget(count: number, text: string): { budget?: string } {
  return count === 10_000 ? { budget: text } : {};
}

function quantile(values: readonly number[], q: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * q)] ?? 0;
}
