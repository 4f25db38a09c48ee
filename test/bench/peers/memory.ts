import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createTransport } from '../../../src/client/connect.ts';
import { offerAddresses } from '../../../src/commands/default-pool.ts';
import { kubeProxyWords } from '../../cluster/peers.ts';
import { freePort } from '../../support/free-port.ts';
import { askByDnsperf } from '../dnsperf.ts';
import { createServices, createShop, deleteServices } from '../forwarding-objects.ts';
import { load, residentMiB } from '../http-load.ts';
import { MeasuredProcess } from '../measured-process.ts';
import { type Command, type OwnProcess, serviceAccount, startOwn, untilReady } from '../own-commands.ts';
import { createRoute, host, startBackend } from '../routing.ts';
import { ServerProcess } from '../server-process.ts';
import { atMost, atMostOfPeer, type Compared, type Part, progress } from './compared.ts';
import { startCoreDns } from './dns.ts';
import { installMetalLb, startMetalLbController, startMetalLbSpeaker } from './metallb.ts';
import { memoryOfUp } from './up.ts';

const restMs = 20_000;
const services = 1000;
const goals = { dns: 65, controller: 70, node: 85, router: 85 } as const;
const commands = Object.keys(goals) as Command[];
const features = 'proxy,announce,policy,egress';

type Figures = Readonly<Record<Command, number>>;

/** Memory of programs in a cluster and of `up`, at rest. */
export const memory: Part = {
  needs: ['dnsperf', 'nft'],
  peers: ['kube-proxy', 'coredns', 'metallb-controller', 'metallb-speaker'],
  measure: async (isAlone) => [...(await inCluster(isAlone)), ...(await memoryOfUp())],
};

/** Programs that run, and the ports of their own. */
interface Running {
  readonly all: Readonly<Record<Command, OwnProcess>>;
  readonly dnsPort: number;
  readonly httpPort: number;
}

async function inCluster(isAlone: boolean): Promise<readonly Compared[]> {
  const folder = await mkdtemp(join(tmpdir(), 'servicenet-memory-'));
  const flags = ['--network', 'off', '--nodes', '0', '--default-pool', '', '--log-level', 'error'];
  const server = await ServerProcess.start([...flags, '--controllers', 'service-cidr-controller'], []);
  const client = await createTransport({ kind: 'endpoint', ...server.target });
  const backend = await startBackend();
  try {
    await offerAddresses(client, ['198.18.0.0/16']);
    await createShop(server.target, '127.0.0.1');
    progress('memory: the first starts, which compile');
    const config = ['--kubeconfig', server.kubeconfig];
    await stop(await startAll(config));
    progress('memory: 20 s at rest, with a service account');
    const account = await startAll(await serviceAccount(server.target, folder));
    await delay(restMs);
    const byAccount = await figures(account);
    const [, ...children] = await account.all.node.process.pids();
    const nftMiB = children.reduce((sum, pid) => sum + residentMiB(pid), 0);
    await stop(account);
    const peers = isAlone ? undefined : await peersAtRest(server, folder);
    progress('memory: 20 s at rest, with a kubeconfig');
    const running = await startAll(config);
    await delay(restMs);
    const byConfig = await figures(running);
    await createRoute(client, backend.port);
    const later = await loaded(server, running);
    await stop(running);
    return [...restRows(byAccount, byConfig, nftMiB, peers), ...loadRows(byConfig, later)];
  } finally {
    backend.child.kill();
    await client.close();
    await server.stop();
    await rm(folder, { recursive: true });
  }
}

