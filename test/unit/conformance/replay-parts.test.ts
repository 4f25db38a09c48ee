import { describe, expect, test } from 'vitest';
import { differences } from '../../conformance/difference.ts';
import { atPath, resolveText, resolveValue } from '../../conformance/references.ts';
import { settledForm } from '../../conformance/settled.ts';

describe('references', () => {
  const known = new Map<string, unknown>([
    ['ns', 'n1'],
    ['a', { spec: { ports: [{ nodePort: 30001 }] }, metadata: { labels: { 'x.y/z': 'v' } } }],
  ]);

  test('are replaced in texts, keys and whole values', () => {
    expect(resolveText('/n/${ns}/p${a.spec.ports.0.nodePort}', known)).toBe('/n/n1/p30001');
    expect(
      resolveValue({ '${ns}-k': ['${a.spec.ports.0.nodePort}', 'p${a.spec.ports.0.nodePort}'] }, known),
    ).toEqual({
      'n1-k': [30001, 'p30001'],
    });
    expect(resolveValue('${a}', known)).toBe(known.get('a'));
    expect(resolveText('${a.nothing.here}', known)).toBe('undefined');
  });

  test('find keys with dots', () => {
    expect(atPath(known.get('a'), 'metadata.labels.x.y/z'.split('.'))).toBe('v');
    expect(atPath(known.get('a'), ['constructor'])).toBeUndefined();
    expect(atPath(known.get('a'), ['spec', 'ports', 'length'])).toBe(1);
  });
});

describe('differences', () => {
  test('name each place once', () => {
    expect(differences({ a: 1, b: [1, { c: 'x' }] }, { a: 1, b: [1, { c: 'y' }], d: null }, 'body')).toEqual([
      { path: 'body.b[1].c', expected: '"x"', got: '"y"' },
      { path: 'body.d', expected: '(nothing)', got: 'null' },
    ]);
  });

  test('name the item that is missing or too much', () => {
    expect(differences([1, 2, 3], [1, 3], 'l')).toEqual([{ path: 'l[1]', expected: '2', got: '(nothing)' }]);
    expect(differences([{ a: 1 }], [{ b: 1 }, { a: 1 }], 'l')).toEqual([
      { path: 'l[0]', expected: '(nothing)', got: '{"b":1}' },
    ]);
  });

  test('see the order of members only when asked', () => {
    expect(differences({ a: 1, b: 2 }, { b: 2, a: 1 }, 'body')).toEqual([]);
    expect(differences({ a: 1, b: 2 }, { b: 2, a: 1 }, 'body', true)).toEqual([
      { path: 'body (order)', expected: 'a b', got: 'b a' },
    ]);
  });

  test('cut long texts where they part', () => {
    const [found] = differences(`${'x'.repeat(500)}a`, `${'x'.repeat(500)}b`, 'm');
    expect(found?.expected).toBe(`…"${'x'.repeat(40)}a"`);
  });
});

describe('settledForm', () => {
  test('does not see the order of what controllers write', () => {
    const one = {
      subsets: [{ addresses: [{ ip: 'b' }, { ip: 'a' }] }, { ports: [] }],
      metadata: { generation: 3 },
    };
    const other = { metadata: {}, subsets: [{ ports: [] }, { addresses: [{ ip: 'a' }, { ip: 'b' }] }] };
    expect(differences(settledForm(one), settledForm(other), 'body')).toEqual([]);
    expect(differences(settledForm({ x: [2, 1] }), settledForm({ x: [1, 2] }), 'body')).not.toEqual([]);
  });
});
