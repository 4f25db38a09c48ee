import { describe, expect, it } from 'vitest';
import {
  canonicalAmount,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityIn,
} from '../../../../src/objects/formats/quantity.ts';

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
    ['12E', '12E'],
    ['100E', '100E'],
    ['10000000000000000000', '10E'],
    ['1234567890123456789012345', '1234567890123456789012345'],
    ['1e30', '1e30'],
    ['9Ei', '9223372036854775807'],
    ['9223372036854775807Ki', '9223372036854775807'],
    ['1e999', '1e999'],
    ['3.001n', '4n'],
    ['0.000000000001Ki', '2n'],
    ['.', '0'],
    ['-', '0'],
    ['m', '0'],
    ['-2Gi', '-2Gi'],
    ['1e-999999', '1e-9'],
  ])('%s is %s', (text, canonical) => {
    expect(formatQuantity(parseQuantity(text))).toBe(canonical);
  });

  it.each(['', '1.2.3', '1+1.0M', '0.1am', 'abc', '1 Gi'])('refuses %j', (text) => {
    expect(() => parseQuantity(text)).toThrow('quantities must match the regular expression');
  });

  it.each(['1K', '1Kii', '1e', 'e', '1ki', '0.1mi', '.5i', '1n1', '-3.01e-', '--1'])(
    'refuses the suffix of %j',
    (text) => {
      expect(() => parseQuantity(text)).toThrow("unable to parse quantity's suffix");
    },
  );
});

it('compares by value, whatever the spelling', () => {
  expect(compareQuantities('1', '1000m')).toBe(0);
  expect(compareQuantities('1Gi', '1G')).toBe(1);
  expect(compareQuantities('-1', '1n')).toBe(-1);
});

it('leaves out the suffix where there is none, beyond E', () => {
  expect(formatQuantity(parseQuantity('1000E'))).toBe('1');
});

describe('a quantity as it was read', () => {
  it.each(['1.500', '+1', '001', '1.', '1E3', '1e+3', '1.001k', '100.035k', '012Ki', '-1.500', '1e999999'])(
    '%s stays as it is',
    (text) => {
      expect(canonicalQuantity(text)).toBe(text);
    },
  );

  it.each([
    ['1.5', '1500m'],
    ['1.50', '1500m'],
    ['0.500', '500m'],
    ['1000m', '1'],
    ['1024Ki', '1Mi'],
    ['1234567890123456789', '1234567890123456789'],
    ['1.0000000000000000000', '1'],
    ['1.5Ki', '1536'],
    ['10000000000000Ki', '9765625000Mi'],
  ])('%s becomes %s', (text, canonical) => {
    expect(canonicalQuantity(text)).toBe(canonical);
  });

  it.each([
    ['100u', '1m'],
    ['-100u', '-1m'],
    ['1.000001', '1001m'],
    ['1.500', '1.500'],
    ['0.1Ki', '102400m'],
    ['0.00001Ki', '11m'],
    ['1e-9', '1e-3'],
    ['12E', '12E'],
  ])('%s in a list of resources is %s', (text, amount) => {
    expect(canonicalAmount(text)).toBe(amount);
  });
});

it('counts in units and thousandths, rounded away from zero', () => {
  expect(quantityIn('1001m', 'units')).toBe(2n);
  expect(quantityIn('-1001m', 'units')).toBe(-2n);
  expect(quantityIn('1u', 'thousandths')).toBe(1n);
});
