import { describe, expect, test } from 'vitest';
import { issueCertificate } from '../../../support/certificates.ts';
import { create, definitionOf, update } from '../decide.ts';

const kind = definitionOf('ClusterTrustBundle');
const { certificate: root } = issueCertificate({ subject: 'root', isCA: true });
const { certificate: leaf } = issueCertificate({ subject: 'leaf' });

describe('a bundle of trust', () => {
  test.each([
    [root, []],
    [`hello\n${root}`, []],
    ['', ['at least one trust anchor must be provided']],
    [leaf, ['entry 0 does not have the CA bit set']],
    [
      root.replaceAll('CERTIFICATE', 'PRIVATE KEY') + leaf,
      ['entry 0 has bad block type: PRIVATE KEY', 'entry 1 does not have the CA bit set'],
    ],
    [root.replace('-----\n', '-----\na: b\n\n'), ['entry 0 has PEM block headers']],
    ['-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n', ['entry 0 does not parse as X.509']],
    [root + root, ['duplicate trust anchor (indices [0 1])']],
  ])('%#: has authorities, each once', (trustBundle, faults) => {
    expect(create(kind, { spec: { trustBundle } }).errors).toEqual(
      faults.map((fault) => `spec.trustBundle: Invalid value: "<value omitted>": ${fault}`),
    );
  });

  test('has at most one MiB', () => {
    expect(create(kind, { spec: { trustBundle: root.padEnd(2 ** 20 + 1) } }).errors).toEqual([
      'spec.trustBundle: Too long: may not be more than 1048576 bytes',
    ]);
    expect(create(kind, { spec: { trustBundle: root.padEnd(2 ** 20) } }).errors).toEqual([]);
  });

  test.each([
    ['', 'a:b', 'ClusterTrustBundle without signer name must not have ":" in its name'],
    [
      'a.example/b',
      'c',
      'ClusterTrustBundle for signerName a.example/b must be named with prefix a.example:b:',
    ],
    ['a.example/b', 'a.example:b:c', undefined],
  ])('of the signer %j may be named %s: %s', (signerName, name, fault) => {
    const body = { metadata: { name }, spec: { signerName, trustBundle: root } };
    expect(create(kind, body).errors).toEqual(
      fault === undefined ? [] : [`metadata.name: Invalid value: "${name}": ${fault}`],
    );
  });

  const { stored } = create(kind, {
    metadata: { name: 'a.example:b:c', resourceVersion: '1' },
    spec: { signerName: 'a.example/b', trustBundle: root },
  });

  test('keeps its signer', () => {
    expect(update(kind, stored, { spec: { signerName: 'a.example/x', trustBundle: root } }).errors).toEqual([
      'metadata.name: Invalid value: "a.example:b:c": ClusterTrustBundle for signerName a.example/x must be named with prefix a.example:x:',
      'spec.signerName: Invalid value: "a.example/x": field is immutable',
    ]);
  });

  test('is read again only when it changes', () => {
    const old = { ...stored, spec: { signerName: 'a.example/b', trustBundle: 'once valid' } };
    expect(update(kind, old, { spec: old.spec }).errors).toEqual([]);
    expect(update(kind, old, { spec: { ...old.spec, trustBundle: 'new' } }).errors).toHaveLength(1);
  });

  test('is selected by its signer', () => {
    expect(kind.strategy.fields?.(stored)).toEqual({ 'spec.signerName': 'a.example/b' });
  });
});
