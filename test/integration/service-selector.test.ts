import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { endpoints, endpointSlices, services } from '../../src/client/resources.ts';
import { runControllers, type RunningControllers } from '../../src/controllers/run.ts';
import { matchesLabels, parseLabelSelector } from '../../src/objects/selectors/labels.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { controllersOf } from '../support/all-controllers.ts';

describe('--service-selector', () => {
  let server: TestServer;
  let running: RunningControllers;

  beforeAll(async () => {
    server = await startApiServer();
    // Left behind while no controller ran: one by a Service that was ours, the other by a Service of others.
    for (const [name, labels] of [
      ['left-ours', { ours: 'yes' }],
      ['left-theirs', {}],
    ] as const) {
      await new ResourceClient(server.client, endpoints).create({
        metadata: { name, namespace: 'kube-public', labels },
        subsets: [{ addresses: [{ ip: '10.0.0.1' }] }],
      });
    }
    const selector = parseLabelSelector('ours=yes');
    running = runControllers({
      transport: server.client,
      controllers: controllersOf({ transport: server.client }, [
        'endpoints',
        'endpointslice',
        'endpointslice-mirroring',
      ]),
      log: pino({ enabled: false }),
      serves: ({ metadata }) => matchesLabels(selector, metadata.labels),
    });
  });
  afterAll(async () => {
    await running.stop();
    await server.stop();
  });

  it('leaves the endpoints of other Services to others, also when the label is taken off', async () => {
    const service = new ResourceClient(server.client, services);
    const slices = new ResourceClient(server.client, endpointSlices);
    const create = (name: string, labels: Record<string, string>) =>
      service.create({
        metadata: { name, namespace: 'default', labels },
        spec: { selector: { app: name }, ports: [{ port: 80 }] },
      });
    const written = async (): Promise<string[]> => {
      const objects = await new ResourceClient(server.client, endpoints).list({ namespace: 'default' });
      const lists = await slices.list({ namespace: 'default' });
      const names = [
        ...objects.items.map(({ metadata }) => metadata.name),
        ...lists.items.map(({ metadata }) => metadata.labels?.['kubernetes.io/service-name']),
      ];
      return names.filter((name): name is string => name !== undefined && name !== 'kubernetes').sort();
    };
    await create('theirs', {});
    await create('ours', { ours: 'yes' });
    while ((await written()).length < 2) await sleep(10);
    expect(await written()).toEqual(['ours', 'ours']);
    await service.mergePatch('default', 'ours', { metadata: { labels: { ours: null } } });
    await service.mergePatch('default', 'theirs', { metadata: { labels: { ours: 'yes' } } });
    while ((await written()).length < 4) await sleep(10);
    expect(await written()).toEqual(['ours', 'ours', 'theirs', 'theirs']);
  });

  it('removes what a Service leaves behind only where the Service was ours', async () => {
    const service = new ResourceClient(server.client, services);
    const objects = new ResourceClient(server.client, endpoints);
    const slices = new ResourceClient(server.client, endpointSlices);
    const namesOf = async (): Promise<(string | undefined)[]> =>
      (await objects.list({ namespace: 'kube-public' })).items.map(({ metadata }) => metadata.name);
    const mirrors = async (): Promise<(string | undefined)[]> =>
      (await slices.list({ namespace: 'kube-public' })).items
        .map(({ metadata }) => metadata.labels?.['kubernetes.io/service-name'])
        .sort();
    await expect.poll(namesOf).toEqual(['left-theirs']);

    for (const [name, labels] of [
      ['by-hand', { ours: 'yes' }],
      ['foreign', {}],
    ] as const) {
      await service.create({
        metadata: { name, namespace: 'kube-public', labels },
        spec: { ports: [{ port: 80 }] },
      });
      await objects.create({
        metadata: { name, namespace: 'kube-public' },
        subsets: [{ addresses: [{ ip: '10.0.0.2' }], ports: [{ port: 80 }] }],
      });
    }
    // What another mirroring controller wrote for its Service.
    await slices.create({
      metadata: {
        name: 'foreign-1',
        namespace: 'kube-public',
        labels: {
          'kubernetes.io/service-name': 'foreign',
          'endpointslice.kubernetes.io/managed-by': 'endpointslicemirroring-controller.k8s.io',
        },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.2'], conditions: {} }],
      ports: null,
    });
    await expect.poll(mirrors).toContain('by-hand');
    await service.delete('kube-public', 'foreign');
    await service.delete('kube-public', 'by-hand');
    await expect.poll(mirrors).toEqual(['foreign']);
    await expect.poll(namesOf).toEqual(['foreign', 'left-theirs']);
  });
});
