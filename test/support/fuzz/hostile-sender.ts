/**
 * Sends hostile bytes to listeners, from the network that it is run in: `hostile-sender.ts SECONDS SEED LISTENERS`, the last
 * as JSON. First each gets what has ended one before, then chance decides, for so many seconds. Prints as JSON what was
 * sent; whether all live is for others to ask.
 */
import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { setTimeout as delay } from 'node:timers/promises';
import { load } from 'koffi';
import { numberAt, textAt } from '../../../src/objects/json.ts';
import { drawsOf, hostileBytes, knownRequests } from './hostile-bytes.ts';

/** A listener, by the innermost protocol that is spoken to it. */
interface Listener {
  /** `peer`: it is the other side that connects, to this address. `unix`: the address is a path. */
  readonly protocol: 'tcp' | 'tls' | 'udp' | 'unix' | 'peer';
  readonly address: string;
  readonly port: number;
  /** By TLS: the protocol that is agreed on. */
  readonly alpn: string;
}

const [seconds = '0', seed = '1', text = '[]'] = process.argv.slice(2);
const parsed: unknown = JSON.parse(text);
const listeners = (Array.isArray(parsed) ? parsed : []).map(listenerOf);
const draw = drawsOf(Number(seed));
const sent = { connections: 0, datagrams: 0, fromPort0: 0 };

function listenerOf(value: unknown): Listener {
  const protocol =
    (['tcp', 'tls', 'udp', 'unix', 'peer'] as const).find((each) => each === textAt(value, 'protocol')) ??
    'tcp';
  return {
    protocol,
    address: textAt(value, 'address'),
    port: numberAt(value, 'port'),
    alpn: textAt(value, 'alpn'),
  };
}

async function open({ protocol, address, port, alpn }: Listener): Promise<Socket | undefined> {
  const servername = ['edge.test', 'pass.test', 'none.test', ''][draw(4)] ?? '';
  const tls = {
    ...{ rejectUnauthorized: false, servername },
    ...(alpn === '' ? {} : { ALPNProtocols: [alpn] }),
  };
  const plain = connect(protocol === 'unix' ? { path: address } : { host: address, port });
  plain.on('error', () => undefined);
  if (protocol === 'unix') withoutReset.add(plain);
  const socket = protocol === 'tls' ? connectTls({ socket: plain, ...tls }) : plain;
  plainOf.set(socket, plain);
  // A refusal or a reset is an answer, too.
  const closed = new Promise<undefined>((resolve) => socket.once('close', () => resolve(undefined)));
  const opened = new Promise<Socket>((resolve) =>
    socket.once(protocol === 'tls' ? 'secureConnect' : 'connect', () => resolve(socket)),
  );
  socket.on('error', () => undefined);
  socket.setTimeout(5000, () => socket.destroy());
  return await Promise.race([opened, closed]);
}

/** The connection that a socket of TLS has below it. */
const plainOf = new WeakMap<Socket, Socket>();

/** Connections that no RST can end. */
const withoutReset = new WeakSet<Socket>();

function reset(socket: Socket): void {
  const plain = plainOf.get(socket) ?? socket;
  if (withoutReset.has(plain)) plain.destroy();
  else if (!plain.destroyed) plain.resetAndDestroy();
}

/** How a connection ends behind what was written to it. */
const endings: readonly ((socket: Socket) => Promise<void> | void)[] = [
  (socket) => {
    reset(socket);
  },
  (socket) => void socket.end(),
  (socket) => void socket.destroy(),
  async (socket) => {
    socket.resume();
    await Promise.race([new Promise((resolve) => socket.once('close', resolve)), delay(100)]);
  },
  async (socket) => {
    // Half closed, and reset while the answer comes.
    socket.end();
    await delay(5);
    reset(socket);
  },
];

async function sendTo(listener: Listener, bytes: Buffer): Promise<void> {
  if (listener.protocol === 'udp') {
    await sendDatagrams(listener, bytes);
    return;
  }
  if (listener.protocol === 'peer') return;
  const socket = await open(listener);
  if (socket === undefined) return;
  await harm(socket, bytes);
}

async function harm(socket: Socket, bytes: Buffer): Promise<void> {
  sent.connections++;
  const written = new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  await Promise.race([written, delay(100)]);
  if (draw(2) === 0) await delay(draw(10));
  await (endings[draw(endings.length)] ?? endings[0])?.(socket);
  socket.destroy();
}

const libc = load(null);
const calls = {
  socket: libc.func('int socket(int domain, int type, int protocol)'),
  sendto: libc.func(
    'long sendto(int fd, const void *bytes, unsigned long length, int flags, const void *address, unsigned int size)',
  ),
};
/** AF_INET, SOCK_RAW, IPPROTO_UDP; negative without the capability NET_RAW. */
const raw: unknown = calls.socket(2, 3, 17);

async function sendDatagrams({ address, port }: Listener, bytes: Buffer): Promise<void> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.send(bytes.subarray(0, 1400), port, address, () => resolve()));
  socket.close();
  sent.datagrams++;
  if (typeof raw === 'number' && raw >= 0 && !address.includes(':')) sendFromPort0(raw, address, port, bytes);
}

/** The kernel writes the head of IPv4; a checksum of 0 is none. */
function sendFromPort0(fd: number, address: string, port: number, bytes: Buffer): void {
  const payload = bytes.subarray(0, 1400);
  const datagram = Buffer.alloc(8 + payload.length);
  datagram.writeUInt16BE(port, 2);
  datagram.writeUInt16BE(datagram.length, 4);
  payload.copy(datagram, 8);
  const to = Buffer.alloc(16);
  to.writeUInt16LE(2, 0);
  for (const [i, byte] of address.split('.').entries()) to.writeUInt8(Number(byte), 4 + i);
  if (Number(calls.sendto(fd, datagram, datagram.length, 0, to, to.length)) > 0) sent.fromPort0++;
}

const peers = listeners
  .filter(({ protocol }) => protocol === 'peer')
  .map(({ address, port }) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      void harm(socket, hostileBytes(draw));
    });
    return server.listen(port, address);
  });
for (const bytes of [...knownRequests(), Buffer.from('hostname'), Buffer.from('x')]) {
  await Promise.all(listeners.map((listener) => sendTo(listener, bytes)));
}
const until = performance.now() + Number(seconds) * 1000;
while (performance.now() < until) {
  await Promise.all(listeners.map((listener) => sendTo(listener, hostileBytes(draw))));
  if (peers.length > 0) await delay(100);
}
process.stdout.write(JSON.stringify(sent));
process.exit();
