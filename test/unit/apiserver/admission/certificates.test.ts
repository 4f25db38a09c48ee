import { describe, expect, test } from 'vitest';
import {
  certificateApproval,
  certificateSigning,
  clusterTrustBundleAttest,
  nodeRestriction,
} from '../../../../src/apiserver/admission/certificates.ts';
import { alwaysAllow, type Authorizer } from '../../../../src/apiserver/authorization/authorizer.ts';
import { Admission, type AdmissionAttributes } from '../../../../src/apiserver/rest/admission.ts';
import { serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import { objectKey } from '../../../../src/apiserver/storage/storage.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { otherKindsTable } from '../../../../src/apiserver/tables/cluster.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { StatusError } from '../../../../src/objects/status.ts';
import { definitionOf } from '../../registry/decide.ts';

const served = (kind: string) => {
  const definition = definitionOf(kind);
  return serveResource(definition, builtinSchema(definition.schema), () => otherKindsTable);
};
const resource = served('CertificateSigningRequest');

/** Validates a write for a user who may do what is `granted`: `<verb> <signer>`. */
function validate(attributes: AdmissionAttributes, ...granted: readonly string[]): void {
  const authorizer: Authorizer = {
    authorize: (_user, { verb, resource: access }) => ({
      allowed: access?.resource === 'signers' && granted.includes(`${verb} ${access.name}`),
      reason: '',
    }),
  };
  const chain = new Admission([
    certificateApproval(authorizer),
    certificateSigning(authorizer),
    clusterTrustBundleAttest(authorizer),
  ]);
  expect(chain.validate(attributes, { warn: () => undefined })).toBeUndefined();
}

function request(status: object): KubeObject {
  const object: KubeObject & Record<'spec' | 'status', object> = {
    metadata: { name: 'a' },
    spec: { signerName: 'example.com/signer' },
    status,
  };
  return object;
}

const update = (subresource: string, status: object): AdmissionAttributes => ({
  ...{ operation: 'UPDATE', resource, subresource, namespace: '', name: 'a', dryRun: false },
  ...{ object: request(status), oldObject: request({}) },
  user: { name: 'jane', uid: '', groups: [], extra: {} },
});

describe('who may not approve and sign for a signer', () => {
  test.each([
    ['approval', {}, 'approve'],
    ['status', { certificate: 'YQ==' }, 'sign'],
    ['status', { conditions: [{ type: 'Failed', status: 'True' }] }, 'sign'],
  ])('is refused /%s with %j', (subresource, status, verb) => {
    const attributes = update(subresource, status);
    expect(() => validate(attributes, 'other example.com/signer')).toThrow(
      `certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to ${verb} requests with signerName "example.com/signer"`,
    );
    for (const signer of ['example.com/signer', 'example.com/*']) {
      expect(() => validate(attributes, `${verb} ${signer}`)).not.toThrow();
    }
  });

  test('may write what is neither', () => {
    expect(() => validate(update('status', {}))).not.toThrow();
    expect(() => validate(update('', { certificate: 'YQ==' }))).not.toThrow();
  });
});

describe('a bundle of a signer', () => {
  const bundle = (signerName: string, metadata = {}): KubeObject & { spec: object } => ({
    metadata: { name: 'a', ...metadata },
    spec: { signerName, trustBundle: 'x' },
  });
  const write = (operation: 'CREATE' | 'UPDATE', object: KubeObject, oldObject?: KubeObject) => ({
    ...update('', {}),
    ...{ operation, object, oldObject, resource: served('ClusterTrustBundle') },
  });

  test('is written by those who may attest for it', () => {
    const attributes = write('CREATE', bundle('example.com/signer'));
    expect(() => validate(attributes, 'sign example.com/signer')).toThrow(
      'clustertrustbundles.certificates.k8s.io "a" is forbidden: user not permitted to attest for signerName "example.com/signer"',
    );
    expect(() => validate(attributes, 'attest example.com/signer')).not.toThrow();
    expect(() => validate(attributes, 'attest example.com/*')).not.toThrow();
    expect(() => validate(write('CREATE', bundle('')))).not.toThrow();
  });

  test('may be changed by the garbage collector', () => {
    const old = bundle('example.com/signer', { finalizers: ['a.example/b'] });
    expect(() => validate(write('UPDATE', bundle('example.com/signer'), old))).not.toThrow();
    const other = {
      ...bundle('example.com/signer'),
      spec: { signerName: 'example.com/signer', trustBundle: 'y' },
    };
    expect(() => validate(write('UPDATE', other, old))).toThrow('not permitted to attest');
  });
});

describe('a request for a certificate of a Pod', () => {
  const storage = createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 10, milliseconds: 1000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
  });
  const put = async (plural: string, namespace: string, object: KubeObject & Record<string, unknown>) => {
    const key = objectKey('', plural, namespace, object.metadata.name ?? '');
    await storage.commit([{ key, expect: 'any', object }]);
  };
  const spec = {
    ...{ signerName: 'example.com/signer', podName: 'web', podUID: 'pod-1' },
    ...{ serviceAccountName: 'default', serviceAccountUID: 'account-1', nodeName: 'a', nodeUID: 'node-1' },
  };
  const pod = {
    metadata: { name: 'web', namespace: 'ns', uid: 'pod-1' },
    spec: {
      nodeName: 'a',
      serviceAccountName: 'default',
      volumes: [{ projected: { sources: [{ podCertificate: { signerName: 'example.com/signer' } }] } }],
    },
  };
  const ask = (wrong: object, user = 'system:node:a', authorizer: Authorizer = nobody) => {
    const object: KubeObject & { spec: object } = { metadata: { name: 'r' }, spec: { ...spec, ...wrong } };
    return new Admission([nodeRestriction(storage, authorizer)]).mutate(
      {
        ...{
          operation: 'CREATE',
          resource: served('PodCertificateRequest'),
          subresource: '',
          namespace: 'ns',
        },
        ...{ name: 'r', object, oldObject: undefined, dryRun: false },
        user: { name: user, uid: '', groups: ['system:nodes'], extra: {} },
      },
      { warn: () => undefined },
    );
  };
  const nobody: Authorizer = { authorize: () => ({ allowed: false, reason: '' }) };
  const outcome = (action: () => unknown): string => {
    try {
      action();
      return 'allowed';
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return `${error.code} ${error.message.replace(/^podcertificaterequests.certificates.k8s.io "r" is forbidden: /, '')}`;
    }
  };

  test('comes from the node that the Pod runs on, and names what is there', async () => {
    await put('nodes', '', { metadata: { name: 'a', uid: 'node-1' } });
    expect(outcome(() => ask({}))).toBe(
      '500 while retrieving pod "ns/web" named in the PodCertificateRequest: pod "web" not found',
    );
    await put('pods', 'ns', pod);
    expect(outcome(() => ask({}))).toMatch('500 while retrieving service account "ns/default"');
    await put('serviceaccounts', 'ns', { metadata: { name: 'default', namespace: 'ns', uid: 'account-1' } });
    expect(outcome(() => ask({}))).toBe('allowed');
    expect(outcome(() => ask({}, 'jane'))).toBe('allowed');
    expect(outcome(() => ask({}, 'system:node:b'))).toBe(
      '403 PodCertificateRequest.Spec.NodeName="a", which is not the requesting node "b"',
    );
    expect(outcome(() => ask({ nodeUID: 'x' }))).toBe(
      '500 PodCertificateRequest for pod "ns/web" names node UID "x", inconsistent with the running node ("node-1")',
    );
    expect(outcome(() => ask({ podUID: 'x' }))).toMatch(
      '500 PodCertificateRequest for pod "ns/web" contains pod UID',
    );
    expect(outcome(() => ask({ serviceAccountName: 'x' }))).toBe(
      '403 PodCertificateRequest for pod "ns/web" contains serviceAccountName ("x") that differs from running pod ("default")',
    );
    expect(outcome(() => ask({ serviceAccountUID: 'x' }))).toMatch(
      '500 PodCertificateRequest for pod "ns/web" names',
    );
  });

  test('is for a signer that the Pod mounts, or that the node may ask', () => {
    const other = { signerName: 'example.com/other' };
    expect(outcome(() => ask(other))).toBe(
      '403 pod "ns/web" does not mount a podCertificate projected volume for signer "example.com/other"',
    );
    expect(outcome(() => ask(other, 'system:node:a', alwaysAllow))).toBe('allowed');
  });
});
