import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, headerValue, httpServer, httpsServer } from '../../host/http-server.ts';
import { readTarget, type RequestTarget } from '../../objects/request-target.ts';
import { type AgnhostRun, tlsFile } from './context.ts';
import { dial } from './clients.ts';
import { joinHostPort } from '../../objects/address.ts';
import { errorMessage } from '../../objects/status.ts';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { isRecord } from '../../objects/json.ts';

/**
 * `agnhost netexec`: servers whose answers their clients choose (test/images/agnhost/netexec/netexec.go).
 *
 * @throws the system's error.
 */
export async function netexec(run: AgnhostRun): Promise<void> {
  const { args, container } = run;
  const certificate = args.text('tls-cert-file');
  const override = args.text('http-override');
  const answer: Answer = (request, response, target) =>
    handle(run, request, response, override === '' ? target : (readTarget(override) ?? target));
  const tls =
    certificate === ''
      ? undefined
      : {
          cert: await tlsFile(container, certificate),
          key: await tlsFile(container, args.text('tls-private-key-file')),
        };
  const httpPort = args.number('http-port', 8080);
  if (httpPort >= 0) {
    await run.listen(httpPort, () => (tls === undefined ? httpServer(answer) : httpsServer(tls, answer)));
  }
  const udpPort = args.number('udp-port', 8081);
  const udpAddresses = args.text('udp-listen-addresses').split(',').filter(Boolean);
  if (udpPort >= 0) {
    const answerUdp = (message: Buffer, from: Sender): string | undefined =>
      answerDatagram(run, message, from);
    await run.receive(udpPort, answerUdp, udpAddresses.length > 0 ? udpAddresses : container.listenAt);
  }
  if (args.number('sctp-port', -1) >= 0) container.write('stderr', 'SCTP is not available: no SCTP server\n');
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
  { container }: AgnhostRun,
  message: Buffer,
  { address, port }: Sender,
): string | undefined {
  const text = message.toString().trim().toLowerCase();
  if (text === 'hostname') return container.hostname;
  if (text === 'clientip') return joinHostPort(address, port);
  return text.startsWith('echo ') ? text.slice('echo '.length) : undefined;
}

