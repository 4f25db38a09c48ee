import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { endpoints, endpointSlices, leases } from '../../src/client/resources.ts';
import { warnOfConflicts } from '../../src/commands/controller.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

const now = Date.parse('2026-06-01T12:00:00Z');
const family = ['endpoints-controller', 'endpointslice-controller', 'namespace-controller'];

describe('another writer of the same objects', () => {
  let server: TestServer;
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => lines.push(line) });
  const look = (chosen: readonly string[], at = now): Promise<readonly string[]> =>
    warnOfConflicts(server.client, chosen, at, log);

  beforeAll(async () => {
    server = await startApiServer();
  });
  afterAll(() => server.stop());

  it('is warned of while it is alive and writes what we would write', async () => {
    await new ResourceClient(server.client, endpoints).create(
      { metadata: { name: 'web', namespace: 'default' }, subsets: [{ addresses: [{ ip: '10.0.0.1' }] }] },
      { fieldManager: 'kube-controller-manager' },
    );
    expect(await look(family), 'no controller is alive').toEqual([]);
    await new ResourceClient(server.client, leases).create({
      metadata: { name: 'kube-controller-manager', namespace: 'kube-system' },
      spec: { holderIdentity: 'cp_1', leaseDurationSeconds: 15, renewTime: '2026-06-01T11:59:58.000000Z' },
    });
    expect(await look(family)).toEqual(['endpoints-controller']);
    expect(lines.join('')).toContain(
      'start its kube-controller-manager with --controllers=*,-endpoints-controller',
    );
    expect(await look(['endpointslice-controller'])).toEqual([]);
    // In k3s it is part of one program with all the rest.
    await new ResourceClient(server.client, endpointSlices).create(
      {
        metadata: {
          name: 'web-1',
          namespace: 'default',
          labels: { 'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io' },
        },
        addressType: 'IPv4',
        endpoints: [],
        ports: [],
      },
      { fieldManager: 'k3s' },
    );
    expect(await look(family)).toEqual(['endpoints-controller', 'endpointslice-controller']);
    expect(lines.join('')).toContain('kube-controller-manager, k3s writes the same objects');
    expect(await look(['endpointslice-mirroring-controller']), 'nothing mirrors').toEqual([]);
    expect(await look(['service-allocation-controller'])).toEqual([]);
    expect(await look(family, now + 600_000), 'dead for ten minutes').toEqual([]);
  });
});
