import { once } from 'node:events';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApiServer, type TestServer } from '../../src/testing/index.ts';

/** For whom a request is meant: the `Host` header, and targets in absolute form. */
let server: TestServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(async () => server.stop());

/** The answer to a request with these lines and credentials. */
async function answerOf(requestLine: string, ...headers: string[]): Promise<string> {
  const { port } = new URL(server.url);
  const socket = connect({ host: '127.0.0.1', port: Number(port), ca: server.ca });
  await once(socket, 'secureConnect');
  const common = [`Authorization: Bearer ${server.token}`, 'Connection: close'];
  socket.write([requestLine, ...common, ...headers, '', ''].join('\r\n'));
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
  return text;
}

const statusOf = (answer: string): number => Number(answer.split(' ')[1]);
const get = 'GET /api/v1/namespaces/default HTTP/1.1';

test.each([
  'localhost',
  'LocalHost:6443',
  'localhost.',
  'kubernetes.default.svc',
  '127.0.0.1:1',
  '192.0.2.1',
  '[::1]:6443',
  '[2001:db8::1]',
  '',
])('a request for %j is served', async (host) => {
  expect(statusOf(await answerOf(get, `Host: ${host}`))).toBe(200);
});

test.each([
  'evil.example',
  'evil.example:6443',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'localhost@evil.example',
  '0x7f.1',
])('a request for %j was meant for another server', async (host) => {
  const answer = await answerOf(get, `Host: ${host}`);
  expect(statusOf(answer)).toBe(421);
  expect(answer).toContain('"kind":"Status"');
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
  const path = '/api/v1/namespaces/default/pods/p/proxy/';
  expect(statusOf(await answerOf(`GET ${path} HTTP/1.1`, `Host: ${host}`, ...upgrade))).toBe(421);
});

test.each([
  ['two', 'Host: localhost', 'Host: evil.example'],
  ['two of the same', 'Host: localhost', 'host: localhost'],
  ['a malformed', 'Host: [::1'],
  ['a list', 'Host: localhost, evil.example:1:2'],
])('a request with %s Host is bad', async (_, ...hosts) => {
  expect(statusOf(await answerOf(get, ...hosts))).toBe(400);
});

test('a target in absolute form counts besides the header', async () => {
  const at = (authority: string): string => `GET https://${authority}/api/v1/namespaces/default HTTP/1.1`;
  expect(statusOf(await answerOf(at('localhost'), 'Host: localhost'))).toBe(200);
  expect(statusOf(await answerOf(at('evil.example'), 'Host: localhost'))).toBe(421);
});

test('HTTP/1.0 needs no Host', async () => {
  expect(statusOf(await answerOf('GET /version HTTP/1.0'))).toBe(200);
});
