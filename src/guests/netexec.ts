import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { joinHostPort } from '../objects/address.ts';
import type { ProgramContainer } from '../emulation/program.ts';
import { type Answer, headerValue, httpServer, httpsServer } from '../host/http-server.ts';
import { readTarget, type RequestTarget } from '../objects/formats/go-url.ts';
import { errorMessage } from '../objects/status.ts';
import { parseDuration } from '../objects/formats/time.ts';
import { dial } from './dial.ts';
import type { AgnhostRun } from './run.ts';

/** Where the servers of netexec are, and what they are to say of themselves. */
interface Netexec {
  readonly run: AgnhostRun;
  readonly httpPort: number;
  readonly udpPort: number;
  /** A datagram is awaited. */
  isReady: boolean;
  /** SIGTERM came. */
  isEnding: boolean;
}

/**
 * `agnhost netexec`: servers whose answers their clients choose (test/images/agnhost/netexec/netexec.go), but for SCTP and
 * uploads.
 *
 * @throws the system's error.
 */
export async function netexec(run: AgnhostRun): Promise<void> {
  const flags = run.flags([
    ...['http-port', 'tls-cert-file', 'tls-private-key-file', 'http-override', 'delay-shutdown'],
    ...['udp-port', 'udp-listen-addresses', 'sctp-port'],
  ]);
  const [httpPort, udpPort] = [flags.number('http-port', 8080), flags.number('udp-port', 8081)];
  const state: Netexec = { run, httpPort, udpPort, isReady: false, isEnding: false };
  const delaySeconds = flags.number('delay-shutdown', 0);
  run.onSignal = () => {
    state.isEnding = true;
    if (delaySeconds > 0) run.print(`Sleeping ${delaySeconds} seconds before terminating...`);
    setTimeout(() => run.end(0), delaySeconds * 1000).unref();
  };
  const override = readTarget(flags.text('http-override'));
  const answer: Answer = (request, response, target) => handle(state, request, response, override ?? target);
  const certificate = flags.text('tls-cert-file');
  const tls =
    certificate === ''
      ? undefined
      : await keyPair(run.container, certificate, flags.text('tls-private-key-file'));
  await run.listen(httpPort, () => (tls === undefined ? httpServer(answer) : httpsServer(tls, answer)));
  run.print(`Started HTTP server on port ${httpPort}`);
  if (udpPort !== -1) {
    const addresses = new Set(flags.text('udp-listen-addresses').split(',').filter(Boolean));
    await run.receive(
      addresses.size > 0 ? [...addresses] : run.container.listenAt,
      udpPort,
      (message, from) => answerDatagram(state, message, joinHostPort(from.address, from.port)),
    );
    run.print(`Started UDP server on port ${udpPort}`);
    state.isReady = true;
  }
  if (flags.number('sctp-port', -1) !== -1) {
    run.container.write('stderr', 'SCTP is not available: no SCTP server\n');
  }
}

/** The certificate and the key of these files; at the top the image has its own ones, for localhost. */
async function keyPair(
  container: ProgramContainer,
  certificateFile: string,
  keyFile: string,
): Promise<{ readonly cert: Buffer | string; readonly key: Buffer | string }> {
  const { createCertificateAuthority, issueServerCertificate } = await import('../tls/certificates.ts');
  const validity = { now: new Date() };
  const authority = createCertificateAuthority('localhost', validity);
  const own = issueServerCertificate(authority, 'localhost', ['localhost', '127.0.0.1', '::1'], validity);
  const isOwn = (path: string, name: string): boolean => path === name || path === `/${name}`;
  return {
    cert: isOwn(certificateFile, 'localhost.crt')
      ? own.certificate
      : await container.readFile(certificateFile),
    key: isOwn(keyFile, 'localhost.key') ? own.key : await container.readFile(keyFile),
  };
}

/** Upper case is lost, also that of the echo, as it is upstream. */
function answerDatagram({ run, udpPort }: Netexec, message: Buffer, client: string): string | undefined {
  const { hostname, environment } = run.container;
  const text = message.toString().trim();
  const lower = text.toLowerCase();
  if (lower.startsWith('echo ')) return lower.slice('echo '.length);
  if (lower.startsWith('envvar ')) return environment.get(text.slice('envvar '.length).trim()) ?? '';
  switch (lower) {
    case 'hostname':
      return hostname;
    case 'clientip':
      return client;
    case 'serverport':
      return String(udpPort);
    default:
      return undefined;
  }
}

