import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { certificateReader } from '../../../../src/apiserver/pki/signing-request.ts';
import { podCertificateRequestStrategy } from '../../../../src/registry/certificates/podcertificaterequest.ts';
import { issueCertificate, stubRequest } from '../../../support/certificates.ts';
import { contextOf, create, definitionOf, now, update } from '../decide.ts';

const kind = definitionOf('PodCertificateRequest');
const hourMs = 3_600_000;
const nowMs = Date.parse(now);
const at = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z');

const leaf = issueCertificate({ subject: 'web', from: new Date(nowMs), to: new Date(nowMs + 2 * hourMs) });
const text = (der: Buffer): string => der.toString('base64');
const spec = {
  ...{ signerName: 'example.com/signer', podName: 'web', podUID: 'p', serviceAccountName: 'default' },
  ...{ serviceAccountUID: 's', nodeName: 'a', nodeUID: 'n' },
  stubPKCS10Request: text(stubRequest(leaf.privateKey)),
};
const condition = (type: string) => ({
  ...{ type, status: 'True', reason: 'Because', message: '' },
  lastTransitionTime: now,
});
const issued = {
  conditions: [condition('Issued')],
  certificateChain: leaf.certificate,
  notBefore: at(nowMs),
  beginRefreshAt: at(nowMs + hourMs),
  notAfter: at(nowMs + 2 * hourMs),
};

