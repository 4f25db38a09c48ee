import type { JSONSchemaProps } from '../../../src/objects/types/apiextensions.generated.ts';
import { describe, expect, test } from 'vitest';
import { Program } from '../../../src/cel/program.ts';
import { declSize, maxElementsAt } from '../../../src/registry/apiextensions/rules/decl-type.ts';
import { declType } from '../../../src/registry/apiextensions/rules/decl-type.ts';
import { toValue } from '../../../src/registry/apiextensions/rules/schema-values.ts';

const text: JSONSchemaProps = { type: 'string' };
const integer: JSONSchemaProps = { type: 'integer' };
const number: JSONSchemaProps = { type: 'number' };
const truth: JSONSchemaProps = { type: 'boolean' };
const intOrString: JSONSchemaProps = { 'x-kubernetes-int-or-string': true };

function short(maxLength: number): JSONSchemaProps {
  return { type: 'string', maxLength };
}
function formatted(format: string): JSONSchemaProps {
  return { type: 'string', format };
}
function list(items: JSONSchemaProps, more: JSONSchemaProps = {}): JSONSchemaProps {
  return { type: 'array', items, ...more };
}
function map(values: JSONSchemaProps): JSONSchemaProps {
  return { type: 'object', additionalProperties: values };
}
function object(properties: Readonly<Record<string, JSONSchemaProps>>): JSONSchemaProps {
  return { type: 'object', properties };
}

function programOf(schema: JSONSchemaProps, rule: string): Program {
  const type = declType(schema, false);
  if (type === undefined) throw new Error('the schema has no type');
  return new Program(
    rule,
    new Map([
      ['self', type],
      ['oldSelf', type],
    ]),
  );
}

/** The units that kube-apiserver counts are in its own tests: `celcoststability_test.go`. */
describe('an evaluation costs', () => {
  const words = 'Rook takes 👑';
  const hosts = list(object({ k: text, v: text, v2: text }), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  });
  const schema = object({
    t: text,
    n: integer,
    d: formatted('duration'),
    ios: intOrString,
    list: list(integer),
    hosts,
    map: map(integer),
    deep: object({ there: object({ leaf: integer }), absent: object({ leaf: integer }), gone: text }),
  });
  const value = {
    t: words,
    n: 10,
    d: '1h2m3s4ms',
    ios: '25%',
    list: [1, 1, 2, 2, 3, 3, 4, 5],
    hosts: [
      { k: 'a1', v: 'b1' },
      { k: 'a2', v: 'b2' },
      { k: 'a3', v: 'b3', v2: 'z' },
    ],
    map: { b: 1, d: 2 },
    deep: { there: { leaf: 4 } },
  };

  test.each<[string, number]>([
    // A variable and each member cost a unit, so do calls; literals and what is made of them cost none.
    ['self.n == 10', 3],
    ['type(self.n) == int', 4],
    ['double(5) < 10.0', 1],
    ["self.d == duration('1h2m') + duration('3s4ms')", 4],
    ["self.t in ['Pending', 'Rook takes 👑']", 2],
    // Texts cost by their characters.
    ["self.t.startsWith('Rook')", 4],
    ["self.t.matches('^[^0-9]*$')", 8],
    ["self.t.indexOf('o') == 1", 4],
    ["self.t.replace(' ', 'x') == 'Rookxtakesx👑'", 7],
    ["self.t.split(' ') == ['Rook', 'takes', '👑']", 6],
    ["self.t.upperAscii() == 'ROOK TAKES 👑'", 6],
    // To ask whether a member is there is free.
    ['has(self.deep.there.leaf)', 3],
    ['!(has(self.deep.absent) && has(self.deep.absent.leaf))', 3],
    ["type(self.ios) == int ? self.ios == 1 : self.ios == '25%'", 7],
    // Lists are looked through, maps are looked up.
    ['2 in self.list', 10],
    ["!('a' in self.map)", 4],
    ['self.list + [4, 5] == [1, 1, 2, 2, 3, 3, 4, 5, 4, 5]', 4],
    ['self.hosts[0] == self.hosts[0]', 7],
    // Macros cost what their loops cost.
    ['self.list.all(e, e > 0)', 43],
    ['self.list.exists(e, e > 2)', 36],
    ['self.list.exists_one(e, e > 4)', 22],
    ['size(self.list.filter(e, e%2 == 0)) == 3', 68],
    ['self.list.map(e, e * 20).filter(e, e > 50).exists(e, e == 60)', 194],
    ['self.map.all(k, self.map[k] > 0)', 17],
    ["self.hosts.map(m, has(m.v2) && m.v2 == 'z', m.v2).size() == 1", 25],
    // An operand that fails has cost something.
    ["self.hosts.exists(m, m.v2 == 'z')", 24],
    ["!self.hosts.all(m, m.v2 != 'z')", 22],
    // Optionals: a member that is missing costs nothing, and or() is not a call.
    ["self.deep.?gone.orValue('v') == 'v'", 3],
    ["optional.of('a').or(optional.of('a')).hasValue()", 2],
    ["optional.of('a').optMap(v, v == 'a').hasValue()", 8],
  ])('%s: %i', (rule, cost) => {
    const program = programOf(schema, rule);
    const outcome = program.evaluate(new Map([['self', toValue(schema, value)]]), 1_000_000);
    expect(outcome).toMatchObject({ value: true, error: undefined, cost });
  });

  test('no more than its limit', () => {
    const program = programOf(schema, 'self.list.all(e, e > 0)');
    const bindings = new Map([['self', toValue(schema, value)]]);
    expect(program.evaluate(bindings, 43).value).toBe(true);
    expect(program.evaluate(bindings, 42).error?.message).toBe(
      'operation cancelled: actual cost limit exceeded',
    );
  });
});

