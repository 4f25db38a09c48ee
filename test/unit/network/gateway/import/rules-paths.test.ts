import { describe, expect, test } from 'vitest';
import { importPath } from '../../../../../src/network/gateway/import/rules.ts';

const literal = (path: string, pathType = 'Prefix', rewriteTarget?: string): ReturnType<typeof importPath> =>
  importPath({ path, pathType, isExpression: rewriteTarget !== undefined, rewriteTarget });
const expression = (path: string, rewriteTarget?: string): ReturnType<typeof importPath> =>
  importPath({ path, pathType: 'ImplementationSpecific', isExpression: true, rewriteTarget });
const prefix = (replacePrefixMatch: string): object => ({ type: 'ReplacePrefixMatch', replacePrefixMatch });
const full = (replaceFullPath: string): object => ({ type: 'ReplaceFullPath', replaceFullPath });

describe('paths of Ingresses', () => {
  test.each([
    ['/', 'Prefix', 'PathPrefix', '/'],
    ['', 'ImplementationSpecific', 'PathPrefix', '/'],
    ['/a/', 'Prefix', 'PathPrefix', '/a/'],
    ['/a.b/%20', 'Exact', 'Exact', '/a.b/%20'],
    ['/a', 'ImplementationSpecific', 'PathPrefix', '/a'],
  ])('%j of type %s', (path, pathType, type, value) => {
    expect(literal(path, pathType)).toEqual({
      ...{ match: { type, value }, rewrite: undefined, problem: undefined },
    });
  });

  test.each([
    '/a(/|$)(.*)',
    '/a//b',
    '/a/../b',
    '/a/..',
    '/./a',
    '/a%2Fb',
    '/a#b',
    'a',
    '/a b',
    `/${'a'.repeat(1024)}`,
  ])('%j is none of Gateway API', (path) => {
    expect(literal(path)).toEqual(expect.any(String));
  });

  test.each([
    // The rest behind a prefix.
    ['/a(/|$)(.*)', '/$2', 'PathPrefix', '/a', prefix('/')],
    ['/a(/|$)(.*)', '/b/$2', 'PathPrefix', '/a', prefix('/b')],
    ['/a/?(.*)', '/$1', 'PathPrefix', '/a', prefix('/')],
    ['/a/(.*)', '/b/$1', 'PathPrefix', '/a', prefix('/b')],
    ['^/a/(.*)$', '/$1', 'PathPrefix', '/a', prefix('/')],
    ['/(.*)', '/b/$1', 'PathPrefix', '/', prefix('/b')],
    ['/a(/.*)?', '/b$1', 'PathPrefix', '/a', prefix('/b')],
    ['/a(/.*)', '$1', 'PathPrefix', '/a', prefix('/')],
    // Without a group the whole path is replaced.
    ['/a(/|$)(.*)', '/b', 'PathPrefix', '/a', full('/b')],
    ['/a', '/b', 'PathPrefix', '/a', full('/b')],
    ['/a/[0-9]+', '/b', 'RegularExpression', '(?i)/a/[0-9]+.*', full('/b')],
    // Expressions match whole paths, without case.
    ['/a/[0-9]+$', undefined, 'RegularExpression', '(?i)/a/[0-9]+', undefined],
    ['/a|/b', undefined, 'RegularExpression', '(?i)(?:/a|/b).*', undefined],
    ['/a.*', undefined, 'RegularExpression', '(?i)/a.*', undefined],
    ['/a(.*)', undefined, 'RegularExpression', '(?i)/a(.*)', undefined],
    ['/a\\.[a-z]', undefined, 'RegularExpression', '(?i)/a\\.[a-z].*', undefined],
    ['/a.php', undefined, 'PathPrefix', '/a.php', undefined],
  ])('%j with rewrite-target %j', (path, target, type, value, rewrite) => {
    expect(expression(path, target)).toEqual({ match: { type, value }, rewrite, problem: undefined });
  });

  test.each([
    ['/a(/|$)(.*)', '/$1'],
    ['/a(/|$)(.*)', '/b?x=$2'],
    ['/(a|b)/(.*)', '/$1/$2'],
    ['/a', 'https://example.com/'],
    ['/a', '/b?c=d'],
  ])('%j cannot be rewritten to %j', (path, target) => {
    expect(expression(path, target)).toMatchObject({
      rewrite: undefined,
      problem: expect.any(String) as string,
    });
  });

  test.each(['/a(?=b)', '/(a', `/a+${'b'.repeat(1024)}`])('%j is no expression of Gateway API', (path) => {
    expect(expression(path)).toEqual(expect.any(String));
  });
});