async function handle(
  run: AgnhostRun,
  request: IncomingMessage,
  response: ServerResponse,
  { pathname, searchParams }: RequestTarget,
): Promise<void> {
  const { container } = run;
  const form = request.method === 'POST' ? await formOf(request) : new URLSearchParams();
  const value = (name: string): string => searchParams.get(name) ?? form.get(name) ?? '';
  request.resume();
  const remote = joinHostPort(request.socket.remoteAddress ?? '', request.socket.remotePort ?? 0);
  run.print(`GET ${request.url ?? '/'} from ${remote}`);
  const plain = (text: string, status = 200): void => {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(text);
  };
  const wanted = pathname.toLowerCase();
  const text = textOf(run, wanted, request.headers, value, remote);
  if (text !== undefined) {
    plain(text, wanted === '/echo' ? Number(value('code')) || 200 : 200);
    return;
  }
  switch (wanted) {
    case '/dial': {
      const { status, body } = await dial(container, value);
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
      plain('');
      run.end(0);
      return;
    case '/exit':
      plain('');
      await delay(secondsAsMs(value('wait')) + secondsAsMs(value('timeout')));
      run.end(Number(value('code')) || 0);
      return;
    default:
      plain(`NOW: ${new Date().toISOString()}`);
  }
}

/** The answer of a path that only returns information. */
function textOf(
  { container }: AgnhostRun,
  path: string,
  headers: IncomingHttpHeaders,
  value: (name: string) => string,
  remote: string,
): string | undefined {
  switch (path) {
    case '/hostname':
      return container.hostname;
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

/** Milliseconds of `10s`. */
function secondsAsMs(text: string): number {
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

/**
 * A runner of `agnhost net`, whose connection stays half closed for tests of conntrack (test/images/agnhost/net). Prints its
 * steps, and throws if the peer behaves otherwise.
 */
type Runner = (run: AgnhostRun, options: Options, say: (text: string) => void) => Promise<void>;

type Options = Readonly<Record<string, unknown>>;

const runners: ReadonlyMap<string, Runner> = new Map<string, Runner>([
  ['nat-closewait-client', closeWaitClient],
  ['nat-closewait-server', closeWaitServer],
]);

/** Runs `--runner` with `--options`, or any on request with `--serve`. */
export async function networkTester(run: AgnhostRun): Promise<void> {
  const { args } = run;
  const [serve, runner] = [args.text('serve'), args.text('runner')];
  const shutdown = args.number('delay-shutdown', 0);
  if (shutdown > 0) {
    run.onTerm = () => {
      run.print(`Sleeping ${shutdown} seconds before terminating...`);
      setTimeout(() => run.end(0), shutdown * 1000).unref();
    };
  }
  if (serve === '' && runner === '') throw new Error('Must set either --runner or --serve, see --help');
  if (serve === '') {
    void execute(run, runner, args.text('options')).then(({ error, output }) => {
      if (error !== undefined) run.container.write('stderr', `Error: ${error}\n`);
      run.container.write('stdout', `output:\n\n${output}`);
      run.end(error === undefined ? 0 : 1);
    });
    return;
  }
  const { address, port } = addressIn(serve);
  const server = () =>
    httpServer((request, response, { pathname }) => {
      const [, name] = /^\/run\/([^/]*)$/.exec(pathname) ?? [];
      if (name === undefined) {
        request.resume();
        response.writeHead(404).end('404 page not found\n');
        return;
      }
      let options = '';
      request.on('data', (chunk: Buffer) => {
        if (options.length < maxOptionsBytes) options += chunk.toString();
      });
      request.once('end', () => {
        void execute(run, name, options).then(({ error, output }) => {
          if (error === undefined) response.end(`ok\noutput:\n\n${output}`);
          else response.writeHead(500).end(`Error from runner: ${error}\noutput:\n\n${output}\n`);
        });
      });
    });
  await run.listen(port, server, listenAddresses(run, address));
  run.print(`Running server on ${serve}`);
}

const maxOptionsBytes = 64 * 1024;

async function execute(
  run: AgnhostRun,
  name: string,
  text: string,
): Promise<{ readonly error?: string; readonly output: string }> {
  let output = '';
  try {
    const runner = runners.get(name);
    if (runner === undefined) throw new Error(`Invalid runner: '${name}', see --help`);
    await runner(run, optionsIn(text), (line) => (output += `# ${line}\n`));
    return { output };
  } catch (error) {
    return { error: errorMessage(error), output };
  }
}

function optionsIn(text: string): Options {
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch (error) {
    throw new Error(`Invalid options JSON: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  if (!isRecord(options)) throw new Error('Invalid options JSON: not an object');
  return options;
}

/** Ends its half of the first connection, waits, and is done. */
async function closeWaitServer(
  run: AgnhostRun,
  options: Options,
  say: (text: string) => void,
): Promise<void> {
  const { address, port } = addressIn(textIn(options, 'LocalAddr'));
  const connected = Promise.withResolvers<Socket>();
  const server = () => createTcpServer({ allowHalfOpen: true }, connected.resolve);
  await run.listen(port, server, listenAddresses(run, address));
  say(`Server listening on ${textIn(options, 'LocalAddr')}`);
  const socket = await connected.promise;
  socket.resume();
  say('Client connected');
  socket.end();
  const seconds = secondsIn(options, 'PostFinTimeoutSeconds');
  say(`Server sent FIN, waiting ${seconds} seconds`);
  await delay(seconds * 1000);
  say('Done');
}

/** Keeps its half of a connection whose other one the server has ended. */
async function closeWaitClient(
  run: AgnhostRun,
  options: Options,
  say: (text: string) => void,
): Promise<void> {
  const { address, port } = addressIn(textIn(options, 'RemoteAddr'));
  const [resolved = ''] = await run.container.resolve(address);
  const socket = await run.container.host.connect(resolved, port);
  socket.allowHalfOpen = true;
  run.keep({ close: () => void socket.destroy() });
  say('Connected to server');
  const limitSeconds = secondsIn(options, 'TimeoutSeconds');
  await halfClosed(socket, limitSeconds > 0 ? limitSeconds * 1000 : undefined);
  const seconds = secondsIn(options, 'PostFinTimeoutSeconds');
  say(`Server has half-closed the connection, waiting ${seconds} seconds`);
  const leaks = options['LeakConnection'] === true;
  if (leaks) say('Leaking client connection (assigning to global variable)');
  await delay(seconds * 1000);
  say('Done');
  if (!leaks) socket.destroy();
}

async function halfClosed(socket: Socket, limitMs: number | undefined): Promise<void> {
  const ended = Promise.withResolvers<undefined>();
  socket.once('end', () => ended.resolve(undefined));
  socket.once('error', ended.reject);
  socket.once('data', () => ended.reject(new Error('Got data but expected EOF')));
  const timer =
    limitMs === undefined ? undefined : setTimeout(() => ended.reject(new Error('i/o timeout')), limitMs);
  try {
    await ended.promise;
  } finally {
    clearTimeout(timer);
  }
}

/** @throws {Error} for no port. */
function addressIn(text: string): { readonly address: string; readonly port: number } {
  const [, address = '', port] = /^\[?(.*?)\]?:(\d+)$/.exec(text) ?? [];
  if (port === undefined) throw new Error(`address ${text}: missing port in address`);
  return { address, port: Number(port) };
}

/** Go's `0.0.0.0`, `::` and no address mean all of the container. */
function listenAddresses({ container }: AgnhostRun, address: string): readonly string[] {
  return ['', '0.0.0.0', '::'].includes(address) ? container.listenAt : [address];
}

function textIn(options: Options, name: string): string {
  const value = options[name];
  return typeof value === 'string' ? value : '';
}

function secondsIn(options: Options, name: string): number {
  const value = options[name];
  return typeof value === 'number' ? value : 0;
}
