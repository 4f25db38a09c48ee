import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accessLine, type LoggedRequest } from '../../../src/host/http-server.ts';

const request: LoggedRequest = {
  ...{ method: 'GET', url: '/cart?a=1', httpVersion: '1.1', client: '10.244.0.9' },
  headers: { 'user-agent': 'curl/8.5', referer: 'http://shop/' },
};
const answered = { status: 200, bytes: 42, atMs: Date.parse('2026-03-05T06:07:08.900Z') };

describe('the access log', () => {
  it('of web servers is in the combined format', () => {
    expect(accessLine('combined', request, answered)).toBe(
      '10.244.0.9 - - [05/Mar/2026:06:07:08 +0000] "GET /cart?a=1 HTTP/1.1" 200 42 "http://shop/" "curl/8.5"\n',
    );
    const authorization = `Basic ${Buffer.from('ada:secret').toString('base64')}`;
    const line = accessLine('combined', { ...request, headers: { authorization } }, answered);
    expect(line).toBe(
      '10.244.0.9 - ada [05/Mar/2026:06:07:08 +0000] "GET /cart?a=1 HTTP/1.1" 200 42 "-" "-"\n',
    );
  });

  it('of others is a short line', () => {
    expect(accessLine('short', request, answered)).toBe('GET /cart?a=1 200 42 from 10.244.0.9 "curl/8.5"\n');
  });

  it('escapes what a client may not write', () => {
    const headers = { 'user-agent': 'a"b\\c\u001b[31m', referer: 'caf\xe9\n' };
    expect(accessLine('combined', { ...request, headers }, answered)).toMatch(
      / "caf\\xE9\\x0A" "a\\x22b\\x5Cc\\x1B\[31m"\n$/,
    );
  });

  it('is one line of printable ASCII, with six quotation marks, whatever a client sends', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, text, text, (url, agent, referer, authorization) => {
        const headers = { 'user-agent': agent, referer, authorization };
        const line = accessLine('combined', { ...request, url, headers }, answered);
        expect(line).toMatch(/^[\x20-\x7e]+\n$/);
        expect(line.split('"')).toHaveLength(7);
      }),
    );
  });
});
