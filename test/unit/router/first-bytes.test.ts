import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { connect } from 'node:tls';
import { beforeAll, expect, test } from 'vitest';
import { readClientHello } from '../../../src/router/first-bytes.ts';
import { portOf } from '../../support/router/router.ts';

/** The first bytes of a client of OpenSSL. */
async function helloOf(servername: string): Promise<Buffer> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: portOf(server), host: '127.0.0.1', servername });
  client.on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  let bytes = Buffer.alloc(0);
  while (readClientHello(bytes).kind === 'incomplete') {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    bytes = Buffer.concat([bytes, chunk]);
  }
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

let hello: Buffer;
beforeAll(async () => {
  hello = await helloOf('Shop.Example.com');
});

test('the server name of a client, in lower case; none where it names none', async () => {
  expect(readClientHello(hello)).toEqual({ kind: 'hello', serverName: 'shop.example.com' });
  expect(readClientHello(await helloOf(''))).toEqual({ kind: 'hello', serverName: undefined });
});

test('any part of it asks for more', () => {
  for (let length = 0; length < hello.length; length++) {
    expect(readClientHello(hello.subarray(0, length))).toEqual({ kind: 'incomplete' });
  }
});

test('a hello that is split over records', () => {
  const message = hello.subarray(5);
  const pieces: Buffer[] = [];
  for (let at = 0; at < message.length; at += 50) {
    const piece = message.subarray(at, at + 50);
    pieces.push(Buffer.from([22, 3, 1, 0, piece.length]), piece);
  }
  expect(readClientHello(Buffer.concat(pieces))).toEqual({ kind: 'hello', serverName: 'shop.example.com' });
});

test('what is no TLS, or lies about its lengths, is none', () => {
  expect(readClientHello(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toEqual({ kind: 'other' });
  // Any change of one byte leads to an answer, never to an error.
  for (let at = 0; at < hello.length; at++) {
    for (const value of [0, 1, 127, 255]) {
      const changed = Buffer.from(hello);
      changed[at] = value;
      expect(['hello', 'other', 'incomplete']).toContain(readClientHello(changed).kind);
    }
  }
});
