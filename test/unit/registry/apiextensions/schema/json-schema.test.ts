import fc from 'fast-check';
import { expect, test } from 'vitest';
import { push, type SchemaErrors } from '../../../../../src/registry/apiextensions/schema/json-schema.ts';
import { invalid } from '../../../../../src/registry/validation/field-errors.ts';

test('a verdict has each error once, in the order in which they were found, however many there are', () => {
  const error = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(9).map(String));
  fc.assert(
    fc.property(fc.array(error, { maxLength: 60 }), (found) => {
      const verdict: SchemaErrors = { errors: [], length: 0, matches: 0 };
      for (const [field, why] of found) push(verdict, invalid(field, '', why));
      const expected = [...new Set(found.map(([field, why]) => `${field} ${invalid(field, '', why).body}`))];
      expect(verdict.errors.map(({ field, body }) => `${field} ${body}`)).toEqual(expected);
    }),
  );
});
