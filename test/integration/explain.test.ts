import { globSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { isRecord, listAt, recordAt, textAt, type JsonRecord } from '../../src/objects/json.ts';
import { startApiServer } from '../../src/testing/index.ts';
import { call, untilFound } from '../support/test-server.ts';

/** What `kubectl explain` says of the members that people meet, as OpenAPI serves it. */
const server = await startApiServer();
afterAll(async () => server.stop());

const get = async (path: string): Promise<JsonRecord> => (await call(server.client, 'GET', path)).body;

for (const file of globSync('deploy/crds/*_*.yaml')) {
  const body: unknown = parse(readFileSync(file, 'utf8'));
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect((await call(server.client, 'POST', path, { body })).status).toBe(201);
  const group = textAt(body, 'spec', 'group');
  const version = textAt(listAt(body, 'spec', 'versions')[0], 'name');
  await untilFound(server.client, `/apis/${group}/${version}/${textAt(body, 'spec', 'names', 'plural')}`);
}

const documents = new Map<string, JsonRecord>();
for (const [path, entry] of Object.entries(recordAt(await get('/openapi/v3'), 'paths'))) {
  if (isRecord(entry))
    documents.set(path, recordAt(await get(textAt(entry, 'serverRelativeURL')), 'components'));
}

/** The schemas of one group and version. */
function schemasOf(apiVersion: string): JsonRecord {
  const path = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`;
  return recordAt(documents.get(path) ?? {}, 'schemas');
}

/** The name of a kind's schema among those of its version. */
function schemaName(apiVersion: string, kind: string): string | undefined {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  return Object.entries(schemasOf(apiVersion)).find(([, schema]) =>
    listAt(schema, 'x-kubernetes-group-version-kind').some(
      (each) =>
        textAt(each, 'group') === group &&
        textAt(each, 'version') === version &&
        textAt(each, 'kind') === kind,
    ),
  )?.[0];
}

interface Resolved {
  /** The name of the component behind a reference, or the path of a member of one. */
  readonly name: string;
  readonly schema: JsonRecord;
}

/** Follows a reference, also within `allOf`, beside which descriptions and defaults stand. */
function resolve(schemas: JsonRecord, name: string, schema: JsonRecord): Resolved {
  const reference = textAt(schema, '$ref') || textAt(listAt(schema, 'allOf')[0], '$ref');
  if (reference === '') return { name, schema };
  const component = reference.slice(reference.lastIndexOf('/') + 1);
  return { name: component, schema: recordAt(schemas, component) };
}

/** Members that a value uses and that `kubectl explain` has no words for. */
function wordless(schemas: JsonRecord, at: Resolved, value: unknown): string[] {
  const { name, schema } = at;
  if (Array.isArray(value)) {
    const item = resolve(schemas, `${name}[]`, recordAt(schema, 'items'));
    return value.flatMap((each) => wordless(schemas, item, each));
  }
  if (!isRecord(value)) return [];
  const properties = recordAt(schema, 'properties');
  return Object.entries(value).flatMap(([member, inner]) => {
    const property = recordAt(properties, member);
    const known = Object.hasOwn(properties, member);
    const below = resolve(
      schemas,
      `${name}.${member}`,
      known ? property : recordAt(schema, 'additionalProperties'),
    );
    const silent = known && textAt(property, 'description') === '' ? [`${name}.${member}`] : [];
    return [...silent, ...wordless(schemas, below, inner)];
  });
}

/** The YAML of a file: of a page, its fences. */
function manifestsIn(file: string): unknown[] {
  const text = readFileSync(file, 'utf8');
  const blocks = file.endsWith('.md')
    ? [...text.matchAll(/^ *```ya?ml\n([\s\S]*?)^ *```$/gm)].map(([, block = '']) => block)
    : [text];
  return blocks.flatMap((block) => parseAllDocuments(block)).map((document): unknown => document.toJS());
}

const files = globSync([
  'test/tutorials/*.yaml',
  'deploy/{base,components,crds,examples,overlays}/**/*.yaml',
  'docs/**/*.md',
  'README.md',
]);

describe('kubectl explain', () => {
  test('has words for every member of the manifests of tutorials, deploy and docs', () => {
    const silent = new Set<string>();
    let objects = 0;
    for (const value of files.flatMap(manifestsIn)) {
      const [apiVersion, kind] = [textAt(value, 'apiVersion'), textAt(value, 'kind')];
      const name = schemaName(apiVersion, kind);
      if (name === undefined) continue;
      objects++;
      const schemas = schemasOf(apiVersion);
      for (const member of wordless(schemas, { name, schema: recordAt(schemas, name) }, value))
        silent.add(member);
    }
    expect(objects).toBeGreaterThan(100);
    expect([...silent].sort()).toEqual([]);
  });

  test('has words for the members of spec and status of each kind with a short name', async () => {
    const silent: string[] = [];
    let kinds = 0;
    for (const path of documents.keys()) {
      const version = path.replace(/^apis?\//, '');
      if (!/^(api|apis\/[^/]+)\/v/.test(path)) continue;
      for (const resource of listAt(await get(`/${path}`), 'resources')) {
        const name = schemaName(version, textAt(resource, 'kind'));
        if (listAt(resource, 'shortNames').length === 0 || name === undefined) continue;
        kinds++;
        const schemas = schemasOf(version);
        for (const part of ['spec', 'status']) {
          const property = recordAt(schemas, name, 'properties', part);
          const below = resolve(schemas, `${name}.${part}`, property);
          const members = Object.entries(recordAt(below.schema, 'properties'));
          const named: [string, unknown][] = [
            ...members.map(([member, each]): [string, unknown] => [`${below.name}.${member}`, each]),
          ];
          if (members.length > 0) named.push([`${name}.${part}`, property]);
          silent.push(
            ...named.filter(([, each]) => textAt(each, 'description') === '').map(([member]) => member),
          );
        }
      }
    }
    expect(kinds).toBeGreaterThan(30);
    expect([...new Set(silent)].sort()).toEqual([]);
  });

  test.each(['api/v1', 'apis/apps/v1', 'apis/batch/v1', 'apis/autoscaling/v2', 'apis/networking.k8s.io/v1'])(
    'has words for most members of %s',
    (path) => {
      const prefix = `io.k8s.api.${path
        .replace(/^apis?\//, '')
        .replace('.k8s.io', '')
        .replace('/', '.')
        .replace(/^v1$/, 'core.v1')}.`;
      const members = Object.entries(recordAt(documents.get(path), 'schemas'))
        .filter(([name]) => name.startsWith(prefix))
        .flatMap(([, schema]) => Object.values(recordAt(schema, 'properties')));
      expect(members.length).toBeGreaterThan(20);
      const described = members.filter((member) => textAt(member, 'description') !== '');
      expect(described.length / members.length).toBeGreaterThanOrEqual(0.6);
    },
  );
});
