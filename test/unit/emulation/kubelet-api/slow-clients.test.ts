import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { ExecStreams } from '../../../../src/controllers/kubelet/container-runtime.ts';
import { forwardChannels } from '../../../../src/emulation/kubelet-api/port-forward.ts';
import { serveRemoteCommand } from '../../../../src/emulation/kubelet-api/streams.ts';
import { writeTo } from '../../../../src/emulation/containers/remote-command.ts';
import { TurnWatchdog } from '../../../support/watchdog/turns.ts';

const mebibyte = 1024 * 1024;
/** What buffers of sockets on the way may hold, bytes; far less than is sent. */
const held = 48 * mebibyte;
const sent = 96 * mebibyte;
/** Milliseconds of CPU. */
const longestTurn = 200;

/** Waits until a number stays as it is. */
async function settled(count: () => number): Promise<number> {
  for (let before = -1; ;) {
    const now = count();
    if (now === before && now > 0) return now;
    before = now;
    await delay(200);
  }
}

describe('streams of a kubelet', () => {
  let server: WebSocketServer;
  let target: Server;
  const ends: (() => void)[] = [];

  beforeEach(async () => {
    server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    target = createServer();
    target.listen(0, '127.0.0.1');
    await once(target, 'listening');
  });
  afterEach(() => {
    for (const end of ends.splice(0)) end();
    for (const client of server.clients) client.terminate();
    server.close();
    target.close();
  });

  /** A client whose connection is served so, and what it does with a message. */
  async function open(
    serve: (socket: WebSocket) => void,
    heard: (message: Buffer) => void = () => undefined,
  ): Promise<WebSocket> {
    server.once('connection', (socket) => {
      socket.on('error', () => undefined);
      serve(socket);
    });
    const client = new WebSocket(`ws://127.0.0.1:${portOf(server.address())}`);
    ends.push(() => client.terminate());
    client.on('message', heard);
    await once(client, 'open');
    return client;
  }

  /** Connects it to a program. A connection that is cut is no failure here. */
  const command = (socket: WebSocket, run: (each: ExecStreams) => Promise<number>): void => {
    serveRemoteCommand(socket, streams, run).catch(() => undefined);
  };
  const streams = { stdin: true, stdout: true, stderr: true, tty: false };

  /** A program that prints so many bytes, as fast as they are taken. */
  const printer =
    (written: (bytes: number) => void) =>
    async ({ stdout, signal }: ExecStreams): Promise<number> => {
      const chunk = Buffer.alloc(64 * 1024, 'x');
      for (let bytes = 0; bytes < sent; bytes += chunk.length) {
        if (signal?.aborted === true || stdout.destroyed) break;
        await writeTo(stdout, chunk);
        written(chunk.length);
      }
      return 0;
    };

  it('hold a program back while its client does not read, and go on when it does, in short turns', async () => {
    let written = 0;
    let read = 0;
    const client = await open(
      (socket) =>
        void serveRemoteCommand(
          socket,
          streams,
          printer((bytes) => (written += bytes)),
        ),
    );
    client.on('message', (message: Buffer) => {
      if (message[0] === 1) read += message.length - 1;
    });
    client.pause();
    expect(await settled(() => written)).toBeLessThan(held);
    const watchdog = new TurnWatchdog();
    client.resume();
    await once(client, 'close');
    const longest = watchdog.longest();
    watchdog.stop();
    expect([written, read]).toEqual([sent, sent]);
    expect(longest).toBeLessThan(longestTurn);
  });

  it('end a program whose client is gone in the middle', async () => {
    const ended = Promise.withResolvers<undefined>();
    let written = 0;
    const client = await open((socket) => {
      command(socket, async (each) => {
        const code = await printer((bytes) => (written += bytes))(each);
        ended.resolve(undefined);
        return code;
      });
    });
    client.pause();
    await settled(() => written);
    client.terminate();
    await ended.promise;
    expect(written).toBeLessThan(sent);
  });

  it('hand over all input of a client that goes at once, and then its end', async () => {
    const heard = Promise.withResolvers<number>();
    const bytes = 4 * mebibyte;
    const client = await open((socket) => {
      command(socket, async ({ stdin }) => {
        let bytesRead = 0;
        // More slowly than it comes: some waits when the client has gone.
        for await (const chunk of stdin ?? []) {
          if (Buffer.isBuffer(chunk)) bytesRead += chunk.length;
          await delay(2);
        }
        heard.resolve(bytesRead);
        return 0;
      });
    });
    const piece = Buffer.alloc(bytes / 64);
    for (let i = 0; i < 64; i++) client.send(Buffer.concat([Buffer.of(0), piece]));
    client.close();
    expect(await heard.promise).toBe(bytes);
  });

  it('take no more of a client than its program reads', async () => {
    let taken = 0;
    const client = await open((socket) => {
      socket.on('message', (message: Buffer) => (taken += message.length - 1));
      command(socket, async ({ signal }) => {
        if (signal !== undefined) await once(signal, 'abort');
        return 0;
      });
    });
    const chunk = Buffer.alloc(256 * 1024);
    for (let bytes = 0; bytes < sent; bytes += chunk.length) client.send(chunk);
    expect(await settled(() => taken)).toBeLessThan(held);
    expect(client.bufferedAmount).toBeGreaterThan(0);
  });

  it('hold the port of a Pod back while the client does not read', async () => {
    let written = 0;
    target.on('connection', (socket: Socket) => {
      socket.on('error', () => undefined);
      const chunk = Buffer.alloc(64 * 1024);
      const write = (): void => {
        while (written < sent) {
          written += chunk.length;
          if (!socket.write(chunk)) return;
        }
        socket.end();
      };
      socket.on('drain', write);
      write();
    });
    let read = 0;
    const client = await open(
      (socket) => forwardChannels(socket, [80], { name: 'pod', connect: dial }),
      (message) => {
        if (message[0] === 0) read += message.length - 1;
      },
    );
    client.pause();
    expect(await settled(() => written)).toBeLessThan(held);
    const watchdog = new TurnWatchdog();
    client.resume();
    // The Pod has closed the connection.
    await once(client, 'close');
    // The first two bytes are the number of the port.
    expect(read).toBe(sent + 2);
    const longest = watchdog.longest();
    watchdog.stop();
    expect(longest).toBeLessThan(longestTurn);
  });

  it('say why a port of a Pod cannot be reached, and end', async () => {
    const connectNowhere = async (): Promise<Socket> => Promise.reject(new Error('the sandbox is gone'));
    const errors: string[] = [];
    const client = await open(
      (socket) => forwardChannels(socket, [80, 81], { name: 'pod shop/cart', connect: connectNowhere }),
      (message) => {
        if ((message[0] ?? 0) % 2 === 1 && message.length > 3) errors.push(message.subarray(1).toString());
      },
    );
    if (client.readyState !== WebSocket.CLOSED) await once(client, 'close');
    expect(errors.sort()).toEqual([
      'error forwarding port 80 to pod shop/cart: the sandbox is gone',
      'error forwarding port 81 to pod shop/cart: the sandbox is gone',
    ]);
  });

  const dial = async (): Promise<Socket> => {
    const socket = connect(portOf(target.address()), '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
});

function portOf(address: AddressInfo | string | null): number {
  return typeof address === 'object' && address !== null ? address.port : 0;
}