async function handle(
  state: Netexec,
  request: IncomingMessage,
  response: ServerResponse,
  { pathname, searchParams }: RequestTarget,
): Promise<void> {
  const { run } = state;
  const form = request.method === 'POST' ? await formOf(request) : new URLSearchParams();
  const value = (name: string): string => searchParams.get(name) ?? form.get(name) ?? '';
  request.resume();
  const remote = joinHostPort(request.socket.remoteAddress ?? '', request.socket.remotePort ?? 0);
  run.print(`GET ${request.url ?? '/'} from ${remote}`);
  // As Go finds out: markup, or a text.
  const plain = (text: string, status = 200): void => {
    const type = /^\s*<[!a-z]/i.test(text) ? 'html' : 'plain';
    response.writeHead(status, { 'Content-Type': `text/${type}; charset=utf-8` }).end(text);
  };
  switch (pathname) {
    case '/echo':
      plain(value('msg'), Number(value('code')) || 200);
      return;
    case '/dial': {
      const { status, body } = await dial(run.container, value);
      plain(typeof body === 'string' ? body : JSON.stringify(body), status);
      return;
    }
    case '/shell':
      plain(JSON.stringify(await shell(run, value('shellCommand') || value('cmd'))));
      return;
    case '/redirect':
      response.writeHead(Number(value('code')) || 302, { Location: headerValue(value('location')) }).end();
      return;
    case '/shutdown':
      run.end(0);
      return;
    case '/exit':
      await exit(run, response, value);
      return;
    default: {
      const [text, status] = textOf(state, pathname, request.headers, value, remote);
      plain(text, status);
    }
  }
}

/** The answer of a path that only returns information. */
function textOf(
  { run, httpPort, isReady, isEnding }: Netexec,
  path: string,
  headers: IncomingHttpHeaders,
  value: (name: string) => string,
  remote: string,
): readonly [text: string, status: number] {
  switch (path) {
    case '/hostname':
    case '/hostName':
      return [run.container.hostname, 200];
    case '/clientip':
      return [remote, 200];
    case '/serverport':
      return [String(httpPort), 200];
    case '/healthz':
      return ['', isReady ? 200 : 412];
    case '/readyz':
      if (isEnding) return ['shutting down', 503];
      return isReady ? ['ok', 200] : ['', 412];
    case '/envvar': {
      const text = run.container.environment.get(value('var'));
      if (value('var') === '') return ["'var' query parameter is required\n", 400];
      return text === undefined ? [`env var ${JSON.stringify(value('var'))} is not set\n`, 500] : [text, 200];
    }
    case '/header':
      return [headerText(headers, value('key')), 200];
    default:
      return [`NOW: ${new Date().toISOString()}`, 200];
  }
}

/** One header, or all of them but Host as Go writes them. */
function headerText(headers: IncomingHttpHeaders, key: string): string {
  if (key !== '') return [headers[key.toLowerCase()] ?? ''].flat().join(', ');
  const canonical = (name: string): string => name.replaceAll(/(?<=^|-)[a-z]/g, (each) => each.toUpperCase());
  const others = Object.entries(headers).filter(([name]) => name !== 'host');
  return JSON.stringify(Object.fromEntries(others.map(([name, text]) => [canonical(name), [text].flat()])));
}

/** Ends the program: at once, or with `timeout` behind its answer. */
async function exit(
  run: AgnhostRun,
  response: ServerResponse,
  value: (name: string) => string,
): Promise<void> {
  const [waitMs, timeoutMs] = ['wait', 'timeout'].map((name) => parseDuration(value(name) || '0'));
  const code = Number(value('code'));
  if (waitMs === undefined || timeoutMs === undefined || !Number.isInteger(code)) {
    response.end("arguments 'wait' and 'timeout' must be durations, and 'code' an integer\n");
    return;
  }
  await delay(waitMs);
  if (timeoutMs === 0) run.end(code);
  else response.end(() => run.end(code));
}

async function shell(
  { container }: AgnhostRun,
  command: string,
): Promise<{ output?: string; error?: string }> {
  try {
    const { exitCode, stdout, stderr } = await container.exec(['/bin/sh', '-c', command]);
    const output = `${stdout}${stderr}`;
    return {
      ...(output === '' ? {} : { output }),
      ...(exitCode === 0 ? {} : { error: `exit status ${exitCode}` }),
    };
  } catch (error) {
    return { error: errorMessage(error) };
  }
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
