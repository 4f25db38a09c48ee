/** agnhost as a program of a container with `--containers=processes`: `/agnhost` there. */
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { localHost, run } from '../../host/local-host.ts';
import { runAgnhost } from './start.ts';
import { errorMessage } from '../../objects/status.ts';

const environment = new Map(Object.entries(process.env).map(([name, value = '']) => [name, value]));

try {
  const program = await runAgnhost(['/agnhost', ...process.argv.slice(2)], {
    host: localHost,
    listenAt: ['0.0.0.0', '::'],
    hostname: hostname(),
    resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    environment,
    write: (stream, text) => void process[stream].write(text),
    readFile: (path) => readFile(path),
    exec: ([command = '', ...args]) => run(command, args),
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => program.signal(signal));
  const { exitCode } = await program.ended;
  process.exitCode = exitCode;
  process.exit();
} catch (error) {
  process.stderr.write(`${errorMessage(error)}\n`);
  process.exit(1);
}
