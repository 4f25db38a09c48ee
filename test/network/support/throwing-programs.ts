/**
 * Programs that throw, and one that does not, as built-in programs of containers in the network namespace `machine`: this
 * file is both ends. Prints as JSON how each ended, and what the one that does not throw answers then.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { NamespaceHost, NetworkNamespace } from '../../../src/emulation/namespaces.ts';
import type { ProgramContainer } from '../../../src/emulation/program.ts';
import { BuiltInPrograms } from '../../../src/emulation/programs/built-in-programs.ts';
import { servePrograms } from '../../../src/emulation/programs/serve-programs.ts';
import { httpServer } from '../../../src/host/http-server.ts';

const fail = (): never => {
  throw new Error('thrown');
};

/** By name: what a program does with a connection. */
const ways: Readonly<Record<string, (socket: Socket) => void>> = {
  accept: fail,
  data: (socket) => void socket.on('data', fail),
  readable: (socket) => void socket.once('readable', fail),
  later: (socket) => void socket.on('data', () => setTimeout(fail, 1)),
  rejection: (socket) => void socket.on('data', () => void Promise.reject(new Error('thrown'))),
  error: (socket) => void socket.on('data', () => socket.emit('error', fail())),
  end: (socket) => void socket.on('end', fail).resume(),
};

const names = [...Object.keys(ways), 'request'];

function portOf(way: string): number {
  return 7000 + [...names, 'honest'].indexOf(way);
}

async function start([way = '']: readonly string[], { host }: ProgramContainer) {
  const ended = Promise.withResolvers<{ exitCode: number }>();
  const server =
    way === 'request'
      ? httpServer((_request, response) => {
          response.end('x');
          setImmediate(fail);
        })
      : createServer(ways[way] ?? ((socket) => void socket.pipe(socket)));
  await host.listen(server, '127.0.0.1', portOf(way));
  return { ended: ended.promise, signal: () => ended.resolve({ exitCode: 0 }) };
}

async function run(): Promise<void> {
  const log = pino({ enabled: false });
  const programs = new BuiltInPrograms({ entry: import.meta.filename, log, onResponses: () => undefined });
  const machine = new NamespaceHost(new NetworkNamespace('machine'));
  const begin = async (way: string) => {
    const printed: string[] = [];
    const program = await programs.start(
      {
        ...{
          kind: 'image',
          namespace: 'machine',
          listenAt: ['127.0.0.1'],
          entrypoint: 'thrower',
          argv: [way],
        },
        ...{ environment: new Map(), hostname: 'pod', hosts: '' },
      },
      {
        write: (_stream, text) => void printed.push(text),
        readFile: () => Promise.reject(new Error('no file')),
        resolvConf: () => Promise.resolve(''),
        exec: () => Promise.reject(new Error('no program')),
      },
    );
    return { program, printed };
  };
  const ask = async (way: string): Promise<string> => {
    const socket = await machine.connect('127.0.0.1', portOf(way));
    const answer = Promise.race([once(socket, 'data'), once(socket, 'close')]);
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    if (way === 'end') socket.end();
    const heard: readonly unknown[] = await answer;
    socket.destroy();
    return String(heard[0]).slice(0, 3);
  };
  await begin('honest');
  const results: unknown[] = [];
  for (const way of names) {
    const { program, printed } = await begin(way);
    await ask(way).catch(() => undefined);
    const { exitCode } = await program.ended;
    const after = await ask(way).catch((error: unknown) =>
      error instanceof Error && 'code' in error ? error.code : undefined,
    );
    results.push({ way, exitCode, said: printed.join('').includes('thrown'), after });
  }
  process.stdout.write(JSON.stringify({ results, honest: await ask('honest') }));
  process.exit();
}

if (process.send === undefined) await run();
else {
  const image = { entrypoint: 'thrower', commands: [], script: '', start };
  servePrograms({ byName: new Map([['thrower', image]]), byRepository: new Map() });
}
