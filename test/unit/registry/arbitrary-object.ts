import fc from 'fast-check';
import type { LeafSchema, Schema, StructSchema } from '../../../src/apiserver/schema/schema.ts';

const words = [
  '',
  'a',
  'A_b',
  'a.b.c',
  'None',
  '10.0.0.1',
  'fd00::1',
  '10.0.0.0/8',
  '/x',
  '25%',
  'Always',
  'RollingUpdate',
];
const keys = ['a', '-', 'app', 'example.com/x', 'constructor', 'cpu'];
const numbers = [-1, 0, 1, 80, 70_000];
const maxFields = 6;

/** Objects of a type, with values that rules look at; never deeper than `depth` structs, lists and maps. */
export function arbitraryOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'struct':
      return arbitraryStruct(schema, depth);
    case 'list':
      return depth <= 0 ? fc.constant([]) : fc.array(arbitraryOf(schema.items, depth - 1), { maxLength: 2 });
    case 'map':
      return depth <= 0
        ? fc.constant({})
        : fc.dictionary(fc.constantFrom(...keys), arbitraryOf(schema.values, depth - 1), { maxKeys: 2 });
    case 'union':
      return fc.constant(null);
    default:
      return fc.constantFrom(...leaves(schema.type));
  }
}

function arbitraryStruct(schema: StructSchema, depth: number): fc.Arbitrary<object> {
  if (depth <= 0 || schema.fields.length === 0) return fc.constant({});
  return fc
    .uniqueArray(fc.constantFrom(...schema.fields), { maxLength: maxFields, selector: ({ name }) => name })
    .chain((fields) =>
      fc.record(
        Object.fromEntries(fields.map((field) => [field.name, arbitraryOf(field.schema, depth - 1)])),
      ),
    );
}

function leaves(type: LeafSchema['type']): readonly unknown[] {
  switch (type) {
    case 'string':
      return words;
    case 'boolean':
      return [true, false];
    case 'int32':
    case 'int64':
    case 'number':
      return numbers;
    case 'bytes':
      return ['', 'YQ=='];
    case 'time':
      return ['2020-01-01T00:00:00Z', null];
    case 'microTime':
      return ['2020-01-01T00:00:00.000000Z', null];
    case 'intOrString':
      return [...numbers, 'http', '25%', '101%'];
    case 'quantity':
      return ['0', '1', '-1', '500m', '1Gi'];
    case 'any':
      return [null, 1, {}];
    case 'fieldsV1':
      return [{}];
  }
}
