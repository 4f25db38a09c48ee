import { describe, expect, test } from 'vitest';
import { References } from '../../../../src/network/gateway/references.ts';
import type { ReferenceGrant } from '../../../../src/objects/types/gateway.ts';
import { grant, objectsOf, pairOf } from './objects.ts';

const from = { kind: 'Gateway', namespace: 'shop' };
const reasons = { kind: 'WrongKind', object: 'NoObject' };
const toSecret = { name: 'cert', namespace: 'other' };

function certificate(grants: readonly ReferenceGrant[], reference: object = toSecret): unknown {
  const references = new References(objectsOf({ grants, secrets: { 'other/cert': undefined } }));
  const found = references.certificate(from, { name: 'cert', ...reference }, reasons);
  return 'pair' in found ? found.pair : found.reason;
}

describe('a reference into another namespace', () => {
  const permitted = pairOf('other/cert');
  test.each([
    ['no grant', [], 'RefNotPermitted'],
    ['a grant for all names', [grant('other', 'Gateway shop', 'Secret')], permitted],
    ['a grant for the name', [grant('other', 'Gateway shop', 'Secret cert')], permitted],
    [
      'one of two grants',
      [grant('other', 'Gateway shop', 'Secret x'), grant('other', 'Gateway shop', 'Secret cert')],
      permitted,
    ],
    ['a grant for another name', [grant('other', 'Gateway shop', 'Secret x')], 'RefNotPermitted'],
    ['a grant for another kind', [grant('other', 'Gateway shop', 'Service')], 'RefNotPermitted'],
    ['a grant for another namespace', [grant('other', 'Gateway a', 'Secret')], 'RefNotPermitted'],
    ['a grant for another kind of objects', [grant('other', 'HTTPRoute shop', 'Secret')], 'RefNotPermitted'],
    ['a grant in a third namespace', [grant('shop', 'Gateway shop', 'Secret')], 'RefNotPermitted'],
  ])('by %s', (_, grants, expected) => {
    expect(certificate(grants)).toEqual(expected);
  });

  test('of an object of another group', () => {
    const [given] = [grant('other', 'Gateway shop', 'Secret')];
    const foreign = {
      ...given,
      spec: { ...given.spec, from: [{ group: 'x.y', kind: 'Gateway', namespace: 'shop' }] },
    };
    expect(certificate([foreign])).toBe('RefNotPermitted');
  });

  test('does not say whether its target exists', () => {
    const none = { name: 'none', namespace: 'other' };
    expect(certificate([], none)).toBe('RefNotPermitted');
    expect(certificate([grant('other', 'Gateway shop', 'Secret')], none)).toBe('NoObject');
  });
});

test('what was looked up is remembered, what may not be is not looked up', () => {
  const references = new References(objectsOf({ grants: [grant('third', 'Gateway shop', 'Secret')] }));
  references.certificate(from, { name: 'cert' }, reasons);
  references.certificate(from, { name: 'cert', namespace: 'other' }, reasons);
  references.certificate(from, { name: 'cert', namespace: 'third' }, reasons);
  references.certificate(from, { name: 'cert', kind: 'ConfigMap' }, reasons);
  references.authority(from, { name: 'ca', kind: 'ConfigMap' }, reasons);
  references.service('shop/web');
  references.policies('shop/web');
  references.namespaceLabels('shop');
  expect([...references.lookups]).toEqual([
    'Secret shop/cert',
    'ReferenceGrant other',
    'ReferenceGrant third',
    'Secret third/cert',
    'ConfigMap shop/ca',
    'Service shop/web',
    'BackendTLSPolicy shop/web',
    'Namespace shop',
  ]);
});
