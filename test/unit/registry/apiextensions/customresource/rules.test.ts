import type {
  JSONSchemaProps,
  ValidationRule,
} from '../../../../../src/objects/types/apiextensions.generated.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeName, unescapeName } from '../../../../../src/registry/apiextensions/rules/decl-type.ts';
import { validateRules } from '../../../../../src/registry/apiextensions/rules/validate-rules.ts';

type Properties = Readonly<Record<string, JSONSchemaProps>>;

function withRule(schema: JSONSchemaProps, ...rules: readonly (string | ValidationRule)[]): JSONSchemaProps {
  const all = rules.map((rule) => (typeof rule === 'string' ? { rule } : rule));
  return { ...schema, 'x-kubernetes-validations': all };
}

function object(properties: Properties): JSONSchemaProps {
  return { type: 'object', properties };
}

/** What `spec` of an object breaks; `before` is the stored spec of an update. */
function faults(spec: JSONSchemaProps, value: unknown, before?: unknown): string[] {
  const old = before === undefined ? undefined : { spec: before };
  const { errors } = validateRules(object({ spec }), { spec: value }, old);
  return errors.map(({ field, body }) => `${field}: ${body}`);
}

const text: JSONSchemaProps = { type: 'string' };
const number: JSONSchemaProps = { type: 'integer' };
const texts: JSONSchemaProps = { type: 'array', items: text };
const hosts: JSONSchemaProps = {
  type: 'array',
  items: object({ name: text, port: number }),
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
};

describe('a value holds its rule', () => {
  test.each<[string, JSONSchemaProps, unknown]>([
    ['self.min <= self.max', object({ min: number, max: number }), { min: 1, max: 2 }],
    ['!has(self.a) || !has(self.b)', object({ a: text, b: text }), { a: 'x' }],
    // Null in a property is as if it were missing.
    ['!has(self.a)', object({ a: { type: 'string', nullable: true } }), { a: null }],
    ["self.__namespace__ == 'x'", object({ namespace: text }), { namespace: 'x' }],
    ["self.a__dash__b__dot__c__slash__d == 'x'", object({ 'a-b.c/d': text }), { 'a-b.c/d': 'x' }],
    ["self.a__underscores__b == 'x'", object({ a__b: text }), { a__b: 'x' }],
    [
      "type(self.port) == int ? self.port < 10 : self.port.endsWith('%')",
      object({ port: { 'x-kubernetes-int-or-string': true } }),
      { port: '5%' },
    ],
    ["self.d > duration('59s')", object({ d: { type: 'string', format: 'duration' } }), { d: '1m' }],
    ["self.d == duration('48h')", object({ d: { type: 'string', format: 'duration' } }), { d: '2d' }],
    [
      "self.t < timestamp('2030-01-01T00:00:00Z')",
      object({ t: { type: 'string', format: 'date' } }),
      { t: '2024-02-29' },
    ],
    ['self.b.size() == 3', object({ b: { type: 'string', format: 'byte' } }), { b: 'YWJj' }],
    // Keywords are names behind a dot.
    ["self.if == 'x' && has(self.if)", object({ if: text }), { if: 'x' }],
    ['self.n > 0.5', object({ n: { type: 'number' } }), { n: 1 }],
    [
      'self.m.all(k, self.m[k].startsWith(k))',
      object({ m: { type: 'object', additionalProperties: text } }),
      { m: { a: 'ab' } },
    ],
    [
      "self.e.kind == 'Pod' && self.e.metadata.name == 'p'",
      object({
        e: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
      }),
      { e: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } } },
    ],
    // Sets and maps have no order.
    ["self.s == ['b', 'a']", object({ s: { ...texts, 'x-kubernetes-list-type': 'set' } }), { s: ['a', 'b'] }],
    [
      "self.s + ['a', 'c'] == ['c', 'b', 'a']",
      object({ s: { ...texts, 'x-kubernetes-list-type': 'set' } }),
      { s: ['a', 'b'] },
    ],
    ["self.s != ['b', 'a']", object({ s: texts }), { s: ['a', 'b'] }],
    // A list with an item twice has fewer than it seems.
    ["self.s != ['a', 'a']", object({ s: { ...texts, 'x-kubernetes-list-type': 'set' } }), { s: ['a', 'b'] }],
  ])('%s', (rule, schema, value) => {
    expect(faults(withRule(schema, rule), value)).toEqual([]);
  });

  test('with sets of lists or objects, which cannot be compared', () => {
    const sets = { type: 'array', 'x-kubernetes-list-type': 'set', items: texts };
    const [fault = ''] = faults(
      withRule(object({ s: sets }), 'self.s == oldSelf.s'),
      { s: [['a']] },
      { s: [['b']] },
    );
    expect(fault).toContain('listSet operations are only supported on lists of scalar values');
  });

  test('with lists of map items, whose order does not count', () => {
    const before = [
      { name: 'x', port: 1 },
      { name: 'y', port: 2 },
    ];
    const same = withRule(object({ a: hosts }), 'self.a == oldSelf.a');
    expect(faults(same, { a: [...before].reverse() }, { a: before })).toEqual([]);
    expect(faults(same, { a: [{ name: 'x', port: 2 }, before[1]] }, { a: before })).toHaveLength(1);
    const merged = withRule(object({ a: hosts }), '(oldSelf.a + self.a).map(h, h.port) == [1, 3, 4]');
    const next = [
      { name: 'z', port: 4 },
      { name: 'y', port: 3 },
    ];
    expect(faults(merged, { a: next }, { a: before })).toEqual([]);
  });

  test('with members that the schema does not know', () => {
    const free: JSONSchemaProps = { ...object({ x: text }), 'x-kubernetes-preserve-unknown-fields': true };
    const same = withRule(object({ a: free }), 'self.a == oldSelf.a');
    expect(faults(same, { a: { x: '1', y: 1 } }, { a: { x: '1', y: 1 } })).toEqual([]);
    expect(faults(same, { a: { x: '1', y: 2 } }, { a: { x: '1', y: 1 } })).toHaveLength(1);
  });

  test('and is asked about the parts of lists and maps', () => {
    const short = withRule(text, 'self.size() < 3');
    const schema = object({
      list: { type: 'array', items: short },
      map: { type: 'object', additionalProperties: short },
    });
    const told = withRule(text, { rule: 'self.size() < 3', messageExpression: "'is ' + self" });
    expect(faults(object({ a: told }), { a: 'abc' })).toEqual(['spec.a: Invalid value: "abc": is abc']);
    expect(faults(schema, { list: ['a', 'abc'], map: { k: 'abcd' } })).toEqual([
      'spec.list[1]: Invalid value: "abc": failed rule: self.size() < 3',
      'spec.map[k]: Invalid value: "abcd": failed rule: self.size() < 3',
    ]);
  });

  test('at the root, where kube-apiserver names no field', () => {
    const schema = withRule(object({ spec: text }), "self.metadata.name == self.spec && self.kind == 'Boat'");
    const boat = { apiVersion: 'x/v1', kind: 'Boat', metadata: { name: 'a' }, spec: 'b' };
    expect(validateRules(schema, boat).errors).toEqual([
      {
        field: '<nil>',
        reason: 'FieldValueInvalid',
        body: "Invalid value: failed rule: self.metadata.name == self.spec && self.kind == 'Boat'",
      },
    ]);
  });
});

