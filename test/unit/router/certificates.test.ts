import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import type { KeyPair } from '../../../src/network/http/rules.ts';
import { keyPairProblem, tlsProblem } from '../../../src/router/certificates.ts';
import { route } from '../network/http/objects.ts';

const day = 86_400_000;
const validity = { now: new Date() };
const authority = createCertificateAuthority('test', validity);
const issue = (at: number): KeyPair =>
  issueServerCertificate(authority, 'x.test', ['x.test'], { now: new Date(Date.now() + at), days: 1 });
const good = issue(0);
const locked = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey.export({
  ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
});

/** Made by OpenSSL: an authority with an RSA key of 1024 bits, and a certificate with a key of the curve secp256k1. */
const shortKey = `-----BEGIN CERTIFICATE-----
MIIB/TCCAWagAwIBAgITeAMMcFw52YgPtRIUhwUqYPrd0zANBgkqhkiG9w0BAQsF
ADARMQ8wDQYDVQQDDAZhLnRlc3QwHhcNMjYxMTI4MDMzNTI5WhcNMjYxMjI4MDMz
NTI5WjARMQ8wDQYDVQQDDAZhLnRlc3QwgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJ
AoGBANKln1hufKInT5ztlCpSodPnd/M4VXjbFzFnpnqtfVnIhZhY0q9GCzP54Qbg
ifcSv7MJn0QaS9lksv/HZz51u7rjWdcN7x+AopGsR2ZIuRpmsvhxaIPxrD0VIJMA
4q+TfqxoRJxaKfw837KhZwS7s0MW08wCRhPTuzHJI6JQPRobAgMBAAGjUzBRMB0G
A1UdDgQWBBQSbMoR3FsRBa7AAqGWtkiGoa4ULTAfBgNVHSMEGDAWgBQSbMoR3FsR
Ba7AAqGWtkiGoa4ULTAPBgNVHRMBAf8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4GB
ABgRrCyXKmv6Niz0TPTZr5VLNypXkD8grxE3Lg1GTzq7tXKRwKr2wWEHqjrComLS
lEP7lZZndCHQ2S/3jsN5h8KAMxIQV86DGimb52X1F24J9cWgrt0FU6a6vOXoA66V
TcIec/CA+3vdZXvRur6jro2xQqjfWTJpJnbYZsaN9oyj
-----END CERTIFICATE-----
`;
const oddCurve: KeyPair = {
  certificate: `-----BEGIN CERTIFICATE-----
MIIBczCCARqgAwIBAgIUWmP9P8eojlGke/RMQc04kuHo29cwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGYS50ZXN0MB4XDTI2MTEyODAzMzUzMFoXDTI2MTIyODAzMzUz
MFowETEPMA0GA1UEAwwGYS50ZXN0MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEiJ9o
BuBv5IJBeLzRdwL5T+Qq2UkzjrFYfQ+2s5UuSIARlbXEi6tSsoiadCFyr0umVHNZ
r5RlKRedRz89mFrqmaNTMFEwHQYDVR0OBBYEFPfPiOT7onhhVVcIV7Y0DSJqt9+Q
MB8GA1UdIwQYMBaAFPfPiOT7onhhVVcIV7Y0DSJqt9+QMA8GA1UdEwEB/wQFMAMB
Af8wCgYIKoZIzj0EAwIDRwAwRAIgT4kMpZwsoreyJr/GtK2rehfIySHMgRebfcoL
LGpyMa0CIDWBD8jGTZ9V7wPDiuiHBWDBLHAElajQpluCgxbAcmUk
-----END CERTIFICATE-----
`,
  key: `-----BEGIN EC PRIVATE KEY-----
MHQCAQEEIGY7ENSfT8jY1RwEMsZOZwOjTsj9N63ZeUMv3uvb2CkLoAcGBSuBBAAK
oUQDQgAEiJ9oBuBv5IJBeLzRdwL5T+Qq2UkzjrFYfQ+2s5UuSIARlbXEi6tSsoia
dCFyr0umVHNZr5RlKRedRz89mFrqmQ==
-----END EC PRIVATE KEY-----
`,
};
const broken = authority.certificate.replace(/\n[\w+/]{8}/, '\n!!!!!!!!');
const cutOff = authority.certificate.slice(0, 200);

test.each<[string, KeyPair, unknown]>([
  ['that holds', good, undefined],
  ['before its authority', { ...good, certificate: good.certificate + authority.certificate }, undefined],
  [
    'before one that is broken',
    { ...good, certificate: good.certificate + broken },
    'certificate 2 of 2 cannot be read',
  ],
  [
    'before one that is cut off',
    { ...good, certificate: good.certificate + cutOff },
    'certificate 2 of 2 cannot be read',
  ],
  [
    'before one with a key that is too short',
    { ...good, certificate: good.certificate + shortKey },
    expect.stringContaining('ca key too small'),
  ],
  ['whose key TLS does not use', oddCurve, 'TLS does not use keys of the kind secp256k1'],
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
  expect(keyPairProblem(pair)).toEqual(expected);
});

test.each<[string, object, unknown]>([
  ['whole authorities', { caCertificate: authority.certificate + authority.certificate }, undefined],
  [
    'a broken second authority',
    { caCertificate: authority.certificate + broken },
    'caCertificate: certificate 2 of 2 cannot be read',
  ],
  [
    'an authority with a key that is too short',
    { caCertificate: shortKey },
    expect.stringContaining('ca key too small'),
  ],
  [
    'a broken second authority of its backends',
    { termination: 'reencrypt', destinationCACertificate: authority.certificate + cutOff },
    'destinationCACertificate: certificate 2 of 2 cannot be read',
  ],
  [
    'an authority of its backends in a form that Go does not read',
    {
      termination: 'reencrypt',
      destinationCACertificate: authority.certificate.replaceAll(' CERTIFICATE', ' X509 CERTIFICATE'),
    },
    expect.stringContaining('destinationCACertificate: unable to load root certificates'),
  ],
])('a Route with %s', (_, more, message) => {
  const { certificate, key } = good;
  const tls = { termination: 'edge', certificate, key, ...more };
  const problem = tlsProblem(route('a/x', { host: 'x.test', tls }));
  expect(problem?.message).toEqual(message);
});
