import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from '../../cluster/programs.ts';
import { freePort } from '../../support/free-port.ts';
import { DnsClient } from '../dns-client.ts';
import { askByDnsperf } from '../dnsperf.ts';
import { createServices, createShop } from '../forwarding-objects.ts';
import { cpuSecondsOf, MeasuredProcess } from '../measured-process.ts';
import { startOwn } from '../own-commands.ts';
import { ServerProcess } from '../server-process.ts';
import { atLeastOfPeer, type Compared, type Part, progress } from './compared.ts';

const services = 1000;
const seconds = 5;
const names = Array.from({ length: services }, (_, i) => `web-${i}`);
const peerName = 'CoreDNS, cache';

const ways = {
  UDP: { transport: 'udp' },
  'UDP with EDNS': { transport: 'udp', edns: true },
  TCP: { transport: 'tcp' },
} as const;
type Way = keyof typeof ways;

/** Answers for each second of CPU, and a second. */
type Answers = Readonly<Record<Way, { readonly perCpuSecond: number; readonly perSecond: number }>>;

interface DnsServer {
  readonly port: number;
  readonly process: MeasuredProcess;
}

/** The DNS server beside CoreDNS with its cache, asked by the same dnsperf. */
export const dns: Part = {
  needs: ['dnsperf'],
  peers: ['coredns'],
  async measure(isAlone) {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-dns-'));
    const api = await ServerProcess.start(['--network', 'off', '--nodes', '0', '--log-level', 'error'], []);
    try {
      await createShop(api.target, '127.0.0.1');
      await createServices(api.target, { to: services, endpointsEach: 1 });
      const peer = isAlone
        ? undefined
        : await ask('CoreDNS', await startCoreDns(api.kubeconfig, folder, 'cache 30'));
      const one = await ask('dns', await startDns(api.kubeconfig, 1));
      const two = await ask('dns --workers 2', await startDns(api.kubeconfig, 2));
      return [...rowsOf('dns', one, peer), ...rowsOf('dns --workers 2', two, peer)];
    } finally {
      await api.stop();
      await rm(folder, { recursive: true });
    }
  },
};

function rowsOf(command: string, ours: Answers, peer: Answers | undefined): readonly Compared[] {
  const beside = (value: number | undefined): Pick<Compared, 'peer'> =>
    value === undefined ? {} : { peer: { name: peerName, value } };
  return [
    ...(Object.keys(ways) as Way[]).map((way) => ({
      ...{ name: `${command}: answers for each second of CPU, ${way}`, unit: '' },
      ...{ ours: ours[way].perCpuSecond, ...beside(peer?.[way].perCpuSecond), goal: atLeastOfPeer(1) },
    })),
    {
      ...{ name: `${command}: answers, UDP`, unit: '/s', ours: ours.UDP.perSecond },
      ...beside(peer?.UDP.perSecond),
    },
  ];
}

async function startDns(kubeconfig: string, workers: number): Promise<DnsServer> {
  const port = await freePort();
  const own = ['--bind-address', '127.0.0.1', '--port', String(port), '--upstream', ''];
  const { process: measured } = await startOwn('dns', [
    ...[...own, '--workers', String(workers), '--kubeconfig', kubeconfig],
  ]);
  return { port, process: measured };
}

/** CoreDNS that serves the cluster's names. @param more lines of its block. */
export async function startCoreDns(kubeconfig: string, folder: string, more = ''): Promise<DnsServer> {
  const port = await freePort();
  const file = join(folder, `Corefile-${port}`);
  const zone = `kubernetes cluster.local {\nkubeconfig ${kubeconfig}\n}`;
  await writeFile(file, `.:${port} {\nbind 127.0.0.1\n${zone}\n${more}\n}\n`);
  const log = join(folder, 'coredns.log');
  return { port, process: new MeasuredProcess(program('coredns'), ['-conf', file], { log }) };
}

/** In each way: first for a second, then for the figure. */
async function ask(name: string, { port, process: server }: DnsServer): Promise<Answers> {
  try {
    const client = await DnsClient.open(port);
    await client.untilResolved(`web-${services - 1}`);
    client.close();
    const pids = await server.pids();
    const answers = async (way: Way): Promise<Answers[Way]> => {
      progress(`dns: ${name}, ${way}`);
      const asking = { port, names, ...ways[way] };
      await askByDnsperf({ ...asking, seconds: 2 });
      const before = await cpuSecondsOf(pids);
      const { count, perSecond } = await askByDnsperf({ ...asking, seconds });
      return { perSecond, perCpuSecond: count / ((await cpuSecondsOf(pids)) - before) };
    };
    return {
      UDP: await answers('UDP'),
      'UDP with EDNS': await answers('UDP with EDNS'),
      TCP: await answers('TCP'),
    };
  } finally {
    await server.stop();
  }
}
