import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import type { AnswerHandler, BackendExchange, BackendRequest } from '../../../../src/router/http/exchange.ts';
import { Http1Connections } from '../../../../src/router/http/http1.ts';
import { startPlainBackend } from '../../../support/router/router.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** What a backend got on each of its connections. */
type Received = string[];

/** Connections to a backend that answers what has come so far, by its connection and all that came on it. */
async function start(
  answer: (socket: Socket, received: string, place: number) => void,
): Promise<{ connections: Http1Connections; received: Received; sockets: Socket[] }> {
  const received: Received = [];
  const sockets: Socket[] = [];
  const backend = await startPlainBackend((socket) => {
    const place = sockets.push(socket) - 1;
    received[place] = '';
    socket.on('data', (chunk: Buffer) => {
      received[place] = (received[place] ?? '') + chunk.toString('latin1');
      answer(socket, received[place] ?? '', place);
    });
  });
  const connections = new Http1Connections(async () => {
    const socket = connect(backend.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => socket.destroy());
    return socket;
  });
  closing.push(
    () => connections.destroy(),
    () => backend.close(),
  );
  return { connections, received, sockets };
}

const usual: BackendRequest = {
  ...{ method: 'GET', path: '/', headers: ['host', 'web.test'], body: undefined },
  ...{ expectsContinue: false, upgrade: undefined, timeoutMs: 5000 },
};

/** What is said of an answer: `sent`, its status, its body, and `end` or the error. */
interface Said {
  readonly words: string[];
  readonly over: Promise<unknown>;
  readonly exchange: BackendExchange;
}

function ask(connections: Http1Connections, request: Partial<BackendRequest> = {}, room = true): Said {
  const words: string[] = [];
  const over = Promise.withResolvers<undefined>();
  const handler: AnswerHandler = {
    onSent: () => void words.push('sent'),
    onInformation: ({ status }) => void words.push(String(status)),
    onHead: ({ status }) => void words.push(String(status)),
    onData: (chunk) => {
      words.push(chunk.toString('latin1'));
      return room;
    },
    onEnd: () => void words.push('end'),
    onUpgrade: (_head, socket, first) => {
      words.push('upgrade', first.toString('latin1'));
      socket.destroy();
    },
    onError: ({ message }) => void words.push(message),
  };
  const exchange = connections.send({ ...usual, ...request }, handler, () => over.resolve(undefined));
  expect(words).toEqual([]);
  return { words, over: over.promise.then(() => new Promise(setImmediate)), exchange };
}

const hi = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi';

