import { createPublicKey, generateKeyPairSync, type JsonWebKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { serviceAccountTokens } from '../../../../src/apiserver/authentication/service-account-tokens.ts';
import { openIdPaths, openIdProvider } from '../../../../src/apiserver/discovery/routes.ts';
import { call } from './exchange-fake.ts';

const issuer = 'https://kubernetes.default.svc.cluster.local';
const tokens = serviceAccountTokens({
  key: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey,
  issuer,
  now: () => Date.parse('2026-01-01T00:00:00Z'),
  accountUid: () => 'uid',
  boundUid: () => undefined,
});
const handler = openIdProvider({ issuer, keys: tokens.keys, address: () => '127.0.0.1:6443' });

test('the issuer says where its keys are', async () => {
  const { status, contentType, body, headers } = await call(handler, openIdPaths.configuration);
  expect([status, contentType, headers['cache-control']]).toEqual([
    200,
    'application/json',
    'public, max-age=3600',
  ]);
  expect(JSON.parse(body)).toEqual({
    issuer,
    jwks_uri: 'https://127.0.0.1:6443/openid/v1/jwks',
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  });
});

test('who asks the issuer by its name finds the keys there', async () => {
  const headers = { host: 'kubernetes.default.svc.cluster.local' };
  const { body } = await call(handler, openIdPaths.configuration, { headers });
  expect(JSON.parse(body)).toMatchObject({ jwks_uri: `${issuer}/openid/v1/jwks` });
});

test('a published key verifies the tokens that name it', async () => {
  const { contentType, body } = await call(handler, openIdPaths.keys);
  expect(contentType).toBe('application/jwk-set+json');
  const { keys } = JSON.parse(body) as { keys: JsonWebKey[] };
  const { token } = tokens.issue({
    namespace: 'ns',
    name: 'web',
    uid: 'uid',
    audiences: ['vault'],
    expirationSeconds: 600,
  });
  const [head = '', payload = '', signature = ''] = token.split('.');
  const { kid, alg } = JSON.parse(Buffer.from(head, 'base64url').toString()) as Record<string, string>;
  const key = keys.find((each) => each['kid'] === kid);
  expect(key).toMatchObject({ use: 'sig', kty: 'EC', crv: 'P-256', alg });
  expect(key).not.toHaveProperty('d');
  const publicKey = createPublicKey({ key: key ?? {}, format: 'jwk' });
  const signed = Buffer.from(`${head}.${payload}`);
  const options = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  expect(verify('sha256', signed, options, Buffer.from(signature, 'base64url'))).toBe(true);
});

test.each([
  ['GET', '/openid', 404, '404 page not found\n'],
  ['GET', '/.well-known/x', 404, '404 page not found\n'],
  ['GET', '/openid/v1/jwks/x', 404, 'could not find the requested resource'],
  ['GET', '/openid/v1/jwks/', 200, '"keys"'],
  ['POST', '/openid/v1/jwks', 405, 'MethodNotAllowed'],
])('%s %s is answered with %i', async (method, path, status, text) => {
  const answer = await call(handler, path, { method });
  expect(answer.status).toBe(status);
  expect(answer.body).toContain(text);
});