/** All four of our programs for clusters, when they are ready. */
async function startAll(access: readonly string[]): Promise<Running> {
  const [dnsPort, httpPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
  const local = ['--bind-address', '127.0.0.1'];
  const own = {
    dns: [...local, '--port', String(dnsPort), '--upstream', ''],
    controller: [],
    node: ['--features', features, '--cluster-cidr', '10.128.0.0/9', '--node-name', 'node-0'],
    router: [
      ...[...local, '--http-port', String(httpPort), '--https-port', String(httpsPort)],
      ...['--watch-ingress-without-class', '--max-client-requests', '0', '--lease-namespace', 'default'],
    ],
  };
  const begin = (command: Command): Promise<OwnProcess> => startOwn(command, [...own[command], ...access]);
  const all = {
    ...{ dns: await begin('dns'), controller: await begin('controller') },
    ...{ node: await begin('node'), router: await begin('router') },
  };
  for (const command of commands) await untilReady(all[command]);
  return { all, dnsPort, httpPort };
}

async function stop({ all }: Running): Promise<void> {
  for (const command of commands) await all[command].process.stop();
}

async function figures({ all }: Running): Promise<Figures> {
  const of = (command: Command): Promise<number> => all[command].process.residentMiB();
  return {
    ...{ dns: await of('dns'), controller: await of('controller') },
    ...{ node: await of('node'), router: await of('router') },
  };
}

/** Of MetalLB, kube-proxy and CoreDNS. */
interface Peers extends Pick<Figures, 'dns' | 'controller'> {
  readonly proxy: number;
  readonly speaker: number;
}

async function peersAtRest(server: ServerProcess, folder: string): Promise<Peers> {
  progress('memory: 20 s at rest of CoreDNS, kube-proxy and MetalLB');
  await installMetalLb(server);
  const [file, ...words] = kubeProxyWords(server.kubeconfig, 'node-0');
  const all = {
    dns: (await startCoreDns(server.kubeconfig, folder)).process,
    controller: await startMetalLbController(server, folder),
    proxy: new MeasuredProcess(file, words, { log: join(folder, 'kube-proxy.log') }),
    speaker: await startMetalLbSpeaker(server, folder),
  };
  await delay(restMs);
  const of = (name: keyof Peers): Promise<number> => all[name].residentMiB();
  const peers = {
    ...{ dns: await of('dns'), controller: await of('controller') },
    ...{ proxy: await of('proxy'), speaker: await of('speaker') },
  };
  for (const one of Object.values(all)) await one.stop();
  // kube-proxy leaves its table, beside which our agent does not start.
  spawnSync('nft', ['flush', 'ruleset']);
  return peers;
}

/** Memory with Services, and when a load is over. */
interface Loaded {
  readonly withServices: Figures;
  readonly afterLoad: Figures;
}

async function loaded({ target }: ServerProcess, running: Running): Promise<Loaded> {
  progress(`memory: ${services} Services, 20 s at rest`);
  const kind = { endpointsEach: 1, type: 'LoadBalancer' } as const;
  await createServices(target, { to: services, ...kind });
  await delay(restMs);
  const withServices = await figures(running);
  progress('memory: a load of each, and 20 s at rest');
  const names = Array.from({ length: services }, (_, i) => `web-${i}`);
  await askByDnsperf({ port: running.dnsPort, names, seconds: 5 });
  await load(running.httpPort, host, 5);
  const more = { from: services, to: 2 * services, ...kind };
  await createServices(target, more);
  await deleteServices(target, more);
  await delay(restMs);
  return { withServices, afterLoad: await figures(running) };
}

function restRows(
  byAccount: Figures,
  byConfig: Figures,
  nftMiB: number,
  peers: Peers | undefined,
): readonly Compared[] {
  const beside: Partial<Readonly<Record<Command, Compared['peer']>>> = peers
    ? {
        dns: { name: 'CoreDNS', value: peers.dns },
        controller: { name: 'MetalLB controller', value: peers.controller },
      }
    : {};
  const together = {
    name: 'kube-proxy + MetalLB speaker',
    value: (peers?.proxy ?? 0) + (peers?.speaker ?? 0),
  };
  return [
    ...commands.flatMap((command) =>
      Object.entries({ 'service account': byAccount, kubeconfig: byConfig }).map(([how, of]) => ({
        ...{ name: `memory: ${command} at rest, ${how}`, unit: 'MiB', ours: of[command] },
        ...{ peer: beside[command], goal: atMost(goals[command]) },
      })),
    ),
    { name: 'memory: nft of the agent', unit: 'MiB', ours: nftMiB },
    {
      ...{ name: 'memory: node at rest, with nft', unit: 'MiB', ours: byAccount.node + nftMiB },
      ...{ peer: peers && together, goal: atMostOfPeer(1) },
    },
  ];
}

function loadRows(before: Figures, { withServices, afterLoad }: Loaded): readonly Compared[] {
  return commands.flatMap((command) => [
    {
      ...{ name: `memory: ${command}, ${services} Services more`, unit: 'MiB' },
      ...{ ours: withServices[command] - before[command], goal: atMost(15) },
    },
    {
      ...{ name: `memory: ${command}, 20 s after a load, of before`, unit: '' },
      ...{ ours: afterLoad[command] / withServices[command], goal: atMost(1.1) },
    },
  ]);
}