describe('a request', () => {
  test('asks for a day, and has no answer yet', () => {
    const { object, errors } = create(kind, { spec, status: issued });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ spec: { maxExpirationSeconds: 86_400 }, status: {} });
    expect(object).not.toHaveProperty('status.conditions');
  });

  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const small = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const old = generateKeyPairSync('ec', { namedCurve: 'secp224r1' }).privateKey;
  const edwards = generateKeyPairSync('ed25519').privateKey;

  test.each([
    [{ podName: 'A_' }, [expect.stringMatching(/^spec.podName: Invalid value: "A_": a lowercase RFC 1123/)]],
    [{ podUID: '' }, ['spec.podUID: Invalid value: "": must not be empty']],
    [{ nodeUID: 'n'.repeat(129) }, ['spec.nodeUID: Too long: may not be more than 128 bytes']],
    [{ signerName: '' }, ['spec.signerName: Required value']],
    [
      { maxExpirationSeconds: 10 },
      ['spec.maxExpirationSeconds: Invalid value: 10: must be in the range [3600, 7862400]'],
    ],
    [
      { maxExpirationSeconds: 86_401, signerName: 'kubernetes.io/kube-apiserver-client-pod' },
      ['spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]'],
    ],
    [{ maxExpirationSeconds: 86_401 }, []],
    [
      { stubPKCS10Request: '' },
      [
        'spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set',
      ],
    ],
    [{ stubPKCS10Request: 'YQ==' }, ['spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR']],
    [
      { stubPKCS10Request: text(stubRequest(leaf.privateKey, other)) },
      ['spec.stubPKCS10Request: Invalid value: invalid signature'],
    ],
    [
      { stubPKCS10Request: text(stubRequest(small)) },
      [
        'spec.stubPKCS10Request: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096',
      ],
    ],
    [
      { stubPKCS10Request: text(stubRequest(old)) },
      [
        'spec.stubPKCS10Request: Invalid value: "curve P-224": elliptic public keys must use curve P256, P384, or P521',
      ],
    ],
    [{ stubPKCS10Request: text(stubRequest(edwards)) }, []],
    [
      { unverifiedUserAnnotations: { plain: '' } },
      [
        'spec.unverifiedUserAnnotations: Invalid value: "plain": must be a domain-prefixed key (such as "acme.io/foo")',
      ],
    ],
    [{ unverifiedUserAnnotations: { 'acme.io/Foo': 'bar' } }, []],
  ])('%#: with %j is judged', (given, errors) => {
    expect(create(kind, { spec: { ...spec, ...given } }).errors).toEqual(errors);
  });

  const { stored } = create(kind, { spec });

  test('does not change', () => {
    const shown = `{"SignerName":"example.com/signer","PodName":"b","PodUID":"p","ServiceAccountName":"default","ServiceAccountUID":"s","NodeName":"a","NodeUID":"n","MaxExpirationSeconds":86400,"PKIXPublicKey":null,"ProofOfPossession":null,"StubPKCS10Request":"${spec.stubPKCS10Request}","UnverifiedUserAnnotations":null}`;
    expect(update(kind, stored, { spec: { ...spec, podName: 'b' } }).errors).toEqual([
      `spec: Invalid value: ${shown}: field is immutable`,
    ]);
  });

  test.each(['Denied', 'Failed'])('is %s once, with conditions alone', (type) => {
    const status = { conditions: [condition(type)] };
    const decided = update(kind, stored, { spec, status }, 'status');
    expect(decided.errors).toEqual([]);
    expect(update(kind, decided.stored, { spec, status: {} }, 'status').errors).toEqual([
      'status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed',
    ]);
    expect(update(kind, stored, { spec, status: { ...issued, ...status } }, 'status').errors).toEqual([
      'status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest',
    ]);
  });

  test('has one outcome, which is true', () => {
    const conditions = [condition('Issued'), { ...condition('Denied'), status: 'False' }, condition('Other')];
    expect(update(kind, stored, { spec, status: { conditions } }, 'status').errors).toEqual([
      'status.conditions.[1].type: Invalid value: "Denied": There may be at most one condition with type "Issued", "Denied", or "Failed"',
      'status.conditions.[1].status: Unsupported value: "False": supported values: "True"',
      'status.conditions.[2].type: Unsupported value: "Other": supported values: "Issued", "Denied", "Failed"',
    ]);
    expect(update(kind, stored, { spec, status: { certificateChain: 'a' } }, 'status').errors).toEqual([
      'status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"',
    ]);
  });

  const stranger = issueCertificate({
    subject: 'x',
    from: new Date(nowMs),
    to: new Date(nowMs + 2 * hourMs),
  });
  const chain = (fault: string, text = leaf.certificate) => [
    `status.certificateChain: Invalid value: ${JSON.stringify(text)}: ${fault}`,
  ];

  test.each([
    [{}, []],
    [{ certificateChain: 'a' }, chain('issued certificate chain must contain at least one certificate', 'a')],
    [
      { certificateChain: stranger.certificate },
      chain('leaf certificate was not issued to the requested public key', stranger.certificate),
    ],
    [
      { notAfter: undefined },
      ['status.notAfter: Required value: must be present and consistent with the issued certificate'],
    ],
    [
      { notBefore: at(nowMs + 1000) },
      [
        `status.notBefore: Invalid value: "${at(nowMs + 1000)}": must be set to the NotBefore time encoded in the leaf certificate`,
      ],
    ],
    [
      { beginRefreshAt: at(nowMs + 599_000) },
      [
        `status.beginRefreshAt: Invalid value: "${at(nowMs + 599_000)}": must be at least 10 minutes after status.notBefore`,
      ],
    ],
    [
      { beginRefreshAt: at(nowMs + 2 * hourMs - 599_000) },
      [
        `status.beginRefreshAt: Invalid value: "${at(nowMs + 2 * hourMs - 599_000)}": must be at least 10 minutes before status.notAfter`,
      ],
    ],
  ])('%#: is issued with the certificate that was asked for', (given, errors) => {
    const status = { ...issued, ...given };
    expect(update(kind, stored, { spec, status }, 'status').errors).toEqual(errors);
  });

  test('gets no certificate for longer than it asks', () => {
    const brief = create(kind, { spec: { ...spec, maxExpirationSeconds: 3600 } }).stored;
    expect(update(kind, brief, { spec, status: issued }, 'status').errors).toEqual([
      'status.certificateChain: Invalid value: 7200000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (3600)',
    ]);
  });

  test('is answered by those who may sign for its signer', () => {
    const guarded = { ...kind, strategy: podCertificateRequestStrategy(certificateReader, () => false) };
    const context = { ...contextOf(), user: { name: 'jane', uid: '', groups: [], extra: {} } };
    expect(update(guarded, stored, { spec, status: issued }, 'status', context).errors).toEqual([
      'spec.signerName: Forbidden: User "jane" is not permitted to "sign" for signer "example.com/signer"',
    ]);
    expect(update(guarded, stored, { spec, status: {} }, 'status', context).errors).toEqual([]);
  });
});
