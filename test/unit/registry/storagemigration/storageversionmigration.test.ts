import { describe, expect, test } from 'vitest';
import { create, definitionOf, now, update } from '../decide.ts';

const kind = definitionOf('StorageVersionMigration');
const spec = { resource: { group: 'example.com', resource: 'widgets' } };
const condition = (type: string, status = 'True') => ({
  ...{ type, status, reason: 'Because', message: '', lastTransitionTime: now },
});

describe('a migration', () => {
  test.each([
    [{}, ['spec.resource.resource: Required value: resource is required to be set']],
    [{ resource: { resource: 'pods' } }, []],
    [
      { resource: { resource: 'Pods', group: 'A' } },
      [
        expect.stringMatching(
          /^spec.resource.resource: Invalid value: "Pods": a DNS-1035 label must consist/,
        ),
        expect.stringMatching(/^spec.resource.group: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      ],
    ],
  ])('of %j is judged', (given, errors) => {
    expect(create(kind, { spec: given }).errors).toEqual(errors);
  });

  const { stored, object } = create(kind, { spec, status: { resourceVersion: '5' } });

  test('begins without a status, and its spec stays', () => {
    expect(object).toMatchObject({ spec, status: {} });
    expect(update(kind, stored, { spec: { resource: { resource: 'pods' } } }).errors).toEqual([
      'spec: Invalid value: {"Resource":{"group":"","resource":"pods"}}: field is immutable',
    ]);
  });

  const write = (old: object, status: object) =>
    update(kind, { ...stored, ...{ status: old } }, { spec, status }, 'status').errors;

  test('begins at one version', () => {
    expect(write({}, { resourceVersion: '5' })).toEqual([]);
    expect(write({}, { resourceVersion: '05' })).toEqual([
      'status.resourceVersion: Invalid value: "05": resource version is not well formed: 05',
    ]);
    expect(write({ resourceVersion: '5' }, { resourceVersion: '6' })).toEqual([
      'status.resourceVersion: Invalid value: "6": field is immutable',
    ]);
  });

  test('has one end, which stays', () => {
    const of = (...types: string[]) => ({ conditions: types.map((type) => condition(type)) });
    expect(write({}, of('Running', 'Succeeded'))).toEqual([]);
    expect(write({}, of('Failed', 'Succeeded'))).toEqual([
      expect.stringMatching(/: Both success and failed conditions cannot be true at the same time$/),
    ]);
    expect(write(of('Succeeded'), { conditions: [condition('Succeeded', 'False')] })).toEqual([
      expect.stringMatching(/: Success condition cannot be set to false once it is true$/),
    ]);
    expect(write(of('Failed'), {})).toEqual([
      'status.conditions: Invalid value: []: Failed condition cannot be set to false once it is true',
    ]);
  });
});
