import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { handshake } from '../../../src/tls/handshake.ts';

/** A connection to a server that says nothing. */
async function silent(): Promise<{ socket: Socket; accepted: Socket; end: () => void }> {
  const arrived = Promise.withResolvers<Socket>();
  const server = createServer(arrived.resolve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const socket = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1');
  await once(socket, 'connect');
  const accepted = await arrived.promise;
  return {
    ...{ socket, accepted },
    end: () => {
      socket.destroy();
      server.close();
    },
  };
}

test('a server that resets what nobody waits for any more ends nothing', async () => {
  const { socket, accepted, end } = await silent();
  const waiting = new AbortController();
  const secured = handshake({ socket, rejectUnauthorized: false }, waiting.signal);
  waiting.abort(new Error('no time left'));
  await expect(secured).rejects.toThrow('no time left');
  accepted.resetAndDestroy();
  // An error without a listener would be an uncaught exception, which fails the run.
  if (!socket.closed) await once(socket, 'close');
  end();
});

test('what is no TLS is the error of the system', async () => {
  const { socket, accepted, end } = await silent();
  accepted.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  await expect(handshake({ socket }, AbortSignal.timeout(5000))).rejects.toThrow(/wrong version number/);
  end();
});