describe('a broken rule', () => {
  const schema = (rule: Partial<ValidationRule>) =>
    withRule(object({ a: number, b: object({ 'c-d': text }) }), { rule: 'self.a > 1', ...rule });
  const broken = { a: 1 };

  test.each<[string, Partial<ValidationRule>, string]>([
    ['names itself', {}, 'spec: Invalid value: failed rule: self.a > 1'],
    ['has a message', { message: ' too small ' }, 'spec: Invalid value: too small'],
    ['makes its message', { messageExpression: "'is ' + string(self.a)" }, 'spec: Invalid value: is 1'],
    [
      'falls back when the message cannot be made',
      { messageExpression: 'string(1 / (self.a - 1))', message: 'too small' },
      'spec: Invalid value: too small',
    ],
    [
      'falls back when the message is empty, has several lines or is too long',
      { messageExpression: "'a\\nb'" },
      'spec: Invalid value: failed rule: self.a > 1',
    ],
    ['has a reason', { reason: 'FieldValueForbidden', message: 'no' }, 'spec: Forbidden: no'],
    ['may be a duplicate', { reason: 'FieldValueDuplicate' }, 'spec: Duplicate value'],
    [
      'may be required',
      { reason: 'FieldValueRequired', message: 'give it' },
      'spec: Required value: give it',
    ],
    ['names a field', { fieldPath: '.a' }, 'spec.a: Invalid value: failed rule: self.a > 1'],
    [
      'names a quoted field',
      { fieldPath: ".b['c-d']" },
      'spec.b.c-d: Invalid value: failed rule: self.a > 1',
    ],
  ])('%s', (_name, rule, expected) => {
    expect(faults(schema(rule), broken)).toEqual([expected]);
  });

  test('that fails to be evaluated is told with its failure', () => {
    expect(faults(withRule(object({ a: number }), '10 / self.a > 1'), { a: 0 })).toEqual([
      'spec: Invalid value: "object": division by zero evaluating rule: 10 / self.a > 1',
    ]);
    const port = object({ port: { 'x-kubernetes-int-or-string': true } });
    expect(faults(withRule(port, 'self.port > 5'), { port: 'x' })).toEqual([
      `spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: self.port > 5`,
    ]);
  });

  test('that costs too much ends the validation', () => {
    const heavy = withRule(
      object({ l: texts }),
      'self.l.all(a, self.l.all(b, self.l.all(c, true)))',
      'false',
    );
    const l = Array.from({ length: 200 }, (_, i) => `item ${i}`);
    expect(faults(heavy, { l })).toEqual([
      `spec: Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.l.all(a, self.l.all(b, self.l.all(c, true)))`,
    ]);
  });

  test('ends the validation when all rules of the object together cost too much', () => {
    const items = { type: 'array', items: withRule(texts, 'self.all(a, self.all(b, true))') };
    const row = Array.from({ length: 300 }, () => 'x');
    const found = faults(
      items,
      Array.from({ length: 60 }, () => row),
    );
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(
      'validation failed due to running out of cost budget, no further validation rules will be run',
    );
  });
});

