import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bitString, integer, oid, sequence, setOfOne, utf8String } from '../../../../src/tls/der.ts';
import { certificateReader, requestedOrganizations } from '../../../../src/apiserver/pki/signing-request.ts';

const requestFault = (bytes: Uint8Array) => certificateReader.requestFault(bytes);
const certificateFault = (bytes: Uint8Array) => certificateReader.certificateFault(bytes);
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });

function pem(type: string, der: Buffer): Buffer {
  const lines = der.toString('base64').replaceAll(/.{64}/g, '$&\n');
  return Buffer.from(`-----BEGIN ${type}-----\n${lines}\n-----END ${type}-----\n`);
}

/** @param signer whose key signs: that of the request, in a sound one. */
function request(signer: KeyObject, type = 'CERTIFICATE REQUEST', encode = utf8String): Buffer {
  const attribute = (id: string, text: string) => setOfOne(sequence(oid(id), encode(text)));
  const subject = sequence(
    attribute('2.5.4.3', 'jane'),
    attribute('2.5.4.10', 'dev'),
    attribute('2.5.4.10', 'ops'),
  );
  const spki = keys.publicKey.export({ format: 'der', type: 'spki' });
  const content = sequence(integer(Buffer.from([0])), subject, spki, Buffer.from([0xa0, 0]));
  const algorithm = sequence(oid('1.2.840.10045.4.3.2'));
  return pem(type, sequence(content, algorithm, bitString(sign('sha256', content, signer))));
}

describe('a request for a certificate', () => {
  test('is sound when its own key signed it', () => {
    const sound = request(keys.privateKey);
    expect(requestFault(sound)).toBeUndefined();
    expect(requestedOrganizations(sound)).toEqual(['dev', 'ops']);
  });

  test('may have strings in UTF-16', () => {
    const bmpString = (text: string): Buffer =>
      Buffer.concat([Buffer.from([0x1e, text.length * 2]), Buffer.from(text, 'utf16le').swap16()]);
    const sound = request(keys.privateKey, 'CERTIFICATE REQUEST', bmpString);
    expect(requestedOrganizations(sound)).toEqual(['dev', 'ops']);
  });

  test('is not when another key did', () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(requestFault(request(other.privateKey))).toContain('x509: ');
  });

  test('is a PEM block of its type', () => {
    const fault = 'PEM block type must be CERTIFICATE REQUEST';
    expect(requestFault(request(keys.privateKey, 'CERTIFICATE'))).toBe(fault);
    expect(requestFault(Buffer.from('hello'))).toBe(fault);
  });

  test('is refused, never crashed on, whatever it holds', () => {
    const sound = request(keys.privateKey).toString();
    const der = Buffer.from(sound.split('\n').slice(1, -2).join(''), 'base64');
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const broken = Buffer.from(der);
        broken.writeUInt8(broken.readUInt8(at) ^ flip, at);
        expect(typeof (requestFault(pem('CERTIFICATE REQUEST', broken)) ?? '')).toBe('string');
        expect(requestFault(pem('CERTIFICATE REQUEST', der.subarray(0, at)))).toBeTypeOf('string');
      }),
    );
  });
});

describe('a certificate', () => {
  test('is one or more PEM blocks of certificates without headers', () => {
    expect(certificateFault(Buffer.from(''))).toBe('must contain at least one CERTIFICATE PEM block');
    expect(certificateFault(request(keys.privateKey))).toBe(
      'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"',
    );
    expect(certificateFault(pem('CERTIFICATE', Buffer.from('abc')))).toBe('x509: malformed certificate');
    const headed = '-----BEGIN CERTIFICATE-----\nA: b\n\nYWJj\n-----END CERTIFICATE-----\n';
    expect(certificateFault(Buffer.from(headed))).toBe('no PEM block headers are permitted');
  });
});
