import { describe, expect, test } from 'vitest';
import { CertificateAdmission } from '../../../../src/apiserver/admission/built-in.ts';
import type { AdmissionAttributes } from '../../../../src/apiserver/rest/admission.ts';
import { serveResource } from '../../../../src/apiserver/rest/served-resource.ts';
import { builtinSchema } from '../../../../src/apiserver/schema/builtin.ts';
import { otherKindsTable } from '../../../../src/apiserver/tables/cluster.ts';
import type { KubeObject } from '../../../../src/objects/meta.ts';
import { definitionOf } from '../../registry/decide.ts';

const definition = definitionOf('CertificateSigningRequest');
const resource = serveResource(definition, builtinSchema(definition.schema), () => otherKindsTable);

/** Who may do what: `<verb> <signer>`. */
const admissionFor = (...granted: readonly string[]): CertificateAdmission =>
  new CertificateAdmission({
    authorize: (_user, { verb, resource: asked }) => ({
      allowed: asked?.resource === 'signers' && granted.includes(`${verb} ${asked.name}`),
      reason: '',
    }),
  });

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
  ])('is refused /%s with %j', async (subresource, status, verb) => {
    const attributes = update(subresource, status);
    await expect(admissionFor('other example.com/signer').validate(attributes)).rejects.toThrow(
      `certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to ${verb} requests with signerName "example.com/signer"`,
    );
    for (const signer of ['example.com/signer', 'example.com/*']) {
      await expect(admissionFor(`${verb} ${signer}`).validate(attributes)).resolves.toBeUndefined();
    }
  });

  test('may write what is neither', async () => {
    await expect(admissionFor().validate(update('status', {}))).resolves.toBeUndefined();
    await expect(admissionFor().validate(update('', { certificate: 'YQ==' }))).resolves.toBeUndefined();
  });
});