/** kube-apiserver's own tests have these: `compilation_test.go` TestCostEstimation. */
describe('an expression is estimated to cost at most', () => {
  test.each<[string, JSONSchemaProps, number]>([
    // How many items fit into a request depends on the smallest of them.
    ['self.all(x, true)', list(number), 4718591],
    ['self.all(x, true)', list(truth), 1887437],
    ['self.all(x, true)', list(list(number)), 3145727],
    ['self.all(x, true)', list(formatted('date-time')), 428963],
    ['self.all(x, true)', map(text), 1179647],
    ['self.all(x, true)', list(number, { maxItems: 10 }), 32],
    ['self.all(x, self.all(y, self.all(z, true)))', list(number, { maxItems: 10 }), 3552],
    // Texts are as long as a request, unless the schema says how long.
    ["self.contains('test')", text, 314574],
    ["self.contains('test')", short(10), 5],
    ["self.startsWith('test')", text, 2],
    ['self.matches("x")', text, 314574],
    ['size(self + "hello") > size("hello")', text, 314578],
    ["self.contains('A')", { type: 'string', enum: ['A', 'B', 'C', 'LongValue'] }, 2],
    ['self[1] == self[1]', list(text, { maxItems: 8 }), 314577],
    ['self["a"] == self["b"]', map(formatted('date-time')), 8],
    ['self[0] == 5', list(intOrString), 3],
    ['self.all(x, x.contains(self[x]))', map(text), 2752507],
    ['oldSelf.size() == self.size()', map(integer), 5],
    // Functions with names before theirs, and names of types.
    ["sets.contains(self, ['a'])", list(text), 1048587],
    ["sets.equivalent(self, ['a', 'b', 'c'])", list(text), 6291462],
    ['type(self.t) == google.protobuf.Timestamp', object({ t: formatted('date-time') }), 4],
    // Kubernetes' functions have costs of their own.
    ['isQuantity(self)', text, 314574],
    ['isQuantity("200M")', text, 1],
    ['isIP(self)', short(10), 5],
    ['ip.isCanonical(self)', short(10), 9],
    ['cidr("192.168.0.0/24").containsCIDR("192.168.0.0/25")', text, 11],
    ["self.find('[0-9]+') == ''", short(10), 11],
    ["self.join(' ') == 'aa bb'", list(text), 329853068905],
    ['self.isSorted() == true', list(short(10), { maxItems: 10 }), 52],
    ['self.str.split(self.str) == []', object({ str: short(10) }), 22],
    ["self.lowerAscii() == 'lower!'", text, 314575],
    [
      "self.str.replace(self.before, self.after) == 'does not matter'",
      object({ str: short(4), before: short(2), after: short(4) }),
      12,
    ],
  ])('%s over %j: %i', (rule, schema, cost) => {
    const size = declSize(schema, false);
    if (size === undefined) throw new Error('the schema has no size');
    expect(programOf(schema, rule).estimateCost((path) => maxElementsAt(size, path))).toBe(cost);
  });
});
