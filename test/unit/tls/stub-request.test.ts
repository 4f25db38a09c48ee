import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { certificateReader } from '../../../src/apiserver/pki/signing-request.ts';
import { createStubRequest } from '../../../src/tls/stub-request.ts';

test.each([
  ['RSA3072', { type: 'rsa', bits: 3072 }],
  ['RSA4096', { type: 'rsa', bits: 4096 }],
  ['ECDSAP256', { type: 'ec', curve: 'P-256' }],
  ['ECDSAP384', { type: 'ec', curve: 'P-384' }],
  ['ECDSAP521', { type: 'ec', curve: 'P-521' }],
  ['ED25519', { type: 'ed25519' }],
])('a request for a certificate of a key %s is signed with it', async (name, type) => {
  const { key, request } = await createStubRequest(name);
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
  expect(certificateReader.request(request)).toEqual({ publicKey, key: type, isSigned: true });
});

test('there are no other keys', async () => {
  await expect(createStubRequest('DSA')).rejects.toThrow('unknown key type "DSA"');
});
