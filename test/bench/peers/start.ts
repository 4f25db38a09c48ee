import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServices, createShop } from '../forwarding-objects.ts';
import { median } from '../http-load.ts';
import { ServerProcess, type Source } from '../server-process.ts';
import { atMost, type Compared, type Part, progress } from './compared.ts';

const starts = 5;

/** The start of `up`, and of commands that print something and end. There is no peer. */
export const start: Part = {
  needs: [],
  peers: [],
  measure: async () => [
    ...(await startsOf('dist', 'the bundle', 1)),
    ...(await startsOf('src', 'from source', 1.6)),
    ...(await commands()),
  ],
};

/** Medians of some starts behind a first one, which compiles. */
async function startsOf(source: Source, name: string, goal: number): Promise<readonly Compared[]> {
  progress(`start: up, ${name}`);
  const took: { readonly wall: number; readonly cpu: number }[] = [];
  for (let n = 0; n <= starts; n++) {
    const server = await ServerProcess.start(['--log-level', 'error'], [], source);
    const cpu = (await server.cpu()) / 1e6;
    if (n > 0) took.push({ wall: server.startMs / 1000, cpu });
    await server.stop();
  }
  return [
    {
      ...{ name: `start: up, ${name}, CPU until it is ready`, unit: 's' },
      ...{ ours: median(took.map(({ cpu }) => cpu)), goal: atMost(goal) },
    },
    {
      ...{ name: `start: up, ${name}, until it is ready`, unit: 's' },
      ours: median(took.map(({ wall }) => wall)),
      ...(source === 'dist' ? { goal: atMost(0.5) } : {}),
    },
  ];
}

async function commands(): Promise<readonly Compared[]> {
  const { pathname: main } = new URL('../../../dist/main.js', import.meta.url);
  const server = await ServerProcess.start(['--network', 'off', '--log-level', 'error'], []);
  try {
    await createShop(server.target, '127.0.0.1');
    await createServices(server.target, { to: 10, endpointsEach: 1, type: 'LoadBalancer' });
    const words = {
      pools: ['pools'],
      trace: ['trace', 'node/node-1', 'svc/shop/web-0:80'],
      audit: ['audit'],
    };
    return Object.entries(words).map(([name, command]) => {
      progress(`start: ${name}`);
      const took: number[] = [];
      for (let n = 0; n <= starts; n++) {
        const before = childSeconds();
        const args = [main, ...command, '--kubeconfig', server.kubeconfig];
        const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
        if (status === null || stderr !== '') throw new Error(`${name}: ${stderr}`);
        if (n > 0) took.push(childSeconds() - before);
      }
      return { name: `start: ${name}, CPU`, unit: 's', ours: median(took), goal: atMost(0.5) };
    });
  } finally {
    await server.stop();
  }
}

/** CPU of the programs that this process has run: fields 16 and 17, in ticks of 10 ms (proc_pid_stat(5)). */
function childSeconds(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}
