/** `agnhost netexec`: a server whose answers its clients choose (test/images/agnhost/netexec/netexec.go). */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from '../../../host/node-http.ts';
import type { AgnhostRun } from './context.ts';
import { dial } from './dial.ts';
import { tlsFile } from './localhost-certificate.ts';
import { joinHostPort } from '../../../objects/address.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/** Starts the servers. @throws the system's error. */
export async function netexec(run: AgnhostRun): Promise<void> {
  const { args, place } = run;
  const certificate = args.text('tls-cert-file');
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    handle(run, request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  };
  const tls =
    certificate === ''
      ? undefined
      : {
          cert: await tlsFile(place, certificate),
          key: await tlsFile(place, args.text('tls-private-key-file')),
        };
  const httpPort = args.number('http-port', 8080);
  if (httpPort >= 0) {
    await run.listen(httpPort, () =>
      tls === undefined ? createServer(answer) : createTlsServer(tls, answer),
    );
  }
  const udpPort = args.number('udp-port', 8081);
  const udpAddresses = args.text('udp-listen-addresses').split(',').filter(Boolean);
  if (udpPort >= 0) {
    const answerUdp = (message: Buffer, from: Sender): string | undefined =>
      answerDatagram(run, message, from);
    await run.receive(udpPort, answerUdp, udpAddresses.length > 0 ? udpAddresses : place.listenAt);
  }
  if (args.number('sctp-port', -1) >= 0) place.write('stderr', 'SCTP is not available: no SCTP server\n');
  const shutdown = args.number('delay-shutdown', 0);
  if (shutdown > 0) {
    run.onTerm = () => {
      run.print(`Sleeping ${shutdown} seconds before terminating...`);
      setTimeout(() => run.end(0), shutdown * 1000).unref();
    };
  }
  run.print(`Started HTTP server on port ${httpPort}`);
  run.print(`Started UDP server on port  ${udpPort}`);
}

/** The sender of a datagram. */
interface Sender {
  readonly address: string;
  readonly port: number;
}

/** Upper case is lost, also that of the echo, as it is upstream. */
function answerDatagram(
  { place }: AgnhostRun,
  message: Buffer,
  { address, port }: Sender,
): string | undefined {
  const text = message.toString().trim().toLowerCase();
  if (text === 'hostname') return place.hostname;
  if (text === 'clientip') return joinHostPort(address, port);
  return text.startsWith('echo ') ? text.slice('echo '.length) : undefined;
}

async function handle(run: AgnhostRun, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { place, args } = run;
  const url = new URL(args.text('http-override') || (request.url ?? '/'), 'http://agnhost');
  const form = request.method === 'POST' ? await formOf(request) : new URLSearchParams();
  const value = (name: string): string => url.searchParams.get(name) ?? form.get(name) ?? '';
  request.resume();
  const remote = joinHostPort(request.socket.remoteAddress ?? '', request.socket.remotePort ?? 0);
  run.print(`GET ${request.url ?? '/'} from ${remote}`);
  const plain = (text: string, status = 200): void => {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
  };
  const wanted = url.pathname.toLowerCase();
  const text = textOf(run, wanted, request.headers, value, remote);
  if (text !== undefined) {
    plain(text, wanted === '/echo' ? Number(value('code')) || 200 : 200);
    return;
  }
  switch (wanted) {
    case '/dial': {
      const { status, body } = await dial(place, value);
      plain(typeof body === 'string' ? body : JSON.stringify(body), status);
      return;
    }
    case '/shell':
      plain(JSON.stringify(await shell(run, value('shellCommand') || value('cmd'))));
      return;
    case '/redirect':
      response.writeHead(Number(value('code')) || 302, { Location: value('location') }).end();
      return;
    case '/shutdown':
      plain('');
      run.end(0);
      return;
    case '/exit':
      plain('');
      await delay(seconds(value('wait')) + seconds(value('timeout')));
      run.end(Number(value('code')) || 0);
      return;
    default:
      plain(`NOW: ${new Date().toISOString()}`);
  }
}

/** The answer of a path that only returns information. */
function textOf(
  { place }: AgnhostRun,
  path: string,
  headers: IncomingHttpHeaders,
  value: (name: string) => string,
  remote: string,
): string | undefined {
  switch (path) {
    case '/hostname':
      return place.hostname;
    case '/clientip':
      return remote;
    case '/healthz':
      return '';
    case '/echo':
      return value('msg');
    case '/header': {
      const header = headers[value('key').toLowerCase()];
      return Array.isArray(header) ? header.join(', ') : (header ?? '');
    }
    default:
      return undefined;
  }
}

async function shell({ place }: AgnhostRun, command: string): Promise<{ output?: string; error?: string }> {
  try {
    const { exitCode, stdout, stderr } = await place.exec(['/bin/sh', '-c', command]);
    const output = `${stdout}${stderr}`;
    return {
      ...(output === '' ? {} : { output }),
      ...(exitCode === 0 ? {} : { error: `exit status ${exitCode}` }),
    };
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

/** Milliseconds of `10s`. */
function seconds(text: string): number {
  const [, amount = '0', unit = 's'] = /^([\d.]+)(ms|s|m)?$/.exec(text) ?? [];
  return Number(amount) * ({ ms: 1, s: 1000, m: 60_000 }[unit] ?? 1000);
}

/** Most bytes of a posted form. */
const maxFormBytes = 64 * 1024;

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size <= maxFormBytes) chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
