import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { kubeProxyWords } from '../../cluster/peers.ts';
import { createServices, createShop } from '../forwarding-objects.ts';
import { MeasuredProcess } from '../measured-process.ts';
import { startOwn } from '../own-commands.ts';
import { ServerProcess } from '../server-process.ts';
import { atMostOfPeer, type Compared, type Goal, type Part, progress } from './compared.ts';
import { until } from '../until.ts';

const count = 5000;
const endpointsEach = 10;
const deadlineMs = 180_000;
/** Of kube-proxy, which our agent has too. */
const metric = /^kubeproxy_sync_proxy_rules_last_timestamp_seconds(\{ip_family="IPv4"\})? [1-9]/m;

interface Took {
  /** From the start of the process until the kernel has all Services. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly residentMiB: number;
}

/** A program in the place of kube-proxy. */
interface Proxy {
  readonly process: MeasuredProcess;
  /** Where its metrics are. */
  readonly url: string;
}

/** Services into an empty kernel at the start of a node, beside kube-proxy in its nftables mode. */
export const services: Part = {
  needs: ['nft'],
  peers: ['kube-proxy'],
  rootPeer: 'kube-proxy',
  async measure(isAlone) {
    const folder = await mkdtemp(join(tmpdir(), 'servicenet-services-'));
    const flags = ['--network', 'off', '--nodes', '0', '--controllers', '', '--log-level', 'error'];
    const server = await ServerProcess.start(flags, []);
    try {
      progress(`services: creating ${count}`);
      await createShop(server.target, '127.0.0.1');
      await createServices(server.target, { to: count, endpointsEach });
      const ours = await load('servicenet node', () => startAgent(server.kubeconfig));
      const peer = isAlone ? undefined : await load('kube-proxy', () => startProxy(server, folder));
      const row = (name: string, unit: string, of: (took: Took) => number, goal?: Goal): Compared => ({
        ...{ name: `services: ${name}`, unit, ours: of(ours) },
        ...(peer === undefined ? {} : { peer: { name: 'kube-proxy, nftables', value: of(peer) } }),
        ...(goal === undefined ? {} : { goal }),
      });
      const what = `${count.toLocaleString('en-US')} × ${endpointsEach} into the kernel`;
      return [
        row(`${what}, from the start`, 's', (took) => took.seconds, atMostOfPeer(1)),
        row(`${what}, CPU with nft`, 's', (took) => took.cpuSeconds, atMostOfPeer(1)),
        row('memory then', 'MiB', (took) => took.residentMiB),
      ];
    } finally {
      await server.stop();
      await rm(folder, { recursive: true });
    }
  },
};

async function startAgent(kubeconfig: string): Promise<Proxy> {
  const own = ['--features', 'proxy', '--node-name', 'node-0', '--cluster-cidr', '10.128.0.0/9'];
  return startOwn('node', [...own, '--kubeconfig', kubeconfig]);
}

function startProxy({ kubeconfig }: ServerProcess, folder: string): Proxy {
  const [file, ...words] = kubeProxyWords(kubeconfig, 'node-0');
  const process = new MeasuredProcess(file, words, { log: join(folder, 'kube-proxy.log') });
  return { process, url: 'http://127.0.0.1:10249' };
}

/** From the start to the first complete sync. The tables are gone afterwards. */
async function load(name: string, start: () => Proxy | Promise<Proxy>): Promise<Took> {
  progress(`services: ${name}`);
  const started = performance.now();
  const { process: proxy, url } = await start();
  const hasSynced = async (): Promise<boolean> => {
    await proxy.cpuSeconds(); // throws where it has ended
    return metric.test(await metricsOf(url));
  };
  await until(`the first sync of ${name}`, hasSynced, { deadlineMs });
  const seconds = (performance.now() - started) / 1000;
  const took = { seconds, cpuSeconds: await proxy.cpuSecondsOfAll(), residentMiB: await proxy.residentMiB() };
  await proxy.stop();
  const found = await programmed();
  if (found < count) throw new Error(`${name}: the kernel has ${found} Services of ${count}`);
  await nft('flush', 'ruleset');
  return took;
}

async function metricsOf(url: string): Promise<string> {
  return fetch(`${url}/metrics`).then(
    (answer) => answer.text(),
    () => '',
  );
}

/** How many cluster IPs are in the kernel's tables. */
async function programmed(): Promise<number> {
  const addresses = (await nft('list', 'ruleset')).matchAll(/\b10\.96\.\d+\.\d+\b/g);
  return new Set([...addresses].map(([address]) => address)).size;
}

async function nft(...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)('nft', words, { maxBuffer: 2 ** 30 })).stdout;
}
