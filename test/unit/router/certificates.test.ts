import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  createCertificateAuthority,
  issueServerCertificate,
} from '../../../src/apiserver/pki/certificates.ts';
import { type KeyPair, keyPairProblem } from '../../../src/router/certificates.ts';

const day = 86_400_000;
const validity = { now: new Date() };
const authority = createCertificateAuthority('test', validity);
const issue = (at: number): KeyPair =>
  issueServerCertificate(authority, 'x.test', ['x.test'], { now: new Date(Date.now() + at), days: 1 });
const good = issue(0);
const locked = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey.export({
  ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
});

test.each<[string, KeyPair, string | undefined]>([
  ['that holds', good, undefined],
  ['before its authority', { ...good, certificate: good.certificate + authority.certificate }, undefined],
  ['that has expired: clients decide', issue(-30 * day), undefined],
  ['that does not hold yet: clients decide', issue(30 * day), undefined],
  ['of another key', { ...good, key: issue(0).key }, 'the key is not that of the certificate'],
  ['that is none', { ...good, certificate: 'no' }, 'the certificate is no PEM of a certificate'],
  ['that is empty', { ...good, certificate: '' }, 'the certificate is no PEM of a certificate'],
  [
    'with a key that is none',
    { ...good, key: 'no' },
    'the key is no PEM of a private key without a passphrase',
  ],
  [
    'with a locked key',
    { ...good, key: locked.toString() },
    'the key is no PEM of a private key without a passphrase',
  ],
])('a certificate %s', (_, pair, expected) => {
  expect(keyPairProblem(pair)).toBe(expected);
});
