import { generateKeyPairSync, sign } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { bitString, integer, oid, sequence, setOfOne, utf8String } from '../../../src/tls/der.ts';
import { isRecord, type JsonRecord } from '../../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../../src/objects/json.ts';
import { apiOperations } from '../../support/api-operations.ts';
import type { E2eCluster } from '../../support/e2e-cluster.ts';
import type { TypedClient } from '../../support/typed-client.ts';

/** The calls of e2e tests of classes of Pods and of requests for certificates; titles are theirs. */
export function classes(shared: () => E2eCluster): void {
  let cluster: E2eCluster;
  let client: TypedClient;
  let namespace = '';
  beforeAll(async () => {
    cluster = shared();
    client = cluster.client;
    namespace = await cluster.namespace('classes');
  });

  test('[sig-node] RuntimeClass should support RuntimeClasses API operations', async () => {
    const objects = ['first', 'second', 'third'].map((name) => ({ metadata: { name }, handler: 'e2e' }));
    await apiOperations(cluster, { kind: 'runtimeClasses', namespace: undefined, objects });
  });

  const runtimeClasses = '/apis/node.k8s.io/v1/runtimeclasses';
  const runsIn = (name: string, runtimeClassName: string): JsonRecord => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: { runtimeClassName, containers: [{ name: 'c', image: 'busybox' }] },
  });

  test('[sig-node] RuntimeClass should reject a Pod requesting a non-existent RuntimeClass', async () => {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const refused = await client.call('POST', path, { body: runsIn('absent', 'nonexistent') });
    expect([refused.status, textAt(refused.body, 'message')]).toEqual([
      403,
      'pods "absent" is forbidden: pod rejected: RuntimeClass "nonexistent" not found',
    ]);
  });

  test('[sig-node] RuntimeClass should reject a Pod requesting a deleted RuntimeClass', async () => {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const body = {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'gone' },
      handler: 'e2e',
    };
    expect((await client.call('POST', runtimeClasses, { body })).status).toBe(201);
    expect((await client.call('POST', path, { body: runsIn('before', 'gone') })).status).toBe(201);
    expect((await client.call('DELETE', `${runtimeClasses}/gone`)).status).toBe(200);
    expect((await client.call('POST', path, { body: runsIn('after', 'gone') })).status).toBe(403);
  });

  test('[sig-node] RuntimeClass should schedule a Pod requesting a RuntimeClass and initialize its Overhead', async () => {
    const overhead = { cpu: '10m', memory: '1Mi' };
    const body = {
      ...{ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'heavy' }, handler: 'e2e' },
      overhead: { podFixed: overhead },
    };
    expect((await client.call('POST', runtimeClasses, { body })).status).toBe(201);
    const made = await client.call('POST', `/api/v1/namespaces/${namespace}/pods`, {
      body: runsIn('heavy', 'heavy'),
    });
    expect([made.status, recordAt(made.body, 'spec', 'overhead')]).toEqual([201, overhead]);
  });

  test('[sig-scheduling] SchedulerPreemption PriorityClass endpoints verify PriorityClass endpoints can be operated with different HTTP methods', async () => {
    const path = '/apis/scheduling.k8s.io/v1/priorityclasses';
    const classes: JsonRecord[] = [];
    for (const [i, name] of ['p1', 'p2'].entries()) {
      const made = await client.call('POST', path, {
        body: {
          ...{ apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', value: i + 1 },
          metadata: { name, labels: { e2e: 'preemption' } },
        },
      });
      expect(made.status).toBe(201);
      classes.push(made.body);
    }
    const [first = {}, second = {}] = classes;
    const changed = { value: 10 };
    const patch = 'strategic-merge';
    const refused = [
      await client.call('PATCH', `${path}/p1`, { body: changed, patch }),
      await client.call('PUT', `${path}/p2`, { body: { ...second, ...changed } }),
    ];
    for (const { status, body } of refused) {
      expect([status, listAt(body, 'details', 'causes')]).toEqual([
        422,
        [
          {
            field: 'value',
            reason: 'FieldValueForbidden',
            message: 'Forbidden: may not be changed in an update.',
          },
        ],
      ]);
    }
    const description = 'updated description';
    expect((await client.call('PATCH', `${path}/p1`, { body: { description }, patch })).status).toBe(200);
    expect((await client.call('PUT', `${path}/p2`, { body: { ...second, description } })).status).toBe(200);
    for (const given of [first, second]) {
      const live = await client.call('GET', `${path}/${textAt(given, 'metadata', 'name')}`);
      expect([live.body['value'], live.body['description']]).toEqual([given['value'], description]);
      const revision = (object: unknown) => Number(textAt(object, 'metadata', 'resourceVersion'));
      expect(revision(live.body)).toBeGreaterThan(revision(given));
    }
    await client.call('DELETE', path, { query: { labelSelector: 'e2e=preemption' } });
    expect((await client.call('GET', `${path}/p1`)).status).toBe(404);
  });

  /** A PKCS#10 request with an EC key, as PEM. */
  function signingRequest(commonName: string): Buffer {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const name = sequence(setOfOne(sequence(oid('2.5.4.3'), utf8String(commonName))));
    const spki = publicKey.export({ format: 'der', type: 'spki' });
    const content = sequence(integer(Buffer.from([0])), name, spki, Buffer.from([0xa0, 0]));
    const signature = sign('sha256', content, privateKey);
    const request = sequence(content, sequence(oid('1.2.840.10045.4.3.2')), bitString(signature));
    const lines = request.toString('base64').replaceAll(/.{64}/g, '$&\n');
    return Buffer.from(`-----BEGIN CERTIFICATE REQUEST-----\n${lines}\n-----END CERTIFICATE REQUEST-----\n`);
  }

  test('[sig-auth] Certificates API [Privileged:ClusterAdmin] should support CSR API operations', async () => {
    const root = '/apis/certificates.k8s.io/v1';
    const path = `${root}/certificatesigningrequests`;
    const signerName = 'example.com/e2e-certificates';
    const query = { fieldSelector: `spec.signerName=${signerName}` };
    const groups = listAt((await client.call('GET', '/apis', { accept: 'application/json' })).body, 'groups');
    expect(groups.map((group) => textAt(group, 'name'))).toContain('certificates.k8s.io');
    const resources = listAt(
      (await client.call('GET', root, { accept: 'application/json' })).body,
      'resources',
    );
    expect(resources.map((resource) => textAt(resource, 'name'))).toEqual([
      'certificatesigningrequests',
      'certificatesigningrequests/approval',
      'certificatesigningrequests/status',
      'clustertrustbundles',
      'podcertificaterequests',
      'podcertificaterequests/status',
    ]);

    const body = {
      ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
      metadata: { generateName: 'e2e-example-csr-' },
      spec: {
        ...{
          request: signingRequest('e2e.example.com').toString('base64'),
          signerName,
          expirationSeconds: 3600,
        },
        usages: ['digital signature', 'key encipherment', 'server auth'],
      },
    };
    const made = [];
    for (let each = 0; each < 3; each++) made.push(await client.call('POST', path, { body }));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201]);
    const created = made[2]?.body ?? {};
    expect(recordAt(created, 'spec')).toMatchObject({ ...body.spec, groups: expect.any(Array) as unknown });
    const name = textAt(created, 'metadata', 'name');
    const list = await client.call('GET', path, { query });
    expect(listAt(list.body, 'items')).toHaveLength(3);

    const resourceVersion = textAt(list.body, 'metadata', 'resourceVersion');
    const watch = await client.watch(path, { resourceVersion, fieldSelector: `metadata.name=${name}` });
    const patched = await client.call('PATCH', `${path}/${name}`, {
      body: { metadata: { annotations: { patched: 'true' } } },
      patch: 'merge',
    });
    const event = await watch.next();
    watch.stop();
    expect([event.type, textAt(event.object, 'metadata', 'annotations', 'patched')]).toEqual([
      'MODIFIED',
      'true',
    ]);
    const metadata = {
      ...recordAt(patched.body, 'metadata'),
      annotations: { patched: 'true', updated: 'true' },
    };
    expect(
      (await client.call('PUT', `${path}/${name}`, { body: { ...patched.body, metadata } })).status,
    ).toBe(200);

    const uid = textAt(created, 'metadata', 'uid');
    expect(textAt((await client.call('GET', `${path}/${name}/approval`)).body, 'metadata', 'uid')).toBe(uid);
    const first = await client.call('PATCH', `${path}/${name}/approval`, {
      body: {
        metadata: { annotations: { patchedapproval: 'true' } },
        status: { conditions: [{ type: 'ApprovalPatch', status: 'True', reason: 'e2e' }] },
      },
      patch: 'merge',
    });
    expect(textAt(first.body, 'metadata', 'annotations', 'patchedapproval')).toBe('true');
    const conditionsOf = ({ body: { status } }: { body: JsonRecord }) =>
      listAt(status, 'conditions').filter(isRecord);
    expect(conditionsOf(first).map(({ type }) => type)).toEqual(['ApprovalPatch']);
    const message = 'Set from an e2e test';
    const approval = { type: 'Approved', status: 'True', reason: 'E2E', message };
    const approved = await client.call('PUT', `${path}/${name}/approval`, {
      body: { ...first.body, status: { conditions: [...conditionsOf(first), approval] } },
    });
    expect(conditionsOf(approved).map(({ type }) => type)).toEqual(['ApprovalPatch', 'Approved']);

    expect(textAt((await client.call('GET', `${path}/${name}/status`)).body, 'metadata', 'uid')).toBe(uid);
    const certificate = Buffer.from(cluster.server.ca).toString('base64');
    const issued = await client.call('PATCH', `${path}/${name}/status`, {
      body: { metadata: { annotations: { patchedstatus: 'true' } }, status: { certificate } },
      patch: 'merge',
    });
    expect(textAt(issued.body, 'status', 'certificate')).toBe(certificate);
    const update = { type: 'StatusUpdate', status: 'True', reason: 'E2E', message };
    const updated = await client.call('PUT', `${path}/${name}/status`, {
      body: { ...issued.body, status: { certificate, conditions: [...conditionsOf(issued), update] } },
    });
    expect(conditionsOf(updated).map(({ type }) => type)).toEqual([
      'ApprovalPatch',
      'Approved',
      'StatusUpdate',
    ]);

    expect((await client.call('DELETE', `${path}/${name}`)).status).toBe(200);
    expect((await client.call('GET', `${path}/${name}`)).status).toBe(404);
    expect(listAt((await client.call('GET', path, { query })).body, 'items')).toHaveLength(2);
    expect((await client.call('DELETE', path, { query })).status).toBe(200);
    expect(listAt((await client.call('GET', path, { query })).body, 'items')).toEqual([]);
  });
}
