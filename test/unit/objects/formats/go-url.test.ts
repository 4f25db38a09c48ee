import { expect, test } from 'vitest';
import { escapePath, joinPath, pathOfUrl, requestPath } from '../../../../src/objects/formats/go-url.ts';

/** What Go 1.26 prints for `path.Join("/", u.Path)` and `URL.EscapedPath` of it. */
test.each([
  ['https://h', '/'],
  ['https://h/', '/'],
  ['https://h//failing', '/failing'],
  ['https://h/a//b/', '/a/b'],
  ['https://h/a/../b/./c', '/b/c'],
  ['https://h/../../a', '/a'],
  ['https://h/a%2Fb', '/a/b'],
  ['https://h/a%20b', '/a%20b'],
  ['https://h/%2e%2e/a', '/a'],
  ['https://h/a!b(c)', '/a%21b%28c%29'],
  ['https://h/a;b=c', '/a;b=c'],
  ['https://h/%C3%A4', '/%C3%A4'],
  ['https://h?x=1', '/'],
])('the path of %s is sent as %s', (url, path) => {
  expect(escapePath(joinPath(pathOfUrl(url)))).toBe(path);
});

/** `formatURL` of the kubelet's HTTP probe, then `URL.RequestURI`. */
test.each([
  ['/healthz', '/healthz'],
  ['healthz', '/healthz'],
  ['', '/'],
  ['/', '/'],
  ['//', '/'],
  ['//other/x', '/x'],
  ['///x', '///x'],
  ['/a//b', '/a//b'],
  ['/a/../b', '/a/../b'],
  ['/a?x=1&y=2', '/a?x=1&y=2'],
  ['?x=1', '/?x=1'],
  ['/a#b', '/a'],
  ['/a b', '/a%20b'],
  ['/%zz', '/%25zz'],
  ['/a\u0001', '/a%01'],
  ['/ä', '/%C3%A4'],
  ['/%E4', '/%E4'],
  ['http://other:9/x?y', '/x?y'],
])('a probe of %j asks for %s', (written, path) => {
  expect(requestPath(written)).toBe(path);
});
