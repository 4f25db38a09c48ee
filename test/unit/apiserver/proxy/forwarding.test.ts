import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ApiRequest } from '../../../../src/apiserver/http/exchange.ts';
import { requestInfo } from '../../../../src/apiserver/http/request.ts';
import {
  backendPath,
  proxyPrefixOf,
  queryOf,
  headersToBackend,
  headersToClient,
  rewriteLocation,
} from '../../../../src/apiserver/proxy/forwarding.ts';
import { anyCharacter } from '../../../support/any-character.ts';

const prefix = '/api/v1/namespaces/ns/services/web:80/proxy';

function request(path: string, headers: Record<string, string> = {}): ApiRequest {
  return {
    method: 'GET',
    url: path,
    info: requestInfo('GET', decodeURIComponent(path), new URLSearchParams()),
    query: new URLSearchParams(),
    headers,
    user: { name: '', uid: '', groups: [], extra: {} },
    body: () => Promise.resolve(Buffer.alloc(0)),
    signal: new AbortController().signal,
    incoming: new IncomingMessage(new Socket()),
  };
}

describe('paths', () => {
  test.each([
    [prefix, ''],
    [`${prefix}/`, '/'],
    [`${prefix}/a`, '/a'],
    [`${prefix}/a/b/`, '/a/b/'],
    [`${prefix}/a//b`, '/a/b'],
    [`${prefix}/../../secrets/x`, '/secrets/x'],
    [`${prefix}/a/%2e%2e/%2e%2e/b`, '/b'],
    [`${prefix}/a%20b/%C3%A9?x`, '/a%20b/%C3%A9%3Fx'],
    [`${prefix}/a;b=c,d:e@f&g$h+i!j`, '/a;b=c,d:e@f&g$h+i%21j'],
  ])('%s', (path, expected) => {
    expect(backendPath(request(path))).toBe(expected);
    expect(proxyPrefixOf(request(path))).toBe(prefix);
  });

  test('no path leaves the backend or breaks its request line', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (tail) => {
        let path: string;
        try {
          path = backendPath(request(`${prefix}/${encodeURIComponent(tail)}`));
        } catch (error) {
          expect(error).toBeInstanceOf(URIError);
          return;
        }
        expect(path).toMatch(/^\/[\w\-.~$&+,:;=@/%]*$/);
        expect(path.split('/')).not.toContain('..');
      }),
    );
  });

  test('queries are handed on as they came', () => {
    expect(queryOf(`${prefix}/?a=%20&b`)).toBe('?a=%20&b');
    expect(queryOf(prefix)).toBe('');
  });
});

describe('headers', () => {
  test('credentials and hop-by-hop headers stay here', () => {
    const forwarded = headersToBackend(
      request(`${prefix}/a`, {
        authorization: 'Bearer secret',
        'impersonate-user': 'jane',
        connection: 'keep-alive, X-Mine',
        'x-mine': '1',
        te: 'trailers',
        'transfer-encoding': 'chunked',
        'x-forwarded-host': 'evil',
        'x-kept': '2',
        host: 'localhost:8001',
        cookie: 'c=d',
      }),
    );
    expect(forwarded).toEqual({
      'x-kept': '2',
      host: 'localhost:8001',
      cookie: 'c=d',
      'transfer-encoding': 'chunked',
      'x-forwarded-uri': `${prefix}/a`,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'localhost:8001',
    });
  });

  test('answers cannot open this server to other origins', () => {
    const passed = headersToClient(
      {
        'access-control-allow-origin': '*',
        'transfer-encoding': 'chunked',
        'set-cookie': ['a=b', 'c=d'],
        'content-type': 'text/html',
        location: '/x',
      },
      (location) => `rewritten:${location}`,
    );
    expect(passed).toEqual({
      'set-cookie': ['a=b', 'c=d'],
      'content-type': 'text/html',
      location: 'rewritten:/x',
    });
  });

  test.each([
    ['/login', `${prefix}/login`],
    ['/login?a=b#c', `${prefix}/login?a=b#c`],
    [`${prefix}/login`, `${prefix}/login`],
    ['login', 'login'],
    ['../login', '../login'],
    ['http://10.1.0.1:8080/x', `${prefix}/x`],
    ['https://localhost:8001/x?y', `${prefix}/x?y`],
    ['https://elsewhere.example.com/x', 'https://elsewhere.example.com/x'],
    ['//elsewhere.example.com/x', '//elsewhere.example.com/x'],
    ['http://[bad', 'http://[bad'],
  ])('a redirect to %s goes to %s', (location, expected) => {
    expect(rewriteLocation(location, prefix, ['10.1.0.1:8080', 'localhost:8001'])).toBe(expected);
  });
});
