import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readTarget } from '../../../../src/objects/formats/go-url.ts';

// Go's net/url `ParseRequestURI`.
test.each([
  ['/', '/', ''],
  ['/a/../b?x=1&y', '/a/../b', '?x=1&y'],
  ['//', '//', ''],
  ['//[', '//[', ''],
  ['*', '*', ''],
  ['http://host/a?b', '/a', '?b'],
  ['HTTP://host', '/', ''],
  ['http://host?b', '/', '?b'],
  ['http://[::1]:80/', '/', ''],
  ['/a?http://[', '/a', '?http://['],
])('%s has the path %s', (text, pathname, search) => {
  expect(readTarget(text)).toMatchObject({ pathname, search });
});

test.each(['', 'x', 'http:', 'http://[', 'http://a:99999/', '/%', '/%zz', '?a', '**'])(
  '%s is none',
  (text) => {
    expect(readTarget(text)).toBeUndefined();
  },
);

test('no text makes it throw', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('/', '%', '[', ':', 'http', '?', '@', '\0', '\ud800', 'a') }),
      (text) => {
        readTarget(text);
      },
    ),
  );
});