describe('connections are kept', () => {
  test('the next request takes the one before it, two at a time take two', async () => {
    const { connections, sockets, received } = await start((socket) => socket.write(hi));
    for (let i = 0; i < 3; i++) {
      const { words, over } = ask(connections);
      await over;
      expect(words).toEqual(['sent', '200', 'hi', 'end']);
    }
    expect(sockets).toHaveLength(1);
    expect(received[0]?.match(/GET/g)).toHaveLength(3);
    await Promise.all([ask(connections).over, ask(connections).over]);
    expect(sockets).toHaveLength(2);
  });

  test.each([
    ['the backend ends them', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi'],
    [
      'it keeps them a second at most',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nhi',
    ],
  ])('not where %s', async (_, text) => {
    const { connections, sockets } = await start((socket) => socket.write(text));
    await ask(connections).over;
    await ask(connections).over;
    expect(sockets).toHaveLength(2);
  });

  test('not where bytes come that answer no request', async () => {
    const { connections, sockets } = await start((socket) => socket.write(hi));
    await ask(connections).over;
    const closed = once(sockets[0] ?? new PassThrough(), 'close');
    sockets[0]?.write('HTTP/1.1 200 OK\r\n\r\n');
    await closed;
    const { words, over } = ask(connections);
    await over;
    expect(words).toEqual(['sent', '200', 'hi', 'end']);
    expect(sockets).toHaveLength(2);
  });

  test('not where the answer came before the end of the request', async () => {
    const { connections, sockets, received } = await start((socket) => socket.write(hi));
    const body = new PassThrough();
    body.write('part');
    const { words, over } = ask(connections, {
      ...{ method: 'POST', body, headers: ['host', 'web.test', 'Content-Length', '10'] },
    });
    await over;
    expect(words).toEqual(['sent', '200', 'hi', 'end']);
    body.end('of two');
    await ask(connections).over;
    expect(sockets).toHaveLength(2);
    expect(received[0]).not.toContain('GET');
  });

  test('an abort of a request that is over leaves the connection to the next', async () => {
    const { connections, sockets } = await start((socket) => socket.write(hi));
    const first = ask(connections);
    await first.over;
    const second = ask(connections);
    first.exchange.abort();
    first.exchange.resume();
    await second.over;
    expect(second.words).toEqual(['sent', '200', 'hi', 'end']);
    expect(sockets).toHaveLength(1);
  });

  test('a backend without room for it is waited for, and goes on', async () => {
    const { connections, sockets } = await start((socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhi'),
    );
    const { words, over, exchange } = ask(connections, {}, false);
    while (!words.includes('hi')) await new Promise(setImmediate);
    sockets[0]?.write('ho');
    for (let i = 0; i < 20; i++) await new Promise(setImmediate);
    expect(words).toEqual(['sent', '200', 'hi']);
    exchange.resume();
    await over;
    expect(words).toEqual(['sent', '200', 'hi', 'ho', 'end']);
  });
});

describe('what ends without an answer', () => {
  test.each([
    ['before any byte', '', 'the backend ended the connection'],
    ['within the head', 'HTTP/1.1 200 O', 'the answer is cut'],
    ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi', 'the answer is cut'],
  ])('the connection ends %s', async (_, text, message) => {
    const { connections } = await start((socket) => socket.end(text));
    const { words, over } = ask(connections);
    await over;
    expect(words.at(-1)).toBe(message);
  });

  test('a body without a length is whole at the end of the connection', async () => {
    const { connections } = await start((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nhi'));
    const { words, over } = ask(connections);
    await over;
    expect(words).toEqual(['sent', '200', 'hi', 'end']);
  });

  test('silence for too long', async () => {
    const { connections } = await start(() => undefined);
    const { words, over } = ask(connections, { timeoutMs: 20 });
    await over;
    expect(words).toEqual(['sent', 'the backend is silent']);
  });

  test('nothing is reported behind an abort', async () => {
    const { connections, sockets } = await start((socket) => socket.write('HTTP/1.1 200 OK\r\n'));
    const { words, over, exchange } = ask(connections);
    while (sockets[0] === undefined) await new Promise(setImmediate);
    const closed = once(sockets[0], 'close');
    exchange.abort();
    await Promise.all([over, closed]);
    expect(words).toEqual(['sent']);
  });
});

describe('requests as they are written', () => {
  test.each([
    ['a length', ['Content-Length', '5'], 'Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello'],
    [
      'chunks',
      ['Transfer-Encoding', 'chunked'],
      'Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n',
    ],
  ])('with %s', async (_, headers, text) => {
    const { connections, received } = await start((socket, got) => {
      if (got.endsWith('hello') || got.endsWith('0\r\n\r\n')) socket.write(hi);
    });
    const body = Readable.from([Buffer.from('he'), Buffer.alloc(0), Buffer.from('llo')]);
    const { words, over } = ask(connections, { method: 'PUT', path: '/a?b', body, headers });
    await over;
    expect(words).toEqual(['sent', '200', 'hi', 'end']);
    expect(received[0]).toBe(`PUT /a?b HTTP/1.1\r\n${text}`);
  });

  test('with trailers of the client, without those that a backend could take for others', async () => {
    const { connections, received } = await start((socket, got) => {
      if (got.endsWith('\r\n\r\n') && got.includes('\r\n0\r\n')) socket.write(hi);
    });
    const body = Object.assign(Readable.from([Buffer.from('he')]), {
      rawTrailers: ['X-Sum', '1', 'Content-Length', '3'],
    });
    const { over } = ask(connections, { method: 'PUT', body, headers: ['Transfer-Encoding', 'chunked'] });
    await over;
    expect(received[0]).toMatch(/\r\n2\r\nhe\r\n0\r\nx-sum: 1\r\n\r\n$/);
  });

  test('trailers that HTTP/1.1 does not take fail the request', async () => {
    const { connections, received } = await start(() => undefined);
    const body = Object.assign(Readable.from([Buffer.from('he')]), { rawTrailers: ['X-Sum', '\u20ac'] });
    const { words, over } = ask(connections, {
      method: 'PUT',
      body,
      headers: ['Transfer-Encoding', 'chunked'],
    });
    await over;
    expect(words.at(-1)).toMatch(/x-sum has a character/);
    expect(received[0] ?? '').not.toContain('\r\n0\r\n');
  });

  test.each([
    ['longer', 'more than it says'],
    ['shorter', 'less'],
  ])('a body that is %s than its length is not sent as another request', async (word, text) => {
    const { connections, received } = await start(() => undefined);
    const headers = ['Content-Length', '5'];
    const { words, over } = ask(connections, {
      method: 'PUT',
      body: Readable.from([Buffer.from(text)]),
      headers,
    });
    await over;
    expect(words.at(-1)).toBe(`the body of the request is ${word} than it says`);
    expect(received[0] ?? '').not.toContain('more');
  });

  test.each([
    ['a blank in the path', { path: '/a b' }],
    ['a line end in the path', { path: '/a\r\nX: y' }],
    ['a method that is none', { method: 'GET /' }],
    ['a name that is none', { headers: ['a b', 'c'] }],
    ['a line end in a value', { headers: ['a', 'b\r\nc: d'] }],
    ['a character above 255', { headers: ['a', '\u20ac'] }],
    ['two lengths', { headers: ['content-length', '1', 'Content-Length', '2'], body: Readable.from([]) }],
    ['a length that is no number', { headers: ['content-length', '1x'], body: Readable.from([]) }],
    ['a body without a length', { body: Readable.from([]) }],
    [
      'chunks beside a length',
      {
        ...{ headers: ['content-length', '1', 'transfer-encoding', 'chunked'], body: Readable.from([]) },
      },
    ],
  ])('%s is refused', async (_, request) => {
    const { connections, sockets } = await start(() => undefined);
    expect(() => ask(connections, request)).toThrow(TypeError);
    expect(sockets).toEqual([]);
  });
});

test.each([
  ['a change of the protocol that was asked for', 'websocket', ['sent', 'upgrade', '\u0081']],
  ['another', 'h2c', ['sent', 'the backend changes to a protocol that was not asked for']],
])('%s', async (_, protocol, words) => {
  const { connections } = await start((socket) =>
    socket.write(`HTTP/1.1 101 Switching\r\nUpgrade: ${protocol}\r\n\r\n\u0081`, 'latin1'),
  );
  const said = ask(connections, {
    upgrade: 'WebSocket',
    headers: ['Connection', 'Upgrade', 'Upgrade', 'WebSocket'],
  });
  await said.over;
  expect(said.words).toEqual(words);
});
