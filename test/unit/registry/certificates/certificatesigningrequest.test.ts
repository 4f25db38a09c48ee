import { describe, expect, test } from 'vitest';
import { certificateSigningRequestStrategy } from '../../../../src/registry/certificates/certificatesigningrequest.ts';
import { certificateReader } from '../../../../src/apiserver/pki/signing-request.ts';
import { contextOf, create, definitionOf, now, update } from '../decide.ts';

const served = definitionOf('CertificateSigningRequest');
/** Requests and certificates are sound unless they say otherwise. */
const fault = (pem: Uint8Array): string | undefined =>
  Buffer.from(pem).toString() === 'bad' ? 'is bad' : undefined;
const kind = {
  ...served,
  strategy: certificateSigningRequestStrategy({
    ...certificateReader,
    requestFault: fault,
    certificateFault: fault,
  }),
};
const bad = Buffer.from('bad').toString('base64');
const spec = { request: 'YQ==', signerName: 'example.com/signer', usages: ['client auth'] };
const approved = { type: 'Approved', status: 'True', reason: 'a', message: 'b' };

describe('a request', () => {
  test('is from who sends it, and is not decided', () => {
    const context = {
      ...contextOf(),
      user: { name: 'jane', uid: '', groups: ['dev'], extra: { scope: ['a'] } },
    };
    const lie = { ...spec, username: 'root', uid: '1', groups: ['system:masters'], extra: {} };
    const { object } = create(kind, { spec: lie, status: { conditions: [approved] } }, context);
    expect(object).toMatchObject({
      spec: { ...spec, username: 'jane', groups: ['dev'], extra: { scope: ['a'] } },
      status: {},
    });
    expect(object).not.toHaveProperty('spec.uid');
    expect(object).not.toHaveProperty('status.conditions');
  });

  test.each([
    [{ ...spec, request: bad }, ['spec.request: Invalid value: "YmFk": is bad']],
    [{ ...spec, usages: [] }, ['spec.usages: Required value']],
    [{ ...spec, usages: ['any', 'any'] }, ['spec.usages[1]: Duplicate value: "any"']],
    [{ ...spec, signerName: '' }, ['spec.signerName: Required value']],
    [
      { ...spec, signerName: 'kubernetes.io/legacy-unknown' },
      [
        'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version',
      ],
    ],
    [
      { ...spec, signerName: 'example/signer' },
      [
        'spec.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots',
      ],
    ],
    [
      { ...spec, signerName: 'a/b/c' },
      [
        `spec.signerName: Invalid value: "a/b/c": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
      ],
    ],
    [
      { ...spec, expirationSeconds: 599 },
      [
        'spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)',
      ],
    ],
  ])('with %j is refused', (given, errors) => {
    expect(create(kind, { spec: given }).errors).toEqual(errors);
  });

  const { stored } = create(kind, { spec });

  test('is approved by /approval only, which changes nothing else', () => {
    const status = { conditions: [approved], certificate: 'YQ==' };
    expect(update(kind, stored, { spec, status }).object).not.toHaveProperty('status.conditions');
    const decided = update(kind, stored, { spec: {}, status }, 'approval');
    expect(decided.errors).toEqual([]);
    expect(decided.object).toMatchObject({
      spec,
      status: { conditions: [{ ...approved, lastUpdateTime: now, lastTransitionTime: now }] },
    });
    expect(decided.object).not.toHaveProperty('status.certificate');
    expect(update(kind, stored, { status }, 'status').errors).toEqual([
      'status.conditions: Forbidden: updates may not add a condition of type "Approved"',
    ]);
  });

  test('is approved or denied, and that for good', () => {
    const { stored: old } = update(kind, stored, { status: { conditions: [approved] } }, 'approval');
    const denied = { type: 'Denied', status: 'True' };
    expect(update(kind, old, { status: { conditions: [approved, denied] } }, 'approval').errors).toEqual([
      'status.conditions: Invalid value: "{conditions[{\\"type\\": \\"Approved\\"}], conditions[{\\"type\\": \\"Denied\\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`',
    ]);
    expect(update(kind, old, { status: {} }, 'approval').errors).toEqual([
      'status.conditions: Forbidden: updates may not remove a condition of type "Approved"',
    ]);
    const doubtful = [{ type: 'Approved', status: 'False' }, { type: '' }];
    expect(update(kind, stored, { status: { conditions: doubtful } }, 'approval').errors).toEqual([
      'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
      'status.conditions[1].type: Required value',
      'status.conditions[1].status: Required value',
    ]);
  });

  test('gets its certificate from /status, once', () => {
    const { stored: old, errors } = update(kind, stored, { status: { certificate: 'YQ==' } }, 'status');
    expect(errors).toEqual([]);
    expect(update(kind, stored, { status: { certificate: bad } }, 'status').errors).toEqual([
      'status.certificate: Invalid value: "<certificate data>": is bad',
    ]);
    expect(update(kind, old, { status: { certificate: 'Yg==' } }, 'status').errors).toEqual([
      'status.certificate: Forbidden: updates may not modify existing certificate content',
    ]);
  });

  test('keeps decisions in a write of /status that says nothing new', () => {
    const { stored: old } = update(kind, stored, { status: { conditions: [approved] } }, 'approval');
    const status = { conditions: [{ ...approved, reason: 'other' }], certificate: 'YQ==' };
    const issued = update(kind, old, { status }, 'status');
    expect(issued.errors).toEqual([]);
    expect(issued.object).toMatchObject({ status: { conditions: [approved], certificate: 'YQ==' } });
  });
});
