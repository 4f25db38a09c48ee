import { describe, expect, test } from 'vitest';
import { isStringMap } from '../../../../src/objects/json.ts';
import type { ObjectMeta } from '../../../../src/objects/meta.ts';
import type { FieldError } from '../../../../src/registry/validation/field-errors.ts';
import {
  validateAnnotations,
  validateCommonFields,
  validateCustomObjectMeta,
  validateFieldManager,
  validateImmutableField,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from '../../../../src/registry/generic/metadata.ts';
import { nameIsDNSSubdomain } from '../../../../src/objects/names.ts';

const rules = { namespaced: true, nameRule: nameIsDNSSubdomain };
const good: ObjectMeta = { name: 'a', namespace: 'ns', uid: 'u' };
const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };

function texts(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, body }) => `${field}: ${body}`);
}

describe('a new object', () => {
  test('with good metadata passes', () => {
    const meta: ObjectMeta = {
      ...good,
      generateName: 'a-',
      labels: { 'example.com/a': '', b: 'c' },
      annotations: { 'Example.COM/A': 'anything at all' },
      finalizers: ['orphan', 'example.com/f'],
      ownerReferences: [{ ...owner, controller: true }, owner],
      managedFields: [{ manager: 'm', operation: 'Apply', fieldsType: 'FieldsV1' }],
    };
    expect(validateObjectMeta(meta, rules)).toEqual([]);
  });

  test.each<[string, ObjectMeta, string[]]>([
    ['no name', { namespace: 'ns' }, ['metadata.name: Required value: name or generateName is required']],
    ['no namespace', { name: 'a' }, ['metadata.namespace: Required value']],
    [
      'bad namespace',
      { ...good, namespace: 'a.b' },
      ['metadata.namespace: Invalid value: "a.b": must not contain dots'],
    ],
    [
      'generation',
      { ...good, generation: -1 },
      ['metadata.generation: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'finalizers that exclude each other',
      { ...good, finalizers: ['foregroundDeletion', 'orphan'] },
      [
        'metadata.finalizers: Invalid value: ["foregroundDeletion","orphan"]: finalizer orphan and foregroundDeletion cannot be both set',
      ],
    ],
    [
      'unqualified finalizer',
      { ...good, finalizers: ['example.com/f', 'x'] },
      [
        'metadata.finalizers[1]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified',
      ],
    ],
    [
      'empty owner',
      { ...good, ownerReferences: [{ apiVersion: 'a/b/c', kind: '', name: '', uid: '' }] },
      [
        'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
        'metadata.ownerReferences[0].kind: Required value: must not be empty',
        'metadata.ownerReferences[0].name: Required value: must not be empty',
        'metadata.ownerReferences[0].uid: Required value: must not be empty',
      ],
    ],
    [
      'Event as an owner',
      { ...good, ownerReferences: [{ uid: 'u', name: 'e', kind: 'Event', apiVersion: 'v1' }] },
      [
        'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
      ],
    ],
    [
      'two controllers',
      {
        ...good,
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, name: 'q', controller: true },
        ],
      },
      [
        'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"u","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q',
      ],
    ],
    [
      'managed fields',
      { ...good, managedFields: [{ subresource: 'x'.repeat(257) }] },
      [
        'metadata.managedFields[0].operation: Required value: must not be empty',
        'metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes',
      ],
    ],
    [
      'an owner without a version',
      { ...good, ownerReferences: [{ apiVersion: '', kind: 'Pod', name: 'p', uid: 'u' }] },
      ['metadata.ownerReferences[0].apiVersion: Required value: must not be empty'],
    ],
  ])('%s', (_, meta, expected) => expect(texts(validateObjectMeta(meta, rules))).toEqual(expected));

  test('of a cluster-scoped kind has no namespace', () => {
    expect(
      texts(validateCustomObjectMeta(good, { ...rules, namespaced: false, path: 'x.metadata' })),
    ).toEqual(['x.metadata.namespace: Forbidden: not allowed on this type']);
  });

  test('shows name and generateName errors, and keys before values', () => {
    const meta = { ...good, name: 'A', generateName: 'A', labels: { '-': '-' } };
    expect(validateObjectMeta(meta, rules).map(({ field }) => field)).toEqual([
      'metadata.generateName',
      'metadata.name',
      'metadata.labels',
      'metadata.labels',
    ]);
  });
});

