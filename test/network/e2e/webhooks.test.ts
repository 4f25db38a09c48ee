import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { call, type Answer } from '../../support/test-server.ts';
import { realAgnhost } from '../support/agnhost.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

const { image: agnhost, images } = realAgnhost;
const configurations = '/apis/admissionregistration.k8s.io/v1';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const folder = '/webhook.local.config/certificates';

/**
 * Tests of `apimachinery/webhook.go` and `apimachinery/crd_conversion_webhook.go` of `test/e2e` by their names and steps. The
 * webhooks are Pods of Kubernetes' agnhost behind Services, which the API server reaches through the cluster network.
 */
describePods(
  '[sig-api-machinery] webhooks in Pods',
  () => {
    let cluster: PodNetwork;
    let pods: PodNetwork;
    let kubectl: Kubectl;
    let caBundle = '';
    let namespaces = 0;
    const configured: string[] = [];

    beforeAll(async () => {
      cluster = await PodNetwork.start({ containers: 'processes', nodes: 1, images });
      kubectl = new Kubectl(cluster.server.kubeconfig);
      const hooks = await cluster.inNamespace('hooks');
      const now = new Date();
      const authority = createCertificateAuthority('e2e-server-cert-ca', { now });
      caBundle = Buffer.from(authority.certificate).toString('base64');
      const names = ['e2e-test-webhook.hooks.svc', 'e2e-test-crd-conversion-webhook.hooks.svc'];
      const { certificate, key } = issueServerCertificate(authority, names[0] ?? '', names, { now });
      await hooks.call('POST', hooks.path('secrets'), {
        metadata: { name: 'sample-webhook-secret' },
        stringData: { 'tls.crt': certificate, 'tls.key': key },
      });
      const flags = [
        ...[`--tls-cert-file=${folder}/tls.crt`, `--tls-private-key-file=${folder}/tls.key`],
        '-v=4',
      ];
      for (const [name, command, port] of [
        ['e2e-test-webhook', 'webhook', 8444],
        ['e2e-test-crd-conversion-webhook', 'crd-conversion-webhook', 9444],
      ] as const) {
        await hooks.deploy(
          name,
          1,
          {
            ...{ image: agnhost, args: [command, ...flags, `--port=${port}`] },
            volumeMounts: [{ name: 'webhook-certs', mountPath: folder, readOnly: true }],
            readinessProbe: { httpGet: { scheme: 'HTTPS', port, path: '/readyz' }, periodSeconds: 1 },
          },
          {
            spec: { volumes: [{ name: 'webhook-certs', secret: { secretName: 'sample-webhook-secret' } }] },
          },
        );
        await hooks.service(name, { ports: [{ port: port - 1, targetPort: port }] }, port);
        await hooks.running(name, 1);
      }
    });
    afterAll(async () => {
      kubectl.dispose();
      await cluster.server.stop();
    });

    const test = (name: string, steps: () => Promise<void>): void => {
      it(name, async () => {
        pods = await cluster.inNamespace(`webhook-${++namespaces}`);
        try {
          await steps();
        } finally {
          for (const path of configured.splice(0)) await pods.call('DELETE', path);
          await pods.call('DELETE', `/api/v1/namespaces/${pods.namespace}`);
        }
      });
    };
    const rule = (resources: string, apiGroup = '', apiVersion = 'v1', operations = ['CREATE']): object => ({
      ...{ apiGroups: [apiGroup], apiVersions: [apiVersion], operations, resources: [resources] },
    });
    const hook = (path: string, rules: readonly object[], more: object = {}): object => ({
      name: `${path.replaceAll('/', '-')}.k8s.io`.replace(/^-/, ''),
      ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], rules },
      clientConfig: { caBundle, service: { namespace: 'hooks', name: 'e2e-test-webhook', path, port: 8443 } },
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': pods.namespace } },
      ...more,
    });
    const created = async (path: string, body: object): Promise<Answer> => {
      const answer = await pods.call('POST', path, body);
      expect(answer.status, JSON.stringify(answer.body)).toBe(201);
      return answer;
    };
    /** Registers webhooks, and waits until they are asked: one more denies all markers. */
    const register = async (
      kind: 'validating' | 'mutating',
      hooks: readonly object[],
      name = `e2e-${kind}-${namespaces}`,
    ): Promise<string> => {
      const path = `${configurations}/${kind}webhookconfigurations`;
      const marker = { objectSelector: { matchLabels: { [name]: 'true' } }, name: 'marker.k8s.io' };
      await created(path, {
        metadata: { name },
        webhooks: [...hooks, hook('/always-deny', [rule('configmaps')], marker)],
      });
      configured.push(`${path}/${name}`);
      await until(
        () =>
          pods.call('POST', pods.path('configmaps'), {
            metadata: { name: `marker-${Date.now()}`, labels: { [name]: 'true' } },
          }),
        ({ body }) => textAt(body, 'message').includes('denied'),
      );
      return `${path}/${name}`;
    };
    const configMap = (name: string, data: Record<string, string> = {}): Promise<Answer> =>
      pods.call('POST', pods.path('configmaps'), { metadata: { name }, data });
    const denied = (answer: Answer, why: string): void => {
      expect(answer.status, JSON.stringify(answer.body)).toBeGreaterThanOrEqual(400);
      expect(textAt(answer.body, 'message')).toContain(why);
    };
    const define = async (
      versions: readonly { name: string; storage: boolean; properties: object }[],
      conversion?: object,
      group = `webhook-${namespaces}.example.com`,
    ): Promise<{ group: string; plural: string; path: (version: string) => string }> => {
      const names = { plural: 'e2e-tests', kind: 'E2e-test', singular: 'e2e-test', listKind: 'E2e-testList' };
      const name = `${names.plural}.${group}`;
      await created(definitions, {
        metadata: { name },
        spec: {
          ...{ group, scope: 'Namespaced', names },
          versions: versions.map(({ properties, ...version }) => ({
            ...{ ...version, served: true },
            schema: { openAPIV3Schema: { type: 'object', properties } },
          })),
          ...(conversion === undefined ? {} : { conversion }),
        },
      });
      configured.push(`${definitions}/${name}`);
      const path = (version: string): string => pods.path(names.plural, `${group}/${version}`);
      await until(
        () => pods.call('GET', path(versions[0]?.name ?? 'v1')),
        ({ status }) => status === 200,
      );
      return { group, plural: names.plural, path };
    };
    const texts = { type: 'object', additionalProperties: { type: 'string' } };
    const custom = (group: string, version: string, name: string, data: object): object => ({
      ...{ apiVersion: `${group}/${version}`, kind: 'E2e-test', metadata: { name }, data },
    });

    test('should be able to deny pod and configmap creation', async () => {
      await register('validating', [
        hook('/pods', [rule('pods')]),
        hook('/configmaps', [rule('configmaps', '', 'v1', ['CREATE', 'UPDATE', 'DELETE'])]),
      ]);
      const pod = (name: string, labels: object, timeout = ''): Promise<Answer> =>
        call(cluster.server.client, 'POST', pods.path('pods'), {
          body: {
            metadata: { name, labels },
            spec: { containers: [{ name: 'webhook-disallow', image: 'x' }] },
          },
          ...(timeout === '' ? {} : { query: { timeout } }),
        });
      denied(
        await pod('disallowed-pod', { 'webhook-e2e-test': 'webhook-disallow' }),
        'unwanted container name',
      );
      denied(await pod('hanging-pod', { 'webhook-e2e-test': 'wait-forever' }, '2s'), 'deadline');
      denied(
        await configMap('disallowed', { 'webhook-e2e-test': 'webhook-disallow' }),
        'unwanted key and value',
      );
      expect((await configMap('allowed', { 'webhook-e2e-test': 'webhook-allow' })).status).toBe(201);
      for (const [method, body] of [
        ['PUT', { metadata: { name: 'allowed' }, data: { 'webhook-e2e-test': 'webhook-disallow' } }],
        ['PATCH', { data: { 'webhook-e2e-test': 'webhook-disallow' } }],
      ] as const) {
        denied(await pods.call(method, `${pods.path('configmaps')}/allowed`, body), 'unwanted key and value');
      }
    });

    test('should include webhook resources in discovery documents', async () => {
      const get = async (path: string): Promise<Answer['body']> => (await pods.call('GET', path)).body;
      const group = listAt(await get('/apis'), 'groups').find(
        (each) => textAt(each, 'name') === 'admissionregistration.k8s.io',
      );
      const version = { groupVersion: 'admissionregistration.k8s.io/v1', version: 'v1' };
      expect(listAt(group, 'versions')).toContainEqual(version);
      expect(listAt(await get('/apis/admissionregistration.k8s.io'), 'versions')).toContainEqual(version);
      const names = listAt(await get(configurations), 'resources').map((each) => textAt(each, 'name'));
      expect(names).toEqual(
        expect.arrayContaining(['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']),
      );
    });

    test('should be able to deny attaching pod', async () => {
      await register('validating', [hook('/pods/attach', [rule('pods/attach', '', 'v1', ['CONNECT'])])]);
      const container = { name: 'container1', image: agnhost, args: ['pause'] };
      await created(pods.path('pods'), {
        metadata: { name: 'to-be-attached-pod', labels: { app: 'attached' } },
        spec: { containers: [container] },
      });
      await pods.running('attached', 1);
      const attach = ['-n', pods.namespace, 'attach', 'to-be-attached-pod', '-i', '-c=container1'];
      expect(await kubectl.fails(attach)).toContain("attaching to pod 'to-be-attached-pod' is not allowed");
    });

    test('should be able to deny custom resource creation, update and deletion', async () => {
      const { group, plural, path } = await define([
        { name: 'v1', storage: true, properties: { data: texts } },
      ]);
      await register('validating', [
        hook('/custom-resource', [rule(plural, group, 'v1', ['CREATE', 'UPDATE', 'DELETE'])]),
      ]);
      const make = (name: string, value: string): Promise<Answer> =>
        pods.call('POST', path('v1'), custom(group, 'v1', name, { 'webhook-e2e-test': value }));
      denied(await make('cr-1', 'webhook-disallow'), 'the custom resource contains unwanted data');
      expect((await make('cr-2', 'webhook-nondeletable')).status).toBe(201);
      const disallowed = { data: { 'webhook-e2e-test': 'webhook-disallow' } };
      denied(await pods.call('PATCH', `${path('v1')}/cr-2`, disallowed), 'contains unwanted data');
      denied(await pods.call('DELETE', `${path('v1')}/cr-2`), 'cannot be deleted');
      const deletable = { data: { 'webhook-e2e-test': 'webhook-allow' } };
      expect((await pods.call('PATCH', `${path('v1')}/cr-2`, deletable)).status).toBe(200);
      expect((await pods.call('DELETE', `${path('v1')}/cr-2`)).status).toBe(200);
    });

    test('should unconditionally reject operations on fail closed webhook', async () => {
      const closed = {
        ...{ failurePolicy: 'Fail', name: 'fail-closed.k8s.io' },
        clientConfig: {
          ...{
            caBundle: '',
            service: { namespace: 'hooks', name: 'e2e-test-webhook', path: '/configmaps', port: 8443 },
          },
        },
        objectSelector: { matchExpressions: [{ key: 'skip', operator: 'DoesNotExist' }] },
      };
      await created(`${configurations}/validatingwebhookconfigurations`, {
        metadata: { name: 'fail-closed' },
        webhooks: [hook('/configmaps', [rule('configmaps')], closed)],
      });
      configured.push(`${configurations}/validatingwebhookconfigurations/fail-closed`);
      await until(
        () => configMap(`closed-${Date.now()}`),
        ({ status, body }) => status === 500 && textAt(body, 'reason') === 'InternalError',
      );
    });

    test('should mutate configmap', async () => {
      const stages = [1, 2].map((stage) =>
        hook('/mutating-configmaps', [rule('configmaps')], {
          name: `adding-configmap-data-stage-${stage}.k8s.io`,
        }),
      );
      await register('mutating', stages);
      expect(await configMap('to-be-mutated', { 'mutation-start': 'yes' })).toMatchObject({
        body: { data: { 'mutation-start': 'yes', 'mutation-stage-1': 'yes', 'mutation-stage-2': 'yes' } },
      });
    });

    test('should mutate pod and apply defaults after mutation', async () => {
      await register('mutating', [hook('/mutating-pods', [rule('pods')])]);
      const { body } = await created(pods.path('pods'), {
        metadata: { name: 'webhook-to-be-mutated' },
        spec: { containers: [{ name: 'example', image: 'x' }] },
      });
      expect(listAt(body, 'spec', 'initContainers')).toMatchObject([
        { name: 'webhook-added-init-container', terminationMessagePolicy: 'File' },
      ]);
    });

    test('should not be able to mutate or prevent deletion of webhook configuration objects', async () => {
      const everything = [rule('*', 'admissionregistration.k8s.io', '*', ['*'])];
      const anywhere = { namespaceSelector: {} };
      await register('validating', [hook('/always-deny', everything, anywhere)]);
      await register('mutating', [hook('/add-label', everything, anywhere)]);
      for (const kind of ['validating', 'mutating']) {
        const path = `${configurations}/${kind}webhookconfigurations`;
        const dummy = hook('/always-allow', [rule('invalid')], {
          name: 'dummy.k8s.io',
          failurePolicy: 'Ignore',
        });
        const { body } = await created(path, { metadata: { name: 'dummy' }, webhooks: [dummy] });
        expect(recordAt(body, 'metadata')['labels']).toBeUndefined();
        expect((await pods.call('DELETE', `${path}/dummy`)).status).toBe(200);
      }
    });

    test('should mutate custom resource, with different stored version, and with pruning', async () => {
      const properties = { data: texts };
      const { group, plural, path } = await define([
        { name: 'v1', storage: true, properties },
        { name: 'v2', storage: false, properties },
      ]);
      await register(
        'mutating',
        [1, 2].map((stage) =>
          hook('/mutating-custom-resource', [rule(plural, group, 'v1', ['CREATE', 'UPDATE'])], {
            name: `mutate-custom-resource-data-stage-${stage}.k8s.io`,
          }),
        ),
      );
      const stages = { 'mutation-start': 'yes', 'mutation-stage-1': 'yes', 'mutation-stage-2': 'yes' };
      const made = await created(path('v1'), custom(group, 'v1', 'cr-1', { 'mutation-start': 'yes' }));
      expect(recordAt(made.body, 'data')).toEqual(stages);
      // By the other version, which is stored from now on.
      const patch = [
        { op: 'replace', path: '/spec/versions/0/storage', value: false },
        { op: 'replace', path: '/spec/versions/1/storage', value: true },
      ];
      const { status } = await call(cluster.server.client, 'PATCH', `${definitions}/${plural}.${group}`, {
        ...{ body: patch, contentType: 'application/json-patch+json' },
      });
      expect(status).toBe(200);
      const second = await created(path('v2'), custom(group, 'v2', 'cr-2', { 'mutation-start': 'yes' }));
      expect(recordAt(second.body, 'data')).toEqual(stages);
      expect((await pods.call('PATCH', `${path('v2')}/cr-1`, { data: { dummy: 'x' } })).status).toBe(200);
      // What the schema does not have is cut off again.
      await pods.call('DELETE', `${definitions}/${plural}.${group}`);
      await until(
        () => pods.call('GET', `${definitions}/${plural}.${group}`),
        (answer) => answer.status === 404,
      );
      const pruned = {
        type: 'object',
        properties: { 'mutation-start': { type: 'string' }, 'mutation-stage-1': { type: 'string' } },
      };
      await define([{ name: 'v1', storage: true, properties: { data: pruned } }]);
      const third = await created(path('v1'), custom(group, 'v1', 'cr-3', { 'mutation-start': 'yes' }));
      expect(recordAt(third.body, 'data')).toEqual({ 'mutation-start': 'yes', 'mutation-stage-1': 'yes' });
    });

    test('should deny crd creation', async () => {
      await register('validating', [
        hook('/crd', [rule('customresourcedefinitions', 'apiextensions.k8s.io', '*')], {
          namespaceSelector: {},
        }),
      ]);
      const names = { plural: 'denied', kind: 'Denied' };
      denied(
        await pods.call('POST', definitions, {
          metadata: { name: 'denied.example.com', labels: { 'webhook-e2e-test': 'webhook-disallow' } },
          spec: {
            ...{ group: 'example.com', scope: 'Cluster', names },
            versions: [
              { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
            ],
          },
        }),
        'the crd contains unwanted label',
      );
    });

    test('should honor timeout', async () => {
      const slow = (failurePolicy: string, timeoutSeconds: number | undefined): object =>
        hook('/always-allow-delay-5s', [rule('configmaps')], {
          ...{ name: 'allow-configmap-with-delay-webhook.k8s.io', failurePolicy },
          ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
          objectSelector: { matchLabels: { slow: 'true' } },
        });
      const ask = (name: string): Promise<Answer> =>
        pods.call('POST', pods.path('configmaps'), { metadata: { name, labels: { slow: 'true' } } });
      for (const [name, failurePolicy, timeout, status] of [
        ['short-fail', 'Fail', 1, 500],
        ['short-ignore', 'Ignore', 1, 201],
        ['long', 'Fail', 10, 201],
        ['default', 'Fail', undefined, 201],
      ] as const) {
        const path = await register('validating', [slow(failurePolicy, timeout)], `slow-${name}`);
        const answer = await ask(name);
        expect(answer.status, JSON.stringify(answer.body)).toBe(status);
        if (status === 500) expect(textAt(answer.body, 'message')).toContain('context deadline exceeded');
        await pods.call('DELETE', path);
      }
    });

    test('patching/updating a validating webhook should work, and of a mutating webhook', async () => {
      for (const kind of ['validating', 'mutating'] as const) {
        const asked = kind === 'validating' ? '/configmaps' : '/mutating-configmaps';
        const path = await register(kind, [hook(asked, [rule('configmaps')])]);
        const data = { 'webhook-e2e-test': 'webhook-disallow', 'mutation-start': 'yes' };
        const works = async (): Promise<boolean> => {
          const { status, body } = await configMap(`x-${Date.now()}`, data);
          return kind === 'validating' ? status >= 400 : recordAt(body, 'data')['mutation-stage-1'] === 'yes';
        };
        expect(await works()).toBe(true);
        const { body } = await pods.call('GET', path);
        await pods.call('PUT', path, {
          ...body,
          webhooks: [hook(asked, [rule('configmaps', '', 'v1', ['UPDATE'])])],
        });
        await until(works, (is) => !is);
        const patch = [{ op: 'replace', path: '/webhooks/0/rules/0/operations', value: ['CREATE'] }];
        await call(cluster.server.client, 'PATCH', path, {
          ...{ body: patch, contentType: 'application/json-patch+json' },
        });
        await until(works, (is) => is);
        await pods.call('DELETE', path);
      }
    });

    test('listing validating webhooks should work, and mutating webhooks', async () => {
      for (const kind of ['validating', 'mutating'] as const) {
        const asked = kind === 'validating' ? '/configmaps' : '/mutating-configmaps';
        const path = `${configurations}/${kind}webhookconfigurations`;
        const labels = { 'e2e-list-test-uuid': pods.namespace };
        for (let i = 0; i < 3; i++) {
          const webhooks = [hook(asked, [rule('configmaps')])];
          await created(path, { metadata: { name: `list-${kind}-${i}`, labels }, webhooks });
        }
        const data = { 'webhook-e2e-test': 'webhook-disallow', 'mutation-start': 'yes' };
        const works = async (): Promise<boolean> => {
          const { status, body } = await configMap(`x-${Date.now()}`, data);
          return kind === 'validating' ? status >= 400 : recordAt(body, 'data')['mutation-stage-1'] === 'yes';
        };
        const query = { labelSelector: `e2e-list-test-uuid=${pods.namespace}` };
        const { body } = await call(cluster.server.client, 'GET', path, { query });
        expect(listAt(body, 'items')).toHaveLength(3);
        await until(works, (is) => is);
        await call(cluster.server.client, 'DELETE', path, { query });
        await until(works, (is) => !is);
      }
    });

    test('should be able to create and update webhook configurations with match conditions, and mutate everything except skip-me configmaps', async () => {
      const matchConditions = [{ name: 'skip-me', expression: "object.metadata.name != 'skip-me'" }];
      const stage = { matchConditions, name: 'adding-configmap-data-stage-1.k8s.io' };
      await register('mutating', [hook('/mutating-configmaps', [rule('configmaps')], stage)]);
      expect(recordAt((await configMap('skip-me', { 'mutation-start': 'yes' })).body, 'data')).toEqual({
        'mutation-start': 'yes',
      });
      expect(
        recordAt((await configMap('mutate-me', { 'mutation-start': 'yes' })).body, 'data'),
      ).toMatchObject({
        'mutation-stage-1': 'yes',
      });
      for (const kind of ['validating', 'mutating']) {
        const invalid = [{ name: 'broken', expression: '... [] bad expression' }];
        const webhooks = [hook('/configmaps', [rule('configmaps')], { matchConditions: invalid })];
        const path = `${configurations}/${kind}webhookconfigurations`;
        denied(
          await pods.call('POST', path, { metadata: { name: `invalid-${kind}` }, webhooks }),
          'compilation failed',
        );
      }
    });

    test('CustomResourceConversionWebhook should be able to convert from CR v1 to CR v2, and a non homogeneous list of CRs', async () => {
      const text = { type: 'string' };
      const v2 = { host: text, port: text };
      const service = {
        ...{ namespace: 'hooks', name: 'e2e-test-crd-conversion-webhook', path: '/crdconvert', port: 9443 },
      };
      const { group, plural, path } = await define(
        [
          { name: 'v1', storage: true, properties: { hostPort: text } },
          { name: 'v2', storage: false, properties: v2 },
        ],
        {
          strategy: 'Webhook',
          webhook: { conversionReviewVersions: ['v1', 'v1beta1'], clientConfig: { caBundle, service } },
        },
        // The one that agnhost converts.
        'stable.example.com',
      );
      const place = (version: string, name: string, fields: object): object => ({
        ...{ apiVersion: `${group}/${version}`, kind: 'E2e-test', metadata: { name }, ...fields },
      });
      await created(path('v1'), place('v1', 'cr-instance-1', { hostPort: 'localhost:8080' }));
      const read = async (version: string, name: string): Promise<unknown> =>
        (await pods.call('GET', `${path(version)}/${name}`)).body;
      expect(await read('v2', 'cr-instance-1')).toMatchObject({ host: 'localhost', port: '8080' });
      const patch = [
        { op: 'replace', path: '/spec/versions/0/storage', value: false },
        { op: 'replace', path: '/spec/versions/1/storage', value: true },
      ];
      const { status } = await call(cluster.server.client, 'PATCH', `${definitions}/${plural}.${group}`, {
        ...{ body: patch, contentType: 'application/json-patch+json' },
      });
      expect(status).toBe(200);
      await created(path('v2'), place('v2', 'cr-instance-2', { host: 'localhost', port: '8080' }));
      for (const [version, fields] of [
        ['v1', { hostPort: 'localhost:8080' }],
        ['v2', { host: 'localhost', port: '8080' }],
      ] as const) {
        const { body } = await pods.call('GET', path(version));
        expect(listAt(body, 'items')).toMatchObject([fields, fields]);
      }
    });
  },
  realAgnhost.missing,
);
