/** `agnhost net`: a connection that stays half closed, for tests of conntrack (test/images/agnhost/net). */
import { createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from '../../../host/node-http.ts';
import { isRecord } from '../../../objects/json.ts';
import type { AgnhostRun } from './context.ts';
import { errorMessage } from '../../../objects/error-message.ts';

/** Prints its steps, and throws if the peer behaves otherwise. */
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
      if (error !== undefined) run.place.write('stderr', `Error: ${error}\n`);
      run.place.write('stdout', `output:\n\n${output}`);
      run.end(error === undefined ? 0 : 1);
    });
    return;
  }
  const { address, port } = addressIn(serve);
  const server = () =>
    createServer((request, response) => {
      const [, name] = /^\/run\/([^/?]*)$/.exec(request.url ?? '') ?? [];
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
  const [resolved = ''] = await run.place.resolve(address);
  const socket = await run.place.host.connect(resolved, port);
  socket.allowHalfOpen = true;
  run.keep({ close: () => void socket.destroy() });
  say('Connected to server');
  const limit = secondsIn(options, 'TimeoutSeconds');
  await halfClosed(socket, limit > 0 ? limit * 1000 : undefined);
  const seconds = secondsIn(options, 'PostFinTimeoutSeconds');
  say(`Server has half-closed the connection, waiting ${seconds} seconds`);
  const leaks = options['LeakConnection'] === true;
  if (leaks) say('Leaking client connection (assigning to global variable)');
  await delay(seconds * 1000);
  say('Done');
  if (!leaks) socket.destroy();
}

/** @param limit in milliseconds. */
async function halfClosed(socket: Socket, limit: number | undefined): Promise<void> {
  const ended = Promise.withResolvers<undefined>();
  socket.once('end', () => ended.resolve(undefined));
  socket.once('error', ended.reject);
  socket.once('data', () => ended.reject(new Error('Got data but expected EOF')));
  const timer =
    limit === undefined ? undefined : setTimeout(() => ended.reject(new Error('i/o timeout')), limit);
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
function listenAddresses({ place }: AgnhostRun, address: string): readonly string[] {
  return ['', '0.0.0.0', '::'].includes(address) ? place.listenAt : [address];
}

function textIn(options: Options, name: string): string {
  const value = options[name];
  return typeof value === 'string' ? value : '';
}

function secondsIn(options: Options, name: string): number {
  const value = options[name];
  return typeof value === 'number' ? value : 0;
}