describe('a changed object', () => {
  test.each<[string, ObjectMeta, ObjectMeta, string[]]>([
    ['nothing changed', good, good, []],
    [
      'identity',
      { name: 'b', namespace: 'other', uid: 'v', creationTimestamp: '2026-01-01T00:00:00Z' },
      good,
      [
        'metadata.name: Invalid value: "b": field is immutable',
        'metadata.namespace: Invalid value: "other": field is immutable',
        'metadata.uid: Invalid value: "v": field is immutable',
        'metadata.creationTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable',
      ],
    ],
    [
      'deletion',
      { ...good, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 },
      good,
      [
        'metadata.deletionTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable',
        'metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable',
      ],
    ],
    [
      'generation lowered',
      { ...good, generation: 1 },
      { ...good, generation: 2 },
      ['metadata.generation: Invalid value: 1: must not be decremented'],
    ],
    [
      'finalizers added while deleting, sorted and once each',
      { ...good, deletionTimestamp: 't', finalizers: ['x/c', 'x/b', 'x/a', 'x/c'] },
      { ...good, deletionTimestamp: 't', finalizers: ['x/a'] },
      [
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/b", "x/c"}',
      ],
    ],
    ['finalizers added before', { ...good, finalizers: ['x/b'] }, good, []],
  ])('%s', (_, meta, old, expected) => expect(texts(validateObjectMetaUpdate(meta, old))).toEqual(expected));

  test('passes the pipeline’s rules first: those of a new object, then those of a change', () => {
    const meta = { ...good, uid: 'v', labels: { '-': '' } };
    expect(validateCommonFields(meta, good, true).map(({ field }) => field)).toEqual([
      'metadata.labels',
      'metadata.uid',
      'metadata.labels',
    ]);
    expect(texts(validateCommonFields({ ...good, finalizers: ['x'] }, good, true))).toEqual([]);
  });
});

test('annotations are measured together, in bytes', () => {
  expect(validateAnnotations({ a: 'x'.repeat(262143) }, 'p')).toEqual([]);
  expect(texts(validateAnnotations({ a: 'ä'.repeat(131072) }, 'p'))).toEqual([
    'p: Too long: may not be more than 262144 bytes',
  ]);
});

test('keys that are members of every object are ordinary keys', () => {
  const labels: unknown = JSON.parse('{"__proto__": "a b", "constructor": "a b"}');
  if (!isStringMap(labels)) throw new Error('not a map');
  const errors = validateObjectMeta({ ...good, labels }, rules);
  expect(errors.filter(({ body }) => body.startsWith('Invalid value: "a b"'))).toHaveLength(2);
});

test('a field manager is printable and at most 128 bytes', () => {
  expect(validateFieldManager('kubectl client-side äpply', 'p')).toEqual([]);
  expect(texts(validateFieldManager('ä\u0007', 'p'))).toEqual([
    'p: Invalid value: "ä\\a": invalid character U+0007 (at position 2)',
  ]);
  expect(texts(validateFieldManager('m'.repeat(129), 'p'))).toEqual([
    'p: Too long: may not be more than 128 bytes',
  ]);
});

test('an immutable field is compared by content', () => {
  expect(validateImmutableField({ a: 1, b: undefined }, { a: 1 }, 'p')).toEqual([]);
  expect(texts(validateImmutableField(undefined, { a: 1 }, 'p'))).toEqual([
    'p: Invalid value: null: field is immutable',
  ]);
});
