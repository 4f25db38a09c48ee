import { describe, expect, it } from 'vitest';
import { validateBundle, validateCertificate } from '../../../../../src/registry/core/pod/credentials.ts';
import { create, definitionOf } from '../../decide.ts';

type Errors = readonly { readonly field: string; readonly body: string }[];
const texts = (errors: Errors) => errors.map(({ field, body }) => `${field}: ${body}`);

describe('a projected trust bundle', () => {
  it.each([
    [{ name: 'a', path: 'p' }, []],
    [{ name: 'example.com:s:a', path: 'p' }, []],
    [{ signerName: 'example.com/s', labelSelector: {}, path: 'p' }, []],
    [{ path: 'p' }, ['b: Required value: either name or signerName must be specified']],
    [
      { name: 'a', labelSelector: {}, path: '' },
      [
        'b.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified',
        'b.path: Required value',
      ],
    ],
    [
      { signerName: '', path: '/p' },
      [
        'b.signerName: Required value: must be a valid signer name',
        'b.signerName: Required value',
        'b.path: Invalid value: "/p": must be a relative path',
      ],
    ],
  ])('%j has the errors %j', (bundle, errors) => {
    expect(texts(validateBundle(bundle, 'b'))).toEqual(errors);
  });

  it('has one name', () => {
    const [error = ''] = texts(validateBundle({ name: 'a', signerName: 'example.com/s', path: 'p' }, 'b'));
    expect(error).toMatch(/^b: Invalid value: .*: only one of name and signerName may be used$/);
    const [wrong = ''] = texts(validateBundle({ name: 'A', path: 'p' }, 'b'));
    expect(wrong).toMatch(
      /^b.name: Invalid value: "A": not a valid clustertrustbundlename: a lowercase RFC 1123/,
    );
  });
});

describe('a projected certificate', () => {
  const certificate = { signerName: 'example.com/s', keyType: 'ED25519', keyPath: 'k' };

  it.each([
    [{}, []],
    [{ maxExpirationSeconds: 91 * 24 * 3600 }, []],
    [
      { maxExpirationSeconds: 3599 },
      ['c.maxExpirationSeconds: Invalid value: 3599: if provided, maxExpirationSeconds must be >= 3600'],
    ],
    [
      { maxExpirationSeconds: 7_862_401 },
      [
        'c.maxExpirationSeconds: Invalid value: 7862401: if provided, maxExpirationSeconds must be <= 7862400',
      ],
    ],
    [
      { signerName: 'kubernetes.io/s', maxExpirationSeconds: 86_401 },
      ['c.maxExpirationSeconds: Invalid value: 86401: if provided, maxExpirationSeconds must be <= 86400'],
    ],
    [
      { keyType: 'RSA' },
      [
        'c.keyType: Unsupported value: "RSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"',
      ],
    ],
    [
      { keyPath: '' },
      ['c: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath'],
    ],
    [{ userAnnotations: { a: 'b' } }, [expect.stringContaining('must be a domain-prefixed key')]],
  ])('%j has the errors %j', (change, errors) => {
    expect(texts(validateCertificate({ ...certificate, ...change }, 'c'))).toEqual(errors);
  });

  it('is the only source of its item, with files of its own', () => {
    const sources = [
      { podCertificate: certificate, clusterTrustBundle: { name: 'a', path: 'p' } },
      { clusterTrustBundle: { name: 'a', path: 'k' } },
    ];
    const { errors } = create(definitionOf('Pod'), {
      spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', projected: { sources } }] },
    });
    expect(errors).toEqual([
      'spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source',
      'spec.volumes[0].projected: Invalid value: "k": conflicting duplicate paths',
    ]);
  });
});
