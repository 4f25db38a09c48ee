import { describe, expect, test } from 'vitest';
import { requestInfo } from '../../../../src/apiserver/http/request.ts';
import { checkRequestTimeout } from '../../../../src/apiserver/http/limits.ts';

function messageOf(timeout: string, path = '/version'): string {
  const query = new URLSearchParams({ timeout });
  try {
    checkRequestTimeout(query, requestInfo('GET', path, query));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return 'accepted';
}

describe('the timeout of a request', () => {
  test.each(['', '0', '0s', '1m30s', '3m', '100ms', '1.5h', '-1s', '+.5s', '1h2m3.4s'])(
    'may be %s',
    (text) => {
      expect(messageOf(text)).toBe('accepted');
    },
  );

  test.each([
    ['invalid', 'invalid duration "invalid"'],
    ['-', 'invalid duration "-"'],
    ['.s', 'invalid duration ".s"'],
    ['5', 'missing unit in duration "5"'],
    ['1x', 'unknown unit "x" in duration "1x"'],
    [`${'9'.repeat(200)}s`, `invalid duration "${'9'.repeat(200)}s"`],
  ])('cannot be %s', (text, why) => {
    expect(messageOf(text)).toBe(`invalid timeout specified in the request URL - time: ${why}`);
  });

  test('does not matter to what lasts anyway', () => {
    for (const path of ['/api/v1/watch/pods', '/api/v1/namespaces/a/pods/b/log']) {
      expect(messageOf('x', path)).toBe('accepted');
    }
    expect(messageOf('x', '/api/v1/pods')).not.toBe('accepted');
  });
});
