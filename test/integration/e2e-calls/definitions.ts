import { beforeAll, expect, test } from 'vitest';
import type { JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import type { TestServer } from '../../../src/testing/index.ts';
import { eventually, makeNamespace } from '../../support/api-operations.ts';
import { createDefinition, definitions, deleteDefinition } from '../../support/e2e-definitions.ts';
import { type Answer, call, watchEvents } from '../../support/test-server.ts';
import type { TypedClient } from '../../support/typed-client.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';

/**
 * The calls of e2e tests of custom resource definitions (`apimachinery/custom_resource_definition.go`, `crd_watch.go`,
 * `crd_validation_rules.go`); titles are theirs. Definitions go by the typed client, objects by the dynamic one.
 */
export function customDefinitions(shared: () => E2eCluster): void {
  let server: TestServer;
  let client: TypedClient;
  beforeAll(() => {
    ({ server, client } = shared());
  });

  test('[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition creating/deleting custom resource definition objects works', async () => {
    const { definition, path } = await createDefinition(client, { name: 'fooa' });
    await deleteDefinition(client, definition);
    expect((await call(server.client, 'GET', path)).status).toBe(404);
  });

  test('[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition listing custom resource definition objects works', async () => {
    const labels = { 'e2e-list-test-uuid': crypto.randomUUID() };
    const query = { labelSelector: `e2e-list-test-uuid=${labels['e2e-list-test-uuid']}` };
    const specs = new Map<string, unknown>();
    for (let n = 0; n < 10; n++) {
      const { definition } = await createDefinition(client, { name: `foo${'abcdefghij'.charAt(n)}`, labels });
      specs.set(textAt(definition, 'metadata', 'name'), definition['spec']);
    }
    const other = await createDefinition(client, { name: 'other' });
    const { body } = await client.call('GET', definitions, { query });
    const listed = listAt(body, 'items').map((item) => [
      textAt(item, 'metadata', 'name'),
      recordAt(item, 'spec'),
    ]);
    expect(listed).toEqual([...specs]);
    expect((await client.call('DELETE', definitions, { query })).status).toBe(200);
    await eventually(
      async () => client.call('GET', definitions, { query }),
      (answer) => listAt(answer.body, 'items').length === 0,
    );
    const name = textAt(other.definition, 'metadata', 'name');
    expect((await client.call('GET', `${definitions}/${name}`)).status).toBe(200);
  });

  test('[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition getting/updating/patching custom resource definition status sub-resource works', async () => {
    const { definition } = await createDefinition(client, { name: 'statusfoo' });
    const path = `${definitions}/${textAt(definition, 'metadata', 'name')}/status`;
    const { body } = await call(server.client, 'GET', path);
    expect(body['spec']).toEqual(definition['spec']);
    const conditions = [
      ...listAt(body, 'status', 'conditions'),
      { message: 'updated', status: '', type: '' },
    ];
    const updated = await client.call('PUT', path, {
      body: { ...body, status: { ...recordAt(body, 'status'), conditions } },
    });
    expect(updated.status).toBe(200);
    const zero = { type: '', status: '', lastTransitionTime: null };
    const has = (answer: Answer, message: string): boolean =>
      listAt(answer.body, 'status', 'conditions').some(
        (condition) => textAt(condition, 'message') === message,
      );
    expect(has(updated, 'updated')).toBe(true);
    const patched = await client.call('PATCH', path, {
      body: [{ op: 'add', path: '/status/conditions', value: [{ message: 'patched' }] }],
      patch: 'json',
    });
    expect([patched.status, listAt(patched.body, 'status', 'conditions')]).toEqual([
      200,
      [{ ...zero, message: 'patched' }],
    ]);
  });

  test('[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] should include custom resource definition resources in discovery documents', async () => {
    const name = 'apiextensions.k8s.io';
    const ofGroup = (group: unknown): string[] =>
      listAt(group, 'versions').map((each) => textAt(each, 'version'));
    const groups = await client.call('GET', '/apis');
    expect(ofGroup(listAt(groups.body, 'groups').find((each) => textAt(each, 'name') === name))).toContain(
      'v1',
    );
    const group = await client.call('GET', `/apis/${name}`);
    expect([group.body['name'], ofGroup(group.body)]).toEqual([name, ['v1']]);
    const resources = await client.call('GET', `/apis/${name}/v1`);
    expect(resources.body['groupVersion']).toBe(`${name}/v1`);
    expect(listAt(resources.body, 'resources').map((row) => textAt(row, 'name'))).toContain(
      'customresourcedefinitions',
    );
  });

  test('[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] custom resource defaulting for requests and from storage works', async () => {
    const text = { type: 'string' };
    const { definition, path } = await createDefinition(client, {
      name: 'defaulted',
      schema: {
        type: 'object',
        'x-kubernetes-preserve-unknown-fields': true,
        properties: { a: text, b: text },
      },
    });
    const patch = async (...body: JsonRecord[]): Promise<void> => {
      const url = `${definitions}/${textAt(definition, 'metadata', 'name')}`;
      expect((await client.call('PATCH', url, { body, patch: 'json' })).status).toBe(200);
    };
    const create = async (name: string): Promise<JsonRecord> => {
      const body = { apiVersion: 'mygroup.example.com/v1beta1', kind: 'defaulted', metadata: { name } };
      const made = await call(server.client, 'POST', path, { body });
      expect(made.status).toBe(201);
      return made.body;
    };
    const field = (name: string): string =>
      `/spec/versions/0/schema/openAPIV3Schema/properties/${name}/default`;
    expect((await create('cr-1'))['a']).toBe(undefined);
    await patch({ op: 'add', path: field('a'), value: 'A' });
    await eventually(
      async () => call(server.client, 'GET', `${path}/cr-1`),
      ({ body }) => body['a'] === 'A',
    );
    expect((await create('cr-2'))['a']).toBe('A');
    await patch({ op: 'remove', path: field('a') }, { op: 'add', path: field('b'), value: 'B' });
    const { body } = await eventually(
      async () => call(server.client, 'GET', `${path}/cr-2`),
      (answer) => answer.body['b'] === 'B',
    );
    expect(body['a']).toBe('A');
  });

  test('[sig-api-machinery] CustomResourceDefinition Watch [Privileged:ClusterAdmin] CustomResourceDefinition Watch watch on custom resource definition objects', async () => {
    const { definition, path } = await createDefinition(client, { name: 'noxu', version: 'v1beta1' });
    // no resourceVersion: what exists comes first, and there is nothing yet
    const watchOf = async (name: string): Promise<JsonRecord[]> =>
      watchEvents(server.client, path, { fieldSelector: `metadata.name=${name}`, timeoutSeconds: 600 }, 3);
    const watches = [watchOf('name1'), watchOf('name2')];
    const made: JsonRecord[] = [];
    for (const name of ['name1', 'name2']) {
      const body = {
        ...{ apiVersion: 'mygroup.example.com/v1beta1', kind: 'noxu', metadata: { name } },
        ...{ content: { key: 'value' }, num: { num1: 1, num2: 1_000_000 } },
      };
      made.push((await call(server.client, 'POST', path, { body })).body);
    }
    for (const name of ['name1', 'name2']) {
      const body = [{ op: 'add', path: '/dummy', value: 'test' }];
      const patched = await call(server.client, 'PATCH', `${path}/${name}`, {
        ...{ body, contentType: 'application/json-patch+json' },
      });
      expect([patched.status, patched.body['dummy']]).toEqual([200, 'test']);
    }
    for (const name of ['name1', 'name2']) await call(server.client, 'DELETE', `${path}/${name}`);
    for (const [n, events] of (await Promise.all(watches)).entries()) {
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
      expect(events[0]?.['object']).toEqual(made[n]);
    }
    await deleteDefinition(client, definition);
  });

  const array = (maxItems: number): JsonRecord => ({ type: 'array', maxItems, items: { type: 'integer' } });
  const ruled: JsonRecord = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        'x-kubernetes-validations': [
          { rule: 'self.x + self.y > 0' },
          {
            rule: 'self.firstArray.isSorted() && self.secondArray.isSorted() && ((self.firstArray.sum() + self.secondArray.sum()) % 2 == 0)',
          },
          { rule: 'self.largeArray.all(x, self.largeArray.all(y, y == x))' },
        ],
        properties: {
          ...{ x: { type: 'integer' }, y: { type: 'integer' } },
          ...{ firstArray: array(1000), secondArray: array(1000), largeArray: array(725) },
        },
      },
      status: {
        type: 'object',
        'x-kubernetes-validations': [{ rule: "self.health == 'ok' || self.health == 'unhealthy'" }],
        properties: { health: { type: 'string' } },
      },
    },
  };

  const satisfying = { x: 1, y: 0, firstArray: [3, 4], secondArray: [5, 10], largeArray: [2, 2] };

  /** Makes an object of a resource of its own namespace. */
  async function createRuled(name: string, schema: JsonRecord, object: JsonRecord): Promise<Answer> {
    const { path } = await createDefinition(client, { name, scope: 'Namespaced', schema });
    const namespace = await makeNamespace(server, `rules-${name}`);
    return call(server.client, 'POST', path.replace(`/${name}s`, `/namespaces/${namespace}/${name}s`), {
      body: {
        ...{ apiVersion: 'mygroup.example.com/v1beta1', kind: name },
        ...{ metadata: { name: 'cr-1', namespace }, ...object },
      },
    });
  }

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST NOT fail validation for create of a custom resource that satisfies the x-kubernetes-validations rules', async () => {
    expect((await createRuled('satisfied', ruled, { spec: satisfying })).status).toBe(201);
  });

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail validation for create of a custom resource that does not satisfy the x-kubernetes-validations rules', async () => {
    const refused = await createRuled('unsatisfied', ruled, { spec: { x: 0, y: 0 } });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
    expect(refused.body['message']).toContain('failed rule');
  });

  /** What a definition with this schema of `spec` is refused with. */
  async function refusalOf(name: string, spec: JsonRecord): Promise<string> {
    const names = { plural: `${name}s`, singular: name, kind: name, listKind: `${name}List` };
    const openAPIV3Schema = { type: 'object', properties: { spec } };
    const refused = await client.call('POST', definitions, {
      body: {
        ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
        metadata: { name: `${name}s.mygroup.example.com` },
        spec: {
          ...{ group: 'mygroup.example.com', scope: 'Namespaced', names },
          versions: [{ name: 'v1beta1', served: true, storage: true, schema: { openAPIV3Schema } }],
        },
      },
    });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
    return textAt(refused.body, 'message');
  }

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail create of a custom resource definition that contains a x-kubernetes-validations rule that refers to a property that do not exist', async () => {
    const spec = {
      ...{ type: 'object', properties: { x: { type: 'integer' } } },
      'x-kubernetes-validations': [{ rule: 'self.z == 100' }],
    };
    expect(await refusalOf('undefinedfield', spec)).toContain("undefined field 'z'");
  });

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail create of a custom resource definition that contains an x-kubernetes-validations rule that contains a syntax error', async () => {
    const spec = { type: 'object', 'x-kubernetes-validations': [{ rule: 'self = 42' }] };
    expect(await refusalOf('syntaxerror', spec)).toContain('Syntax error');
  });

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail create of a custom resource definition that contains an x-kubernetes-validations rule that exceeds the estimated cost limit', async () => {
    const items = {
      ...{ type: 'array', items: { type: 'string' } },
      'x-kubernetes-validations': [{ rule: "self.all(s, s == 'string constant')" }],
    };
    const spec = { type: 'object', properties: { x: { type: 'array', items } } };
    expect(await refusalOf('costly', spec)).toContain('exceeds budget');
  });

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail create of a custom resource that exceeds the runtime cost limit for x-kubernetes-validations rule execution', async () => {
    const largeArray = Array.from({ length: 725 }, () => 20);
    const refused = await createRuled('overrun', ruled, { spec: { largeArray } });
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
    expect(refused.body['message']).toContain('call cost exceeds limit');
  });

  test('[sig-api-machinery] CustomResourceValidationRules [Privileged:ClusterAdmin] MUST fail update of a custom resource that does not satisfy a x-kubernetes-validations transition rule', async () => {
    const schema = {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: {
            num: {
              type: 'integer',
              'x-kubernetes-validations': [{ rule: 'self > oldSelf' }],
            },
          },
        },
      },
    };
    const made = await createRuled('transition', schema, { spec: { num: 10 } });
    expect(made.status).toBe(201);
    const path = '/apis/mygroup.example.com/v1beta1/namespaces/rules-transition/transitions/cr-1';
    const update = async (num: number): Promise<Answer> =>
      call(server.client, 'PUT', path, { body: { ...made.body, spec: { num } } });
    const refused = await update(9);
    expect([refused.status, refused.body['reason']]).toEqual([422, 'Invalid']);
    expect(refused.body['message']).toContain('failed rule');
    expect((await update(11)).status).toBe(200);
  });
}