describe('a transition rule', () => {
  const fixed = withRule(object({ a: number }), 'self.a >= oldSelf.a');

  test('is not asked on create', () => {
    expect(faults(fixed, { a: 1 })).toEqual([]);
  });

  test('compares with the stored value', () => {
    expect(faults(fixed, { a: 1 }, { a: 2 })).toEqual([
      'spec: Invalid value: failed rule: self.a >= oldSelf.a',
    ]);
    expect(faults(fixed, { a: 2 }, { a: 1 })).toEqual([]);
  });

  test('is not asked about a value that was not there', () => {
    const schema = object({ a: withRule(number, 'self == oldSelf') });
    expect(faults(schema, { a: 1 }, {})).toEqual([]);
    expect(faults(schema, { a: 1 }, { a: 2 })).toHaveLength(1);
  });

  test('finds items of maps by their keys, wherever they stand', () => {
    const schema = {
      ...hosts,
      items: withRule(object({ name: text, port: number }), 'self.port == oldSelf.port'),
    };
    const before = [
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ];
    expect(
      faults(
        schema,
        [
          { name: 'b', port: 2 },
          { name: 'a', port: 1 },
          { name: 'c', port: 3 },
        ],
        before,
      ),
    ).toEqual([]);
    expect(faults(schema, [{ name: 'b', port: 1 }], before)).toEqual([
      'spec[0]: Invalid value: failed rule: self.port == oldSelf.port',
    ]);
  });

  test('with an optional oldSelf is asked on create as well', () => {
    const schema = withRule(object({ a: number }), {
      rule: 'self.a > oldSelf.?a.orValue(0)',
      optionalOldSelf: true,
    });
    expect(faults(schema, { a: 0 })).toHaveLength(1);
    expect(faults(schema, { a: 1 })).toEqual([]);
    expect(faults(schema, { a: 1 }, { a: 1 })).toHaveLength(1);
  });
});

describe('ratcheting', () => {
  const schema = object({
    a: withRule(text, "self != 'bad'"),
    list: { type: 'array', items: withRule(text, "self != 'bad'") },
    other: text,
  });

  test('lets a value be that was wrong before, and tells of it', () => {
    const value = { a: 'bad', other: 'new' };
    const { errors, tolerated } = validateRules(
      object({ spec: schema }),
      { spec: value },
      { spec: { a: 'bad' } },
    );
    expect(errors).toEqual([]);
    expect(tolerated.map(({ field, body }) => `${field}: ${body}`)).toEqual([
      `spec.a: Invalid value: "bad": failed rule: self != 'bad'`,
    ]);
  });

  test('looks at the list where items cannot be told apart', () => {
    const before = { list: ['bad'] };
    expect(faults(schema, { list: ['bad'], other: 'new' }, before)).toEqual([]);
    expect(faults(schema, { list: ['bad', 'good'] }, before)).toHaveLength(1);
  });

  test('does not let a transition rule be', () => {
    const never = withRule(object({ a: text }), 'self.a != oldSelf.a');
    expect(faults(never, { a: 'x' }, { a: 'x' })).toHaveLength(1);
  });
});

test('any name that can be escaped comes back', () => {
  const part = fc.constantFrom('a', 'b1', '_', '__', '-', '.', '/', 'in', 'for', 'dot', 'dash');
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
      const name = parts.join('');
      const escaped = escapeName(name);
      if (escaped === undefined) return;
      expect(escaped).toMatch(/^[A-Za-z_][A-Za-z0-9_]*$/);
      expect(unescapeName(escaped)).toBe(name);
    }),
  );
});
