import { once } from 'node:events';
import { type AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { PeerTrust } from '../../../src/tls/peer-trust.ts';
import { issueCertificate, type TrustCase, trustCases } from '../../support/certificates.ts';

/** Why a client refuses a real server; undefined where it does not. */
async function faultOf({
  chain,
  bundle,
  host,
}: Omit<TrustCase, 'title' | 'fault'>): Promise<string | undefined> {
  const [{ key } = { key: '' }] = chain;
  const server = createServer({ key, cert: chain.map(({ certificate }) => certificate).join('') });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const trust = new PeerTrust(bundle);
    const socket = connect({ port, host: '127.0.0.1', ...trust.options });
    await once(socket, 'secureConnect');
    const fault = trust.fault(socket, host, new Date().getTime());
    socket.destroy();
    return fault?.message;
  } finally {
    server.close();
  }
}

describe('a TLS client trusts as Go does (crypto/x509 verify.go)', () => {
  test.each(trustCases())('$title', async ({ chain, bundle, host, fault }) => {
    const got = await faultOf({ chain, bundle, host });
    if (fault === undefined) expect(got).toBeUndefined();
    else expect(got).toContain(fault);
  });
});

test('a bundle without a certificate is refused as client-go does', () => {
  const said = (pem: string) => expect(() => new PeerTrust(pem));
  said('none').toThrow('unable to load root certificates: unable to parse bytes as PEM block');
  said('-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n').toThrow('no valid certificate authority data seen');
  said('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n').toThrow(
    'failed to parse certificate',
  );
});

test('what is no certificate by Go is refused, and ends nothing', async () => {
  const broken = { subject: 'broken', malformed: '2.5.29.17' };
  const self = issueCertificate(broken);
  expect(() => new PeerTrust(self.certificate)).toThrow('failed to parse certificate');
  const root = issueCertificate({ subject: 'root', isCA: true });
  const chain = [issueCertificate({ ...broken, signer: root })];
  const got = await faultOf({ chain, bundle: root.certificate, host: '127.0.0.1' });
  expect(got).toContain('malformed certificate');
});
