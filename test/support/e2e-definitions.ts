import { expect } from 'vitest';
import type { JsonRecord } from '../../src/objects/json.ts';
import { listAt, textAt } from '../../src/objects/json.ts';
import { eventually } from './api-operations.ts';
import type { TypedClient } from './typed-client.ts';

/** Where definitions of custom resources are. */
export const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** A schema that lets everything in (`fixtures.AllowAllSchema`). */
const allowAll: JsonRecord = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

interface Definition {
  /** Of the resource; its plural has an `s` more, its kind is the same. */
  readonly name: string;
  readonly group?: string;
  readonly scope?: 'Cluster' | 'Namespaced';
  readonly version?: string;
  readonly schema?: JsonRecord;
  readonly labels?: JsonRecord;
}

/**
 * Makes a definition and waits until it is established and in discovery, as
 * `fixtures.CreateNewV1CustomResourceDefinitionWatchUnsafe` does. Returns it as it was made, and where its objects are
 * (of all namespaces).
 */
export async function createDefinition(
  client: TypedClient,
  {
    name,
    group = 'mygroup.example.com',
    scope = 'Cluster',
    version = 'v1beta1',
    schema = allowAll,
    labels,
  }: Definition,
): Promise<{ definition: JsonRecord; path: string }> {
  const plural = `${name}s`;
  const definition = await client.call('POST', definitions, {
    body: {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: `${plural}.${group}`, ...(labels && { labels }) },
      spec: {
        ...{ group, scope, names: { plural, singular: name, kind: name, listKind: `${name}List` } },
        versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    },
  });
  expect([definition.status, definition.body['message']]).toEqual([201, undefined]);
  await eventually(
    async () => client.call('GET', `${definitions}/${plural}.${group}`),
    ({ body }) =>
      listAt(body, 'status', 'conditions').some(
        (condition) => textAt(condition, 'type') === 'Established' && textAt(condition, 'status') === 'True',
      ),
  );
  await untilDiscovered(client, `/apis/${group}/${version}`, plural, true);
  return { definition: definition.body, path: `/apis/${group}/${version}/${plural}` };
}

/** Deletes a definition and waits until discovery has its resource no more. */
export async function deleteDefinition(client: TypedClient, definition: JsonRecord): Promise<void> {
  const name = textAt(definition, 'metadata', 'name');
  expect((await client.call('DELETE', `${definitions}/${name}`)).status).toBe(200);
  const root = `/apis/${textAt(definition, 'spec', 'group')}/${textAt(listAt(definition, 'spec', 'versions')[0], 'name')}`;
  await untilDiscovered(client, root, textAt(definition, 'spec', 'names', 'plural'), false);
}

async function untilDiscovered(
  client: TypedClient,
  root: string,
  plural: string,
  there: boolean,
): Promise<void> {
  await eventually(
    async () => client.call('GET', root, { accept: 'application/json' }),
    ({ body }) => listAt(body, 'resources').some((row) => textAt(row, 'name') === plural) === there,
  );
}
