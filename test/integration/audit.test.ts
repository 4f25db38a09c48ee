import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import type { Transport } from '../../src/client/transport.ts';
import { nodePortRange } from '../../src/flags/shared.ts';
import { runControllers } from '../../src/controllers/run.ts';
import { auditCluster } from '../../src/controllers/service-allocation/cluster-audit.ts';
import { serviceAllocationController } from '../../src/controllers/service-allocation/controller.ts';
import type { JsonRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { fastClock } from '../support/fast-clock.ts';
import { type Exchange, ScriptedServer } from '../support/scripted-server.ts';

const nodePorts = nodePortRange('30000-30099');

function service(name: string, created: string, spec: JsonRecord): JsonRecord {
  const metadata = { name, namespace: 'ns', uid: name, resourceVersion: '1', creationTimestamp: created };
  return { metadata, spec: { ports: [], ...spec } };
}

function address(name: string, owner: string): JsonRecord {
  return {
    metadata: {
      name,
      uid: name,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' },
    },
    spec: { parentRef: { resource: 'services', namespace: 'ns', name: owner } },
  };
}

const shared = { type: 'NodePort', clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'] };
const stored: Readonly<Record<string, readonly unknown[]>> = {
  services: [
    service('old', '2026-01-01T00:00:00Z', { ...shared, ports: [{ port: 80, nodePort: 30_001 }] }),
    service('young', '2026-02-01T00:00:00Z', { ...shared, ports: [{ port: 80, nodePort: 30_001 }] }),
    service('far', '2026-01-01T00:00:00Z', { clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1'] }),
    service('text', '2026-01-01T00:00:00Z', { clusterIP: 'x', clusterIPs: ['x'] }),
    service('low', '2026-01-01T00:00:00Z', {
      ...shared,
      clusterIP: 'None',
      clusterIPs: ['None'],
      ports: [{ port: 80, nodePort: 80 }],
    }),
    // What no schema allows.
    5,
    null,
    { metadata: { name: 'no-spec', namespace: 'ns' } },
    service('types', '2026-01-01T00:00:00Z', {
      type: [],
      clusterIP: {},
      clusterIPs: 7,
      ports: { port: 1 },
      ipFamilies: 'x',
    }),
    service('members', 'never', {
      type: 'NodePort',
      clusterIPs: [null, 3],
      ports: [null, { nodePort: 'x' }],
      healthCheckNodePort: {},
    }),
  ],
  ipaddresses: [
    address('10.0.0.5', 'old'),
    address('10.0.0.8', 'gone'),
    address('10.0.0.9', 'old'),
    null,
    { metadata: { name: '10.0.0.10', labels: 3 }, spec: 4 },
  ],
  servicecidrs: [
    {
      metadata: { name: 'kubernetes', uid: 'c', resourceVersion: '1' },
      spec: { cidrs: ['10.0.0.0/24'] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
    { metadata: { name: 'odd' }, spec: { cidrs: [7, 'x'] }, status: 9 },
  ],
};

/** What kube-apiserver's repair loops say of them, but for what they did about it. */
const wrong = [
  [
    'IPAddress',
    '10.0.0.8',
    'IPAddressNotAllocated',
    'IPAddress 10.0.0.8 for Service ns/gone appears to have leaked',
  ],
  [
    'IPAddress',
    '10.0.0.9',
    'IPAddressWrongReference',
    'IPAddress 10.0.0.9 for Service ns/old has a wrong reference',
  ],
  ['Service', 'ns/far', 'ClusterIPNotAllocated', 'Cluster IP [IPv4]: 192.0.2.1 is not allocated'],
  [
    'Service',
    'ns/far',
    'ClusterIPOutOfRange',
    'Cluster IP [IPv4]: 192.0.2.1 is not within any configured Service CIDR; please recreate service',
  ],
  [
    'Service',
    'ns/low',
    'PortOutOfRange',
    'Port 80 is not within the port range 30000-30099; please recreate service',
  ],
  ['Service', 'ns/text', 'ClusterIPNotValid', 'Cluster IP x is not a valid IP; please recreate Service'],
  [
    'Service',
    'ns/young',
    'ClusterIPAlreadyAllocated',
    'Cluster IP [IPv4]:10.0.0.5 was assigned to multiple services; please recreate service',
  ],
  [
    'Service',
    'ns/young',
    'PortAlreadyAllocated',
    'Port 30001 was assigned to multiple services; please recreate service',
  ],
] as const;

let server: ScriptedServer;
let transport: Transport;
let eventLines: string[];
const stop = new AbortController();

function answer(exchange: Exchange): void {
  const plural = exchange.path.split('/').at(-1) ?? '';
  if (exchange.method === 'POST' && plural === 'events') {
    const event: unknown = JSON.parse(exchange.body);
    eventLines.push([textAt(event, 'type'), textAt(event, 'reason'), textAt(event, 'message')].join(' '));
    exchange.json(201, event);
  } else if (exchange.path === '/apis/networking.k8s.io/v1') {
    exchange.json(200, { resources: [{ name: 'ipaddresses' }, { name: 'servicecidrs' }] });
  } else if (exchange.query.has('sendInitialEvents')) exchange.status(400, 'BadRequest');
  else if (exchange.isWatch) exchange.watch();
  else exchange.json(200, { metadata: { resourceVersion: '10' }, items: stored[plural] ?? [] });
}

beforeEach(async () => {
  server = await ScriptedServer.start();
  transport = await createTransport({ kind: 'endpoint', url: server.url });
  eventLines = [];
  void server.serve(answer, stop.signal);
});

afterEach(async () => {
  await transport.close();
  await server.close();
});

describe('an audit', () => {
  it('names all that is wrong in kube-apiserver’s words, and passes over what no schema allows', async () => {
    const { findings } = await auditCluster(transport, nodePorts);
    expect(findings.map(({ kind, key, reason, message }) => [kind, key, reason, message])).toEqual(wrong);
  });

  it('goes on in the controller: one Event for each finding, and metrics by range and reason', async () => {
    const metrics = new Metrics();
    const running = runControllers({
      transport,
      controllers: [serviceAllocationController({ transport, allocation: 'server', nodePorts })],
      log: pino({ enabled: false }),
      metrics,
      clock: fastClock(40),
    });
    try {
      while (eventLines.length < wrong.length) await sleep(10);
      expect(eventLines.sort()).toEqual(
        wrong.map(([, , reason, message]) => `Warning ${reason} ${message}`).sort(),
      );
      // The last Event may be here before the look that it comes from has ended.
      let text = await metrics.scrape();
      while (!text.includes('result="requeue_after"')) {
        await sleep(10);
        text = await metrics.scrape();
      }
      for (const reason of new Set(wrong.map(([, , word]) => word))) {
        expect(text).toContain(`servicenet_allocation_findings{reason="${reason}"} 1\n`);
        expect(text).toContain(`servicenet_allocation_problems_total{reason="${reason}"} 1\n`);
      }
      expect(text).toMatch(/servicenet_allocator_allocated\{range="10\.0\.0\.0\/24"\} \d+\n/);
      expect(text).toContain('servicenet_allocator_allocated{range="30000-30099"} 1\n');
      expect(text).toContain('servicenet_allocator_available{range="30000-30099"} 99\n');
      expect(text).toMatch(/servicenet_cache_objects\{resource="services"\} \d+\n/);
      expect(text).toMatch(
        /servicenet_reconcile_total\{controller="service_allocation_audit",result="requeue_after"\} \d+\n/,
      );
    } finally {
      await running.stop();
    }
  });
});
