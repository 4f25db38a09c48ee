import { describe, expect, it } from 'vitest';
import { compareQuantities, formatQuantity, parseQuantity } from '../../../src/objects/quantity.ts';

describe('a quantity in canonical form', () => {
  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['1', '1'],
    ['+1', '1'],
    ['.5', '500m'],
    ['1.', '1'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['1000', '1k'],
    ['1024', '1024'],
    ['100000', '100k'],
    ['0.1', '100m'],
    ['0.00001', '10u'],
    ['0.0000000001', '1n'],
    ['1Gi', '1Gi'],
    ['1.5Gi', '1536Mi'],
    ['1024Mi', '1Gi'],
    ['512', '512'],
    ['0.5Ki', '512'],
    ['0.1Ki', '102400m'],
    ['1e3', '1e3'],
    ['12e2', '1200'],
    ['100E', '9223372036854775807'],
    ['-2Gi', '-2Gi'],
    ['1e999999', '9223372036854775807'],
    ['1e-999999', '1e-9'],
  ])('%s is %s', (text, canonical) => {
    expect(formatQuantity(parseQuantity(text))).toBe(canonical);
  });

  it.each(['', '.', '1.2.3', 'abc', '1 Gi', '--1'])('refuses %j', (text) => {
    expect(() => parseQuantity(text)).toThrow('quantities must match the regular expression');
  });

  it.each(['1K', '1Kii', '1e', '1ki'])('refuses the suffix of %j', (text) => {
    expect(() => parseQuantity(text)).toThrow("unable to parse quantity's suffix");
  });
});

it('compares by value, whatever the spelling', () => {
  expect(compareQuantities('1', '1000m')).toBe(0);
  expect(compareQuantities('1Gi', '1G')).toBe(1);
  expect(compareQuantities('-1', '1n')).toBe(-1);
});
