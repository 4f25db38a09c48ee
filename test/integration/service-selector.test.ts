import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ResourceClient } from '../../src/client/resource-client.ts';
import { endpoints, endpointSlices, services } from '../../src/client/resources.ts';
import { clusterControllers, runControllers, type RunningControllers } from '../../src/controllers/index.ts';
import { matchesLabels, parseLabelSelector } from '../../src/objects/labels.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

describe('--service-selector', () => {
  let server: TestServer;
  let running: RunningControllers;

  beforeAll(async () => {
    server = await startApiServer();
    const selector = parseLabelSelector('ours=yes');
    running = runControllers({
      transport: server.client,
      catalog: clusterControllers({ transport: server.client }),
      controllers: ['endpoints', 'endpointslice', 'endpointslice-mirroring'],
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
});
