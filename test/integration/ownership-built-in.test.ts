import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRecord, type JsonRecord } from '../../src/objects/json.ts';
import { listAt, recordAt, textAt } from '../../src/objects/json.ts';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';
import { type Answer, call } from '../support/test-server.ts';

/**
 * Who owns what of built-in kinds, where a rule of one kind decides. What is expected was computed by apimachinery's
 * field manager with the reset fields of the kinds' strategies.
 */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

async function send(method: string, path: string, body: object, contentType?: string): Promise<Answer> {
  const answer = await call(server.client, method, path, {
    body,
    query: { fieldManager: 'writer' },
    ...(contentType === undefined ? {} : { contentType }),
  });
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  return answer;
}

const applyType = 'application/apply-patch+yaml';
const mergeType = 'application/merge-patch+json';

/** What `writer` owns through a subresource, "" for the main resource. */
function owned({ body }: Answer, subresource = ''): JsonRecord {
  const row = listAt(body, 'metadata', 'managedFields')
    .map((entry) => recordAt(entry))
    .find((entry) => textAt(entry, 'manager') === 'writer' && (entry['subresource'] ?? '') === subresource);
  return recordAt(row?.['fieldsV1']);
}

const metadataOf = (fields: JsonRecord): string[] =>
  isRecord(fields['f:metadata']) ? Object.keys(fields['f:metadata']) : [];

const template = {
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};
const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' };
const written = { labels: { l: '1' }, annotations: { a: '1' }, ownerReferences: [owner] };

describe('a write of /status owns of the metadata only what it can change', () => {
  test.each<[kind: string, path: string, content: object, owned: string[]]>([
    [
      'Deployment',
      '/apis/apps/v1/namespaces/default/deployments',
      { spec: { selector: { matchLabels: { app: 'a' } }, template } },
      ['f:annotations', 'f:ownerReferences'],
    ],
    ['Pod', '/api/v1/namespaces/default/pods', { spec: template.spec }, ['f:annotations', 'f:labels']],
    [
      'ReplicaSet',
      '/apis/apps/v1/namespaces/default/replicasets',
      { spec: { selector: { matchLabels: { app: 'a' } }, template } },
      ['f:annotations', 'f:labels', 'f:ownerReferences'],
    ],
    [
      'ValidatingAdmissionPolicy',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      {
        spec: {
          validations: [{ expression: 'true' }],
          matchConstraints: {
            resourceRules: [
              { apiGroups: ['none.example'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['x'] },
            ],
          },
        },
      },
      [],
    ],
    [
      'VolumeAttachment',
      '/apis/storage.k8s.io/v1/volumeattachments',
      { spec: { attacher: 'a', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
      [],
    ],
  ])('%s', async (kind, path, content, expected) => {
    const [, , group = '', version = ''] = path.startsWith('/apis/') ? path.split('/') : ['', '', '', 'v1'];
    const apiVersion = group === '' ? version : `${group}/${version}`;
    const name = 'status-writes';
    await send('POST', path, { apiVersion, kind, metadata: { name }, ...content });
    const status = kind === 'VolumeAttachment' ? { attached: true } : { observedGeneration: 1 };
    const patched = await send('PATCH', `${path}/${name}/status`, { metadata: written, status }, mergeType);
    expect(metadataOf(owned(patched, 'status')).sort()).toEqual(expected);
    const kept = recordAt(patched.body['metadata']);
    for (const member of ['labels', 'annotations', 'ownerReferences']) {
      expect(kept[member] !== undefined).toBe(expected.some((field) => field === `f:${member}`));
    }
  });
});

test('a claim reference of a PersistentVolume is owned field by field', async () => {
  const path = '/api/v1/persistentvolumes';
  const claimRef = { namespace: 'default', name: 'c' };
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/x' },
    claimRef,
  };
  const made = await send('POST', path, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v' },
    spec,
  });
  expect(recordAt(owned(made)['f:spec'])['f:claimRef']).toEqual({ '.': {}, 'f:name': {}, 'f:namespace': {} });
});

test('the content of a ControllerRevision is owned as a whole', async () => {
  const path = '/apis/apps/v1/namespaces/default/controllerrevisions';
  const revision = {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: { name: 'r' },
    revision: 1,
  };
  const made = await send('POST', path, { ...revision, data: { spec: { a: 1 } } });
  expect(owned(made)).toEqual({ 'f:data': {}, 'f:revision': {} });
});

test('the parent of an IPAddress is a pointer, whose creator owns it', async () => {
  const path = '/apis/networking.k8s.io/v1/ipaddresses';
  const parentRef = { resource: 'services', namespace: 'default', name: 's' };
  const address = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata: { name: '10.1.2.3' } };
  const made = await send('POST', path, { ...address, spec: { parentRef } });
  expect(recordAt(owned(made)['f:spec'])['f:parentRef']).toEqual({
    '.': {},
    'f:name': {},
    'f:namespace': {},
    'f:resource': {},
  });
});

test('an apply of null where nothing is stored changes the object, and so has a time', async () => {
  const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' };
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'b' },
  };
  await call(server.client, 'POST', path, {
    body: { ...binding, roleRef },
    query: { fieldManager: 'other' },
  });
  const time = async (config: object): Promise<unknown> => {
    const { body } = await send('PATCH', `${path}/b`, { ...binding, ...config }, applyType);
    const rows = listAt(body, 'metadata', 'managedFields').map((entry) => recordAt(entry));
    return rows.find((row) => textAt(row, 'operation') === 'Apply')?.['time'];
  };
  expect(await time({ roleRef })).toBeUndefined();
  expect(await time({ roleRef, subjects: null })).toEqual(expect.stringMatching(/Z$/));
});
