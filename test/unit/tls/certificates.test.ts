import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../../src/tls/certificates.ts';

const now = new Date();
const ca = createCertificateAuthority('servicenet-ca', { now });
const server = issueServerCertificate(
  ca,
  'kube-apiserver',
  ['localhost', '127.0.0.1', '::1', 'kubernetes.default.svc'],
  { now },
);
const client = issueClientCertificate(ca, 'jane', ['system:masters', 'dev'], { now });

describe('certificates', () => {
  test('the authority is a certificate authority and signs itself', () => {
    const parsed = new X509Certificate(ca.certificate);
    expect(parsed.ca).toBe(true);
    expect(parsed.subject).toBe('CN=servicenet-ca');
    expect(parsed.verify(parsed.publicKey)).toBe(true);
  });

  test('a server certificate names its hosts and comes from the authority', () => {
    const parsed = new X509Certificate(server.certificate);
    expect(parsed.ca).toBe(false);
    expect(parsed.checkIssued(new X509Certificate(ca.certificate))).toBe(true);
    expect(parsed.checkHost('localhost')).toBe('localhost');
    expect(parsed.checkHost('kubernetes.default.svc')).toBe('kubernetes.default.svc');
    expect(parsed.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(parsed.checkIP('::1')).toBe('::1');
    expect(parsed.checkIP('127.0.0.2')).toBeUndefined();
    expect(parsed.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  test('a client certificate carries the user as CN and the groups as O', () => {
    const parsed = new X509Certificate(client.certificate);
    expect(parsed.subject.split('\n')).toEqual(['O=system:masters', 'O=dev', 'CN=jane']);
    expect(parsed.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
  });

  test('certificates are valid from a little before now, and from 2050 on as well', () => {
    const parsed = new X509Certificate(server.certificate);
    expect(parsed.validFromDate.getTime()).toBeLessThan(now.getTime());
    expect(parsed.validToDate.getTime() - now.getTime()).toBeGreaterThan(364 * 86_400_000);
    const late = createCertificateAuthority('late', { now: new Date('2055-03-04T05:06:07Z') });
    expect(new X509Certificate(late.certificate).validFromDate.toISOString()).toBe(
      '2055-03-04T05:01:07.000Z',
    );
  });

  test('serial numbers differ', () => {
    const other = issueServerCertificate(ca, 'x', ['localhost'], { now });
    expect(new X509Certificate(other.certificate).serialNumber).not.toBe(
      new X509Certificate(server.certificate).serialNumber,
    );
  });
});

describe('a second opinion: openssl', () => {
  const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'servicenet-pki-'));
    writeFileSync(join(directory, 'ca.crt'), ca.certificate);
    writeFileSync(join(directory, 'server.crt'), server.certificate);
    writeFileSync(join(directory, 'client.crt'), client.certificate);
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test.runIf(hasOpenssl).each([
    ['server.crt', 'sslserver'],
    ['client.crt', 'sslclient'],
  ])('verifies %s for %s', (file, purpose) => {
    const args = ['verify', '-x509_strict', '-purpose', purpose, '-CAfile', 'ca.crt', file];
    expect(execFileSync('openssl', args, { cwd: directory, encoding: 'utf8' })).toBe(`${file}: OK\n`);
  });
});

test('a TLS handshake with both certificates succeeds and shows the client', async () => {
  const seen = Promise.withResolvers<string>();
  const https = createServer({
    cert: server.certificate,
    key: server.key,
    ca: ca.certificate,
    requestCert: true,
  });
  https.on('secureConnection', (socket) => seen.resolve(JSON.stringify(socket.getPeerCertificate().subject)));
  const listening = Promise.withResolvers<undefined>();
  https.listen(0, '127.0.0.1', () => listening.resolve(undefined));
  await listening.promise;
  const address = https.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const socket = connect({
    port,
    host: '127.0.0.1',
    ca: ca.certificate,
    cert: client.certificate,
    key: client.key,
  });
  expect(JSON.parse(await seen.promise)).toEqual({ O: ['system:masters', 'dev'], CN: 'jane' });
  socket.destroy();
  https.close();
});
