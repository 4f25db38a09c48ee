import { expect } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { listAt } from '../../src/objects/json.ts';
import { eventually } from './api-operations.ts';
import type { TypedClient } from './typed-client.ts';

/** Changes the spec of a workload by a strategic patch, as the e2e tests of DaemonSets do. */
export async function patchSpec(client: TypedClient, path: string, spec: JsonRecord): Promise<void> {
  const { status } = await client.call('PATCH', path, { body: { spec }, patch: 'strategic-merge' });
  expect(status).toBe(200);
}

/** Lists by labels until there are so many. */
export async function listSelected(
  client: TypedClient,
  path: string,
  labelSelector: string,
  count: number,
): Promise<JsonRecord[]> {
  const { body } = await eventually(
    async () => client.call('GET', path, { query: { labelSelector } }),
    (answer) => listAt(answer.body, 'items').length === count,
  );
  return listAt(body, 'items').filter(isRecord);
}
