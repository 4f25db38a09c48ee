import { describe, expect, test } from 'vitest';
import {
  certificateApproval,
  certificateSigning,
  namespaceLifecycle,
} from '../../../../src/apiserver/admission/built-in.ts';
import type { Authorizer } from '../../../../src/apiserver/authorization/authorizer.ts';
import { Admission, type AdmissionAttributes } from '../../../../src/apiserver/rest/admission.ts';
import { serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import { createMemoryStorage } from '../../../../src/apiserver/storage/multi-version.ts';
import type { Storage } from '../../../../src/apiserver/storage/storage.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { otherKindsTable } from '../../../../src/apiserver/tables/cluster.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { definitionOf } from '../../registry/decide.ts';

const definition = definitionOf('CertificateSigningRequest');
const resource = serveResource(definition, builtinSchema(definition.schema), () => otherKindsTable);

/** Validates a write for a user who may do what is `granted`: `<verb> <signer>`. */
function validate(attributes: AdmissionAttributes, ...granted: readonly string[]): void {
  const authorizer: Authorizer = {
    authorize: (_user, { verb, resource: access }) => ({
      allowed: access?.resource === 'signers' && granted.includes(`${verb} ${access.name}`),
      reason: '',
    }),
  };
  const chain = new Admission([certificateApproval(authorizer), certificateSigning(authorizer)]);
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

function emptyStorage(): Storage {
  return createMemoryStorage({
    encode: (object) => JSON.stringify(object),
    retain: { revisions: 10, milliseconds: 1000 },
    clock: () => 0,
    onListenerError: (error) => {
      throw error;
    },
  });
}

test('what is in a namespace that is gone may be updated, and not added to', () => {
  const configMaps = definitionOf('ConfigMap');
  const plugin = namespaceLifecycle(emptyStorage());
  const attributes = {
    ...{ resource: serveResource(configMaps, builtinSchema(configMaps.schema), () => otherKindsTable) },
    ...{ subresource: '', namespace: 'gone', name: 'a', dryRun: false },
    ...{ object: { metadata: { name: 'a' } }, oldObject: { metadata: { name: 'a' } } },
    user: { name: 'jane', uid: '', groups: [], extra: {} },
  };
  const mutate = (operation: 'CREATE' | 'UPDATE') =>
    new Admission([plugin]).mutate({ ...attributes, operation }, { warn: () => undefined });
  expect(mutate('UPDATE')).toBe(attributes.object);
  expect(() => mutate('CREATE')).toThrow('namespaces "gone" not found');
});
