import { describe, expect, test } from 'vitest';
import type { FieldError } from '../../../../src/registry/validation/field-errors.ts';
import {
  isValidPortNumber,
  validateCanonicalAddress,
  validateCanonicalCidr,
  validateEndpointAddress,
  validateLegacyAddress,
  validateLegacyCidr,
  validatePortNumberOrName,
  warningsForAddress,
  warningsForCidr,
} from '../../../../src/registry/validation/network.ts';

const noAddress = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const noCidr = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const zeros = 'must not have leading 0s';
const mapped = 'must not be an IPv4-mapped IPv6 address';
const hostBits = 'must not have bits set beyond the prefix length';

function details(text: string, errors: readonly FieldError[]): string[] {
  return errors.map(({ body }) => body.replace(`Invalid value: ${JSON.stringify(text)}: `, ''));
}

test('ports are 1 to 65535', () => {
  expect([0, 65536, -1].flatMap(isValidPortNumber)).toEqual(
    Array(3).fill('must be between 1 and 65535, inclusive'),
  );
  expect([1, 65535].flatMap(isValidPortNumber)).toEqual([]);
  expect(validatePortNumberOrName('http', 'p')).toEqual([]);
  expect(validatePortNumberOrName('80', 'p')).toHaveLength(1);
});

test.each<[string, string[], string[]]>([
  ['10.0.0.1', [], []],
  ['2001:db8::1', [], []],
  ['2001:DB8:0::1', [], ['must be in canonical form ("2001:db8::1")']],
  ['010.0.0.1', [zeros], [zeros]],
  ['::ffff:10.0.0.1', [mapped], [mapped]],
  ['fe80::1%eth0', [noAddress], [noAddress]],
  ['10.0.0', [noAddress], [noAddress]],
  ['10.0.0.1/32', [noAddress], [noAddress]],
  ['', [noAddress], [noAddress]],
])('address %j', (text, legacy, canonical) => {
  expect(details(text, validateLegacyAddress(text, 'p'))).toEqual(legacy);
  expect(details(text, validateCanonicalAddress(text, 'p'))).toEqual(canonical);
  expect(validateLegacyAddress(text, 'p', ['x', text])).toEqual([]);
});

test.each<[string, string[], string[]]>([
  ['10.0.0.0/8', [], []],
  ['2001:db8::/32', [], []],
  ['2001:DB8::/32', [], ['must be in canonical form ("2001:db8::/32")']],
  ['10.0.0.1/8', [hostBits], [hostBits]],
  ['10.0.0.0/08', [`${zeros} in IP or prefix length`], [`${zeros} in IP or prefix length`]],
  ['010.0.0.0/8', [`${zeros} in IP or prefix length`], [`${zeros} in IP or prefix length`]],
  [
    '::ffff:10.0.0.0/104',
    ['must not have an IPv4-mapped IPv6 address'],
    ['must not have an IPv4-mapped IPv6 address'],
  ],
  ['10.0.0.0/33', [noCidr], [noCidr]],
  ['10.0.0.0', [noCidr], [noCidr]],
])('CIDR %j', (text, legacy, canonical) => {
  expect(details(text, validateLegacyCidr(text, 'p'))).toEqual(legacy);
  expect(details(text, validateCanonicalCidr(text, 'p'))).toEqual(canonical);
  expect(validateLegacyCidr(text, 'p', [text])).toEqual([]);
});

describe('addresses that are no endpoints', () => {
  const loopback = 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  const linkLocal = 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  const multicast = 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  test.each<[string, string[]]>([
    ['10.0.0.1', []],
    ['126.255.255.255', []],
    ['127.0.0.0', [loopback]],
    ['127.255.255.255', [loopback]],
    ['169.254.0.0', [linkLocal]],
    ['169.253.255.255', []],
    ['224.0.0.255', [multicast]],
    ['224.0.1.0', []],
    ['0.0.0.0', ['may not be unspecified (0.0.0.0)']],
    ['0.0.0.1', []],
    ['::', ['may not be unspecified (::)']],
    ['::1', [loopback]],
    ['::2', []],
    ['fe80::', [linkLocal]],
    ['febf:ffff::', [linkLocal]],
    ['fec0::', []],
    ['ff02::1', [multicast]],
    ['ff12::1', [multicast]],
    ['ff05::1', []],
    ['x', ['must be a valid IP address']],
  ])('%s', (text, expected) => expect(details(text, validateEndpointAddress(text, 'p'))).toEqual(expected));
});

test('unusual spellings are warned about', () => {
  expect(warningsForAddress('10.0.0.1', 'p')).toEqual([]);
  expect(warningsForAddress('x', 'p')).toEqual([]);
  expect(warningsForAddress('::FFFF:10.0.0.1', 'p')).toEqual([
    'p: non-standard IP address "::FFFF:10.0.0.1" is invalid: use "10.0.0.1"',
  ]);
  expect(warningsForAddress('FD00::1', 'p')).toEqual([
    'p: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
  ]);
  expect(warningsForCidr('10.0.0.0/8', 'p')).toEqual([]);
  expect(warningsForCidr('x', 'p')).toEqual([]);
  expect(warningsForCidr('10.00.0.1/8', 'p')).toEqual([
    'p: CIDR value "10.00.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    'p: non-standard CIDR value "10.00.0.1/8" is invalid: use "10.0.0.0/8"',
  ]);
  expect(warningsForCidr('FD00::/8', 'p')).toEqual([
    'p: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")',
  ]);
});
