import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { textAt } from '../../src/objects/json.ts';
import type { TypedClient } from './typed-client.ts';

/**
 * Makes a namespace as the framework of Kubernetes' e2e tests does before each of them (`CreateTestingNS`): labelled,
 * and there when its ServiceAccount and its root certificate are. Returns its name.
 */
export async function createTestingNamespace(client: TypedClient, baseName: string): Promise<string> {
  const name = `${baseName}-${randomUUID().slice(0, 8)}`;
  const body = {
    ...{ apiVersion: 'v1', kind: 'Namespace' },
    metadata: { name, labels: { 'e2e-framework': baseName, 'e2e-run': randomUUID() } },
  };
  const made = await client.call('POST', '/api/v1/namespaces', { body });
  expect([made.status, textAt(made.body, 'metadata', 'labels', 'e2e-framework')]).toEqual([201, baseName]);
  await untilThere(client, `/api/v1/namespaces/${name}/serviceaccounts`, 'default');
  await untilThere(client, `/api/v1/namespaces/${name}/configmaps`, 'kube-root-ca.crt');
  return name;
}

/** Waits for an object with a watch that begins with what there is, as informers of client-go do. */
async function untilThere(client: TypedClient, path: string, name: string): Promise<void> {
  const watch = await client.watch(path, {
    ...{ fieldSelector: `metadata.name=${name}`, sendInitialEvents: true, allowWatchBookmarks: true },
    resourceVersionMatch: 'NotOlderThan',
  });
  try {
    await watch.until(({ type, object }) => type === 'ADDED' && textAt(object, 'metadata', 'name') === name);
  } finally {
    watch.stop();
  }
}

/** `DeleteOptions` as typed clients send them. */
export function deleteOptions(options: JsonRecord): JsonRecord {
  return { apiVersion: 'meta.k8s.io/v1', kind: 'DeleteOptions', ...options };
}
