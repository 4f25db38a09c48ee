import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { ipAddresses, services } from '../../src/client/resources.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { commandLine } from '../support/command-line.ts';

let server: TestServer;
let folder: string;
let kubeconfig: string;

beforeEach(async () => {
  server = await startApiServer();
  folder = await mkdtemp(join(tmpdir(), 'servicenet-audit-'));
  kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, server.kubeconfig);
});

afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

describe('servicenet audit', () => {
  test('exits with 0 where all is well, and with 1 and a report where it is not', async () => {
    await new ResourceClient(server.client, services).create({
      metadata: { name: 'a', namespace: 'default' },
      spec: { ports: [{ port: 80 }] },
    });
    expect(await commandLine('audit', '--kubeconfig', kubeconfig)).toEqual({
      code: 0,
      output: '2 Services and 2 IPAddresses: no findings\n',
      errors: '',
    });

    await new ResourceClient(server.client, ipAddresses).create({
      metadata: { name: '10.96.0.9', labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' } },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'a' } },
    });
    const report = await commandLine('audit', '--kubeconfig', kubeconfig, '-o', 'json');
    const table = await commandLine('audit', '--kubeconfig', kubeconfig);
    expect([report.code, table.code]).toEqual([1, 1]);
    const cells = table.output.split('\n').map((line) => line.split(/ {3,}/));
    expect(cells.slice(0, 2)).toEqual([
      ['KIND', 'OBJECT', 'VALUE', 'REASON', 'MESSAGE'],
      [
        'IPAddress',
        '10.96.0.9',
        '10.96.0.9',
        'IPAddressWrongReference',
        'IPAddress 10.96.0.9 for Service default/a has a wrong reference',
      ],
    ]);
    expect(table.output).toContain('2 Services and 3 IPAddresses: 1 findings\n');
    expect(JSON.parse(report.output)).toEqual({
      services: 2,
      addresses: 3,
      findings: [
        {
          kind: 'IPAddress',
          key: '10.96.0.9',
          value: '10.96.0.9',
          reason: 'IPAddressWrongReference',
          message: 'IPAddress 10.96.0.9 for Service default/a has a wrong reference',
        },
      ],
    });
  });

  test('exits with 2 where it could not look', async () => {
    await server.stop();
    const blind = await commandLine('audit', '--kubeconfig', kubeconfig);
    expect(blind).toMatchObject({ code: 2, output: '' });
    expect(blind.errors).toMatch(/^servicenet: .*ECONNREFUSED/m);
  });
});
