import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { recordAt, textAt } from '../../../src/objects/json.ts';
import { createTestingNamespace } from '../../support/e2e-framework.ts';
import type { TypedClient, TypedEvent, TypedWatch } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/** The calls of e2e tests of watches (`apimachinery/watch.go`); titles are theirs. */
export function watch(shared: () => E2eCluster): void {
  let client: TypedClient;
  let configMaps = '';
  beforeAll(() => {
    ({ client } = shared());
  });
  beforeEach(async () => {
    configMaps = `/api/v1/namespaces/${await createTestingNamespace(client, 'watch')}/configmaps`;
  });

  const key = 'watch-this-configmap';

  async function watchConfigMaps(
    resourceVersion: string | undefined,
    ...labels: string[]
  ): Promise<TypedWatch> {
    return client.watch(configMaps, { resourceVersion, labelSelector: `${key} in (${labels.join(',')})` });
  }

  async function createConfigMap(name: string, labels?: JsonRecord): Promise<JsonRecord> {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...(labels && { labels }) } };
    const made = await client.call('POST', configMaps, { body });
    expect(made.status).toBe(201);
    return made.body;
  }

  /** Reads, changes and writes, as `updateConfigMap` of the e2e tests. */
  async function updateConfigMap(
    name: string,
    change: { mutation?: string; label?: string },
  ): Promise<JsonRecord> {
    const { body } = await client.call('GET', `${configMaps}/${name}`);
    const metadata = recordAt(body, 'metadata');
    const { mutation, label } = change;
    const updated = await client.call('PUT', `${configMaps}/${name}`, {
      body: {
        ...body,
        ...(mutation !== undefined && { data: { ...recordAt(body, 'data'), mutation } }),
        ...(label !== undefined && { metadata: { ...metadata, labels: { [key]: label } } }),
      },
    });
    expect(updated.status).toBe(200);
    return updated.body;
  }

  async function deleteConfigMap(name: string): Promise<void> {
    expect((await client.call('DELETE', `${configMaps}/${name}`)).status).toBe(200);
  }

  /** The next events of a watch are these and no other; of deletions only the type is compared. */
  async function expectEvents(
    watch: TypedWatch,
    ...events: (JsonRecord | 'DELETED' | TypedEvent)[]
  ): Promise<void> {
    for (const event of events) {
      const next = await watch.next();
      if (event === 'DELETED') expect(next.type).toBe('DELETED');
      else expect(next).toEqual(event);
    }
  }

  const added = (object: JsonRecord): TypedEvent => ({ type: 'ADDED', object });
  const modified = (object: JsonRecord): TypedEvent => ({ type: 'MODIFIED', object });

  test('[sig-api-machinery] Watchers should observe add, update, and delete watch notifications on configmaps', async () => {
    const [labelA, labelB] = ['multiple-watchers-A', 'multiple-watchers-B'];
    const ofA = await watchConfigMaps(undefined, labelA);
    const ofB = await watchConfigMaps(undefined, labelB);
    const ofBoth = await watchConfigMaps(undefined, labelA, labelB);
    const [a, b] = ['e2e-watch-test-configmap-a', 'e2e-watch-test-configmap-b'];

    const events = [
      added(await createConfigMap(a, { [key]: labelA })),
      modified(await updateConfigMap(a, { mutation: '1' })),
      modified(await updateConfigMap(a, { mutation: '2' })),
    ];
    await deleteConfigMap(a);
    await expectEvents(ofA, ...events, 'DELETED');
    await expectEvents(ofBoth, ...events, 'DELETED');

    const ofOther = added(await createConfigMap(b, { [key]: labelB }));
    await deleteConfigMap(b);
    // that nothing came before shows that nothing of the other label came at all
    await expectEvents(ofB, ofOther, 'DELETED');
    await expectEvents(ofBoth, ofOther, 'DELETED');
    const last = added(await createConfigMap('last', { [key]: labelA }));
    await expectEvents(ofA, last);
  });

  test('[sig-api-machinery] Watchers should be able to start watching from a specific resource version', async () => {
    const [name, label] = ['e2e-watch-test-resource-version', 'from-resource-version'];
    await createConfigMap(name, { [key]: label });
    const first = await updateConfigMap(name, { mutation: '1' });
    const second = await updateConfigMap(name, { mutation: '2' });
    await deleteConfigMap(name);
    const watch = await watchConfigMaps(textAt(first, 'metadata', 'resourceVersion'), label);
    await expectEvents(watch, modified(second), 'DELETED');
  });

  test('[sig-api-machinery] Watchers should be able to restart watching from the last resource version observed by the previous watch', async () => {
    const [name, label] = ['e2e-watch-test-watch-closed', 'watch-closed-and-restarted'];
    const broken = await watchConfigMaps(undefined, label);
    await expectEvents(
      broken,
      added(await createConfigMap(name, { [key]: label })),
      modified(await updateConfigMap(name, { mutation: '1' })),
    );
    broken.stop();
    const first = (await client.call('GET', `${configMaps}/${name}`)).body;
    const second = await updateConfigMap(name, { mutation: '2' });
    const restarted = await watchConfigMaps(textAt(first, 'metadata', 'resourceVersion'), label);
    await deleteConfigMap(name);
    await expectEvents(restarted, modified(second), 'DELETED');
  });

  test('[sig-api-machinery] Watchers should observe an object deletion if it stops meeting the requirements of the selector', async () => {
    const [name, label] = ['e2e-watch-test-label-changed', 'label-changed-and-restored'];
    const watch = await watchConfigMaps(undefined, label);
    const made = await createConfigMap(name, { [key]: label });
    const first = await updateConfigMap(name, { mutation: '1' });
    await updateConfigMap(name, { label: 'wrong-value' });
    await expectEvents(watch, added(made), modified(first), 'DELETED');
    await updateConfigMap(name, { mutation: '2' });
    const restored = await updateConfigMap(name, { label });
    const third = await updateConfigMap(name, { mutation: '3' });
    await deleteConfigMap(name);
    await expectEvents(watch, added(restored), modified(third), 'DELETED');
  });

  test('[sig-api-machinery] Watchers should receive events on concurrent watches in same order', async () => {
    let version = textAt((await client.call('GET', configMaps)).body, 'metadata', 'resourceVersion');
    const controller = new AbortController();
    const produced = produceEvents(controller.signal);
    const versionOf = ({ object }: TypedEvent): string => textAt(object, 'metadata', 'resourceVersion');
    const watches: TypedWatch[] = [];
    for (let n = 0; n < 100; n++) {
      watches.push(await client.watch(configMaps, { resourceVersion: version, allowWatchBookmarks: true }));
      const next: TypedEvent[] = [];
      for (const watch of watches) next.push(await watch.until(({ type }) => type !== 'BOOKMARK'));
      version = next[0] === undefined ? '' : versionOf(next[0]);
      expect(new Set(next.map(versionOf))).toEqual(new Set([version]));
    }
    controller.abort();
    for (const watch of watches) watch.stop();
    await produced;
  });

  /** Creates, updates (without a resourceVersion) and deletes until stopped. */
  async function produceEvents(signal: AbortSignal): Promise<void> {
    const existing: string[] = [];
    for (let n = 0; !signal.aborted; n++) {
      const name = existing[n % 2];
      if (n % 3 === 0 || name === undefined) {
        await createConfigMap(`cm-${n}`);
        existing.push(`cm-${n}`);
      } else if (n % 3 === 1) {
        const metadata = { name, labels: { mutated: `${n}` } };
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
        expect((await client.call('PUT', `${configMaps}/${name}`, { body })).status).toBe(200);
      } else {
        await deleteConfigMap(name);
        existing.splice(existing.indexOf(name), 1);
      }
    }
  }
}
