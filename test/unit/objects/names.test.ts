import { describe, expect, test } from 'vitest';
import {
  isConfigMapKey,
  isDNS1035Label,
  isDNS1123Label,
  isDNS1123Subdomain,
  isQualifiedName,
  isValidLabelValue,
  isValidPortName,
  isWildcardDNS1123Subdomain,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
  nameIsPathSegment,
} from '../../../src/objects/names.ts';

const a = (length: number): string => 'a'.repeat(length);
const labelForm =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainForm =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const keyForm =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const valueForm =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

type Check = (text: string) => string[];

describe.each<[string, Check, string[], [string, string[]][]]>([
  [
    'isDNS1123Label',
    isDNS1123Label,
    ['a', '0', 'a-b', '1a', a(63)],
    [
      ['', [labelForm]],
      ['A', [labelForm]],
      ['-a', [labelForm]],
      ['a-', [labelForm]],
      ['a\n', [labelForm]],
      ['ä', [labelForm]],
      ['a.b', ['must not contain dots']],
      [a(64), ['must be no more than 63 characters']],
      [`${a(63)}_`, ['must be no more than 63 characters', labelForm]],
      ['ä'.repeat(32), ['must be no more than 63 characters', labelForm]],
    ],
  ],
  [
    'isDNS1123Subdomain',
    isDNS1123Subdomain,
    ['a', 'a.b', '1.2-3.c', a(253)],
    [
      ['', [subdomainForm]],
      ['a..b', [subdomainForm]],
      ['.a', [subdomainForm]],
      ['a.', [subdomainForm]],
      ['a_b', [subdomainForm]],
      [a(254), ['must be no more than 253 characters']],
    ],
  ],
  [
    'isQualifiedName',
    isQualifiedName,
    ['a', 'A_b.c-1', 'example.com/a', `${a(253)}/${a(63)}`],
    [
      ['', ['name part must be non-empty', `name part ${keyForm}`]],
      ['-a', [`name part ${keyForm}`]],
      [a(64), ['name part must be no more than 63 bytes']],
      ['/a', ['prefix part must be non-empty']],
      ['a/', ['name part must be non-empty', `name part ${keyForm}`]],
      ['A/b', [`prefix part ${subdomainForm}`]],
      [
        'a/b/c',
        [
          `a valid label key ${keyForm} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
        ],
      ],
    ],
  ],
  [
    'isValidLabelValue',
    isValidLabelValue,
    ['', 'a', 'A.b_c-1', a(63)],
    [
      ['-', [valueForm]],
      ['a b', [valueForm]],
      [a(64), ['must be no more than 63 bytes']],
      [`${a(63)}-`, ['must be no more than 63 bytes', valueForm]],
    ],
  ],
  [
    'isValidPortName',
    isValidPortName,
    ['http', 'a-1', a(15)],
    [
      [
        '',
        [
          'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
          'must contain at least one letter (a-z)',
        ],
      ],
      ['80', ['must contain at least one letter (a-z)']],
      ['a--b', ['must not contain consecutive hyphens']],
      ['a-', ['must not begin or end with a hyphen']],
      [a(16), ['must be no more than 15 characters']],
    ],
  ],
  [
    'isConfigMapKey',
    isConfigMapKey,
    ['a', '.a', 'A_b-c.d', '_'],
    [
      ['.', ["must not be '.'"]],
      ['..', ["must not be '..'"]],
      ['..a', ["must not start with '..'"]],
      [a(254), ['must be no more than 253 characters']],
    ],
  ],
])('%s', (_, check, good, bad) => {
  test.each(good)('accepts %j', (text) => expect(check(text)).toEqual([]));
  test.each(bad)('refuses %j', (text, messages) => expect(check(text)).toEqual(messages));
});

test('DNS-1035 labels start with a letter, wildcards with a star', () => {
  expect(isDNS1035Label('a-1')).toEqual([]);
  expect(isDNS1035Label('1a')[0]).toMatch(/^a DNS-1035 label must .*\(e\.g\. 'my-name', {2}or 'abc-123', /);
  expect(isWildcardDNS1123Subdomain('*.a.b')).toEqual([]);
  expect(isWildcardDNS1123Subdomain('*.*.b')).toHaveLength(1);
});

test('the last dash of a generateName is not the end of a name', () => {
  expect(nameIsDNSLabel('web-', true)).toEqual([]);
  expect(nameIsDNSLabel('web-', false)).toEqual([labelForm]);
  expect(nameIsDNSSubdomain('web.-', true)).toEqual([]);
  expect(nameIsDNSLabel('-', true)).toEqual([labelForm]);
});

test('a path segment is anything that cannot leave its path', () => {
  expect(nameIsPathSegment('a b:c', false)).toEqual([]);
  expect(nameIsPathSegment('..', false)).toEqual(["may not be '..'"]);
  expect(nameIsPathSegment('..', true)).toEqual([]);
  expect(nameIsPathSegment('a/%', false)).toEqual(["may not contain '/'", "may not contain '%'"]);
});
