/**
 * The server of Kubernetes' image regression-issue-74839, by its steps: it listens at the port of its second argument
 * and sees all TCP packets that come to the address of its first one. To each client that has connected it sends a packet
 * far below the window of the connection, past its own kernel. What it prints is upstream's; it ends after so many
 * connections (its third argument) and two seconds for what comes back.
 */
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { load } from 'koffi';

const libc = load(null);
const socket = libc.func('int socket(int domain, int type, int protocol)');
const bind = libc.func('int bind(int fd, const void *address, unsigned int length)');
const recv = libc.func('long recv(int fd, _Out_ uint8_t *buffer, unsigned long length, int flags)');
const sendto = libc.func(
  'long sendto(int fd, const void *buffer, unsigned long length, int flags, const void *address, unsigned int size)',
);

const [own = '', portText = '', wanted = ''] = process.argv.slice(2);
const port = Number(portText);
const [inet, raw, tcp] = [2, 3, 6];
const flags = { syn: 2, rst: 4, push: 8, ack: 16 } as const;
/** Below any window. */
const below = 100_000;

const bytesOf = (address: string): Buffer => Buffer.from(address.split('.').map(Number));
/** `struct sockaddr_in` without a port. */
const socketAddress = (address: Buffer): Buffer =>
  Buffer.concat([Buffer.from(Uint16Array.of(inet).buffer), Buffer.alloc(2), address, Buffer.alloc(8)]);

const descriptor = Number(socket(inet, raw, tcp));
if (descriptor < 0 || Number(bind(descriptor, socketAddress(bytesOf(own)), 16)) !== 0)
  throw new Error('no raw socket');

/** RFC 1071, over the pseudo header of RFC 9293, 3.1. */
function checksum(from: Buffer, to: Buffer, segment: Buffer): number {
  const padded = Buffer.concat([
    ...[from, to, Buffer.from([0, tcp, segment.length >> 8, segment.length & 255]), segment],
    Buffer.alloc(segment.length % 2),
  ]);
  let sum = 0;
  for (let at = 0; at < padded.length; at += 2) sum += padded.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** By client, the number of the byte that it sends next. */
const pending = new Map<string, number>();
let injected = 0;

function hear(packet: Buffer): void {
  const segment = packet.subarray((packet.readUInt8(0) & 15) * 4);
  if (segment.readUInt16BE(2) !== port) return;
  const client = packet.subarray(12, 16);
  const key = `${client.toString('hex')}:${segment.readUInt16BE(0)}`;
  const seen = segment.readUInt8(13);
  if ((seen & flags.syn) !== 0) {
    pending.set(key, segment.readUInt32BE(4) + 1);
    return;
  }
  if ((seen & flags.rst) !== 0) console.log('ERROR: RST received');
  const next = pending.get(key);
  if ((seen & flags.ack) === 0 || next === undefined) return;
  console.log('connection established');
  pending.delete(key);
  const bad = Buffer.alloc(20);
  bad.writeUInt16BE(port, 0);
  bad.writeUInt16BE(segment.readUInt16BE(0), 2);
  bad.writeUInt32BE((segment.readUInt32BE(8) - below) >>> 0, 4);
  bad.writeUInt32BE(next >>> 0, 8);
  bad.writeUInt8(5 << 4, 12);
  bad.writeUInt8(flags.push | flags.ack, 13);
  bad.writeUInt16BE(segment.readUInt16BE(14), 14);
  const boom = Buffer.concat([bad, Buffer.from('boom!!!')]);
  boom.writeUInt16BE(checksum(bytesOf(own), client, boom), 16);
  if (Number(sendto(descriptor, boom, boom.length, 0, socketAddress(client), 16)) === boom.length) {
    console.log('boom packet injected');
    if (++injected === Number(wanted)) void delay(2000).then(() => process.exit());
  }
}

/** Waits for packets in another thread. */
function listen(): void {
  const buffer = Buffer.alloc(4096);
  recv.async(descriptor, buffer, buffer.length, 0, (_error: unknown, length: unknown) => {
    if (Number(length) > 0) hear(buffer.subarray(0, Number(length)));
    listen();
  });
}

createServer((connection) => connection.on('error', () => undefined).resume()).listen(port, own, () => {
  listen();
  console.log('listening');
});
// Whatever comes: a test has failed long before.
void delay(100_000).then(() => process.exit(1));
