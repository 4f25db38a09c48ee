import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls, createServer, type Server } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../../src/tls/certificates.ts';
import { refusePlainHttp } from '../../../src/tls/plain-http.ts';

const now = new Date();
const ca = createCertificateAuthority('ca', { now });
const { certificate: cert, key } = issueServerCertificate(ca, 'server', ['127.0.0.1'], { now });
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listening(server: Server): Promise<number> {
  servers.push(server);
  refusePlainHttp(server);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
}

test.each([
  ['TLS', () => createServer({ cert, key }, (socket) => socket.end('secret'))],
  ['HTTPS', () => createHttpsServer({ cert, key }, (_request, response) => response.end('secret'))],
])('plain HTTP to a server of %s is told so, and TLS is served', async (_what, create) => {
  const created = create();
  const port = await listening(created);
  for (const line of ['GET / HTTP/1.1', 'POST /api HTTP/1.1', 'PUT /x HTTP/1.1', 'HEAD / HTTP/1.0']) {
    const socket = connect(port, '127.0.0.1');
    socket.write(`${line}\r\nHost: x\r\n\r\n`);
    expect(await text(socket)).toBe(
      'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n',
    );
  }
  // Also one that neither reads nor closes is not kept.
  const silent = connect(port, '127.0.0.1').on('error', () => undefined);
  silent.write('GET / HTTP/1.1\r\n\r\n');
  await once(silent, 'connect');
  await expect.poll(() => connectionsOf(created), { timeout: 10_000 }).toBe(0);
  silent.destroy();
  const noise = connect(port, '127.0.0.1').on('error', () => undefined);
  noise.write(Buffer.alloc(64, 0xff));
  await new Promise((resolve) => noise.once('close', resolve).resume());
  const secure = connectTls({ host: '127.0.0.1', port, ca: ca.certificate });
  await once(secure, 'secureConnect');
  secure.destroy();
});
