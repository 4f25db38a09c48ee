/** Clients that mean harm, each within what a server must bear. All go on until they are stopped. */
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

async function open({ url, ca }: Target): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca });
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
