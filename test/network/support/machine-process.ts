/** The process of a simulated machine: it runs inside the network namespace, and does what its parent asks over IPC. */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Server, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecResult } from '../../../src/host/host.ts';
import { localHost } from '../../../src/host/local-host.ts';
import {
  type Answer,
  type Call,
  isAnswer,
  isRequest,
  type Outcome,
  type Program,
  type Question,
} from './machine-protocol.ts';

type Handle = Server | Socket | DatagramSocket;

process.on('message', (message) => {
  if (!isRequest(message)) throw new Error('no request');
  const { id, request } = message;
  answer(id, request).then(
    ({ result, handle }) => send({ id, result }, handle),
    (error: unknown) => {
      const known = error instanceof Error ? error : new Error(String(error));
      const code = 'code' in known && typeof known.code === 'string' ? known.code : undefined;
      send({ id, error: { message: known.message, code, name: known.name } });
    },
  );
});
process.on('disconnect', () => process.exit());
send({ id: 0, result: 'ready' });

/** A handle that was sent is the receiver's: here it is closed. */
function send(message: object, handle?: Handle): void {
  process.send?.(message, handle, {}, (error) => {
    if (error !== null) throw error;
    if (handle instanceof Socket) handle.destroy();
    else handle?.close();
  });
}

/** By the request that began them. */
const programs = new Map<
  number,
  { readonly ending: AbortController; feed?: (text: string | undefined) => void }
>();

async function answer(id: number, request: Call): Promise<{ result?: unknown; handle?: Handle }> {
  switch (request.call) {
    case 'exec':
      return { result: await runProgram(id, request) };
    case 'feed':
      programs.get(request.of)?.feed?.(request.text);
      return {};
    case 'abort':
      programs.get(request.of)?.ending.abort();
      return {};
    case 'getSysctl':
      return { result: await localHost.sysctl.get(request.name) };
    case 'setSysctl':
      await localHost.sysctl.set(request.name, request.value);
      return {};
    case 'listen': {
      const server = createServer();
      await localHost.listen(server, request.address, request.port);
      return { handle: server };
    }
    case 'connect': {
      // Paused: what it read here would be lost to the receiver.
      const socket = new Socket().pause();
      const connected = once(socket, 'connect');
      const { address, port, from } = request;
      socket.connect({ host: address, port, ...(from === undefined ? {} : { localAddress: from }) });
      await connected;
      return { handle: socket };
    }
    case 'datagram':
      return { handle: await localHost.datagram(request.address, request.port) };
    case 'serve':
      await (request.protocol === 'TCP' ? serveTcp : serveUdp)(request.name, request.port);
      return {};
    case 'ask':
      return { result: await (request.protocol === 'TCP' ? askTcp : askUdp)(request) };
  }
}

async function runProgram(id: number, { program, args, input, tellsOutput }: Program): Promise<ExecResult> {
  const running: { ending: AbortController; feed?: (text: string | undefined) => void } = {
    ending: new AbortController(),
  };
  programs.set(id, running);
  const pieces = async function* (): AsyncGenerator<string> {
    for (;;) {
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      running.feed = resolve;
      send({ id, wantsInput: true });
      const text = await promise;
      if (text === undefined) return;
      yield text;
    }
  };
  try {
    return await localHost.exec(program, args, {
      signal: running.ending.signal,
      input: input === 'pieces' ? pieces() : input.text,
      ...(tellsOutput ? { output: (text: string) => send({ id, output: text }) } : {}),
    });
  } finally {
    programs.delete(id);
  }
}

/** Answers a connection at once, without waiting for a request; HTTP clients like it too. */
async function serveTcp(name: string, port: number): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    const body = said({ name, port, client: plain(socket.remoteAddress ?? '') });
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
    socket.resume();
  });
  server.listen(port, '::');
  await once(server, 'listening');
}

async function serveUdp(name: string, port: number): Promise<void> {
  for (const type of ['udp4', 'udp6'] as const) {
    const socket = createSocket({ type, ipv6Only: type === 'udp6' });
    socket.on('message', (_, { address, port: to }) => {
      socket.send(said({ name, port, client: address }), to, address);
    });
    socket.bind(port);
    await once(socket, 'listening');
  }
}

function said(text: Answer): string {
  return JSON.stringify(text);
}

function asAnswer(text: string): Answer {
  const answer: unknown = JSON.parse(text);
  if (!isAnswer(answer)) throw new Error(`no answer of a machine: ${text}`);
  return answer;
}

/** Servers of both families see IPv4 clients as mapped addresses. */
function plain(address: string): string {
  return address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
}

async function askTcp({ address, port, timeout, sourceAddress, sourcePort }: Question): Promise<Outcome> {
  const socket = new Socket();
  const ended = new Promise<Outcome>((resolve) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('error', ({ message }) => resolve(message.includes('ECONNREFUSED') ? 'refused' : 'silence'));
    socket.on('end', () => resolve(asAnswer(text.slice(text.indexOf('{')))));
  });
  socket.connect({
    host: address,
    port,
    ...(sourceAddress === undefined ? {} : { localAddress: sourceAddress }),
    ...(sourcePort === undefined ? {} : { localPort: sourcePort }),
  });
  try {
    return await Promise.race([ended, delay<Outcome>(timeout, 'silence', { ref: false })]);
  } finally {
    socket.resetAndDestroy();
  }
}

async function askUdp({ address, port, timeout, sourceAddress, sourcePort }: Question): Promise<Outcome> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  let again: NodeJS.Timeout | undefined;
  const answered = new Promise<Outcome>((resolve) => {
    socket.on('message', (message) => resolve(asAnswer(message.toString())));
    socket.on('error', () => resolve('refused'));
  });
  try {
    socket.bind(sourcePort ?? 0, sourceAddress);
    await once(socket, 'listening');
    socket.connect(port, address);
    await once(socket, 'connect');
    // Datagrams get lost, and the kernel sends only so many refusals a second.
    again = setInterval(() => socket.send('who?'), 200);
    socket.send('who?');
    return await Promise.race([answered, delay<Outcome>(timeout, 'silence', { ref: false })]);
  } finally {
    clearInterval(again);
    socket.close();
  }
}
