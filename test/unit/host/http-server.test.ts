import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { type Answer, headerValue, httpServer } from '../../../src/host/http-server.ts';
import { localHost } from '../../../src/host/local-host.ts';

/** What a server that answers so sends back, to its end. */
async function answered(answer: Answer, target = '/'): Promise<string> {
  const server = httpServer(answer);
  await localHost.listen(server, '127.0.0.1', 0);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const socket = connect(address.port, '127.0.0.1');
  const chunks: string[] = [];
  socket.on('data', (chunk) => chunks.push(String(chunk)));
  socket.on('error', () => undefined);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  server.close();
  return chunks.join('');
}

const fail = (): never => {
  throw new Error('thrown');
};

test.each<readonly [string, Answer]>([
  ['at once', fail],
  ['later', () => Promise.reject(new Error('thrown'))],
  [
    'behind headers that it has set',
    (_, response) => {
      response.setHeader('Content-Length', '1');
      fail();
    },
  ],
  ['by a header that Node.js refuses', (_, response) => void response.writeHead(200, { X: 'thrown\n' })],
  ['by a status that there is not', (_, response) => void response.writeHead(99, 'thrown')],
])('what an answer throws %s is 500', async (_, answer) => {
  expect(await answered(answer)).toMatch(/^HTTP\/1.1 500 /);
});

test('what cannot be decoded, and what is no target, is 400', async () => {
  expect(
    await answered((_request, _response, { pathname }) => void decodeURIComponent(pathname), '/%ff'),
  ).toMatch(/ 400 /);
  expect(await answered(fail, 'http://[')).toMatch(/ 400 /);
});

test('half an answer is cut', async () => {
  const answer: Answer = (_, response) => {
    response.writeHead(200, { 'Content-Length': '10' }).write('half');
    return Promise.reject(new Error('thrown'));
  };
  expect(await answered(answer)).not.toContain('thrown');
});

test('an answer behind the end of one does no harm', async () => {
  const answer: Answer = (_, response) => {
    response.end('first');
    response.write('second');
  };
  expect(await answered(answer)).toMatch(/first$/);
});

test.each([
  ['/a b', '/a b'],
  ['\n', ''],
  ['/a\r\nX: b', '/a  X: b'],
  ['/é€', '/%c3%a9%e2%82%ac'],
  ['/\0', '/%00'],
])('%j is the header %j', (text, value) => {
  expect(headerValue(text)).toBe(value);
});
