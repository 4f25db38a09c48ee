import type { UpConfig } from '../flags/up.ts';
import type { ClusterNetwork } from '../emulation/cluster-network.ts';
import { quoted, ownCommand } from './own-command.ts';
import type { ClientsReport, ServerAccess } from './local-cluster/clients.ts';
import { flushCompileCache } from 'node:module';
import type { Logger } from 'pino';
import type { Embedded } from '../apiserver/embedded.ts';
import { usualLoadBalancer } from '../flags/shared.ts';
import { serveControl } from '../emulation/control-socket.ts';
import { askFlows, controlSocketPath } from '../host/control-client.ts';
import { returnUnusedMemory } from '../host/unused-memory.ts';
import { createLog } from '../telemetry/log.ts';
import { readManifests } from './apply.ts';
import { kubeconfigOfUp } from './choices.ts';
import { type End, endInReverse, exitCodes, untilSignal } from './signals.ts';
import { checkKubeconfig, removeKubeconfig, writeKubeconfig } from './local-cluster/kubeconfig.ts';
import { ControllersThread } from './local-cluster/controllers-thread.ts';
import type { PageOfUp } from './page.ts';
import { type ProgramRun, programMissing, runProgram } from './run.ts';
import { hasScreen } from './top/terminal.ts';

/**
 * Runs a local cluster until a signal comes, or the program ends that is to run against it.
 * @returns the exit code.
 */
export async function up(config: UpConfig): Promise<number> {
  const [file] = config.program;
  const alone = file === undefined;
  const missing = alone ? undefined : programMissing(file);
  if (missing !== undefined) return missing;
  const log = createLog({ level: config.logLevel, format: config.logFormat });
  const signal = untilSignal(log);
  const stopReturning = returnUnusedMemory(log);
  // The started parts, which are stopped in reverse order, also if the start fails half way.
  const started: End[] = [];
  try {
    const manifests = await readManifests(config.apply);
    const { wasKilled } = await checkKubeconfig(config.kubeconfigPath);
    if (wasKilled) {
      log.warn(
        { kubeconfig: config.kubeconfigPath },
        'the last servicenet up was killed: its files are replaced',
      );
    }
    const thread = new ControllersThread();
    started.push(() => thread.stop());
    const { openNetwork } = await import('./local-cluster/network.ts');
    const opening = openNetwork(config, log);
    opening.catch(() => undefined);
    // Behind the start of the thread: the two load their code at the same time.
    const { startLocalCluster } = await import('./local-cluster/cluster.ts');
    const open = await opening;
    if (open !== undefined) started.push(() => open.close());
    let opened = Promise.resolve<PageOfUp | undefined>(undefined);
    const closePage = async (): Promise<void> => (await opened.catch(() => undefined))?.close();
    const cluster = await startLocalCluster({
      config,
      manifests,
      log,
      network: open === undefined ? undefined : { open, log: config },
      startClients: (clients, access) => {
        // Beside the start of the controllers, which takes longer.
        if (alone && config.page !== 'off') opened = openPage(config.page, config, access, open, log);
        opened.catch(() => undefined);
        return thread.start(clients, access, config);
      },
    }).catch(async (error: unknown) => {
      await closePage();
      throw error;
    });
    started.push(() => cluster.stop(), closePage);
    const { server, report, failure, networkReady } = cluster;
    await writeKubeconfig(config.kubeconfigPath, server.kubeconfig);
    started.push(() => removeKubeconfig(config.kubeconfigPath, server.kubeconfig));
    const page = await opened;
    if (open !== undefined || page !== undefined) await openControl(config, open, page, log, started);
    if (open !== undefined) await openWays(config, open, log, started);
    else if (config.publish.length > 0) log.warn('--publish has no effect: there is no cluster network');
    const stopped = await Promise.race([signal.received, Promise.resolve(undefined)]);
    if (stopped !== undefined) return alone ? 0 : exitCodes[stopped];
    if (alone) {
      process.stdout.write(`servicenet is ready: ${server.url} (${Math.round(performance.now())} ms)\n`);
    }
    const table = thread.serviceTable.then((services) => ({ services }));
    const begun = await Promise.race([table, signal.received]);
    if (typeof begun === 'string') return alone ? 0 : exitCodes[begun];
    // Otherwise only a process that ends by itself leaves its compiled code to the next one.
    flushCompileCache();
    if (!alone) {
      const { program, kubeconfigPath: kubeconfig } = config;
      const run = { program, kubeconfig, interrupted: signal.received, failure };
      if (!config.inside || open === undefined) return await runProgram(run);
      const ready = await Promise.race([networkReady, signal.received, failure]);
      if (typeof ready === 'string') return exitCodes[ready];
      return await runInside(run, open, log);
    }
    const hints = hintsFor(config, report, open !== undefined, ownCommand());
    process.stdout.write(banner(config, report, begun.services, hints, open, page?.line));
    const isLive = config.liveView && process.stdout.isTTY;
    // The kubelet is inside: without the network, Pods would be pending for ever.
    const unusable = networkReady?.then(async (isReady) => {
      const time = Math.round(performance.now());
      if (isReady && !(isLive && hasScreen(process.stdout)))
        process.stdout.write(`cluster network is ready (${time} ms)\n`);
      return await failure;
    });
    const ended = Promise.race([signal.received, unusable ?? failure]);
    if (isLive) await watch(server, config.kubeconfigPath, hints, page, open, log, ended);
    await ended;
    return 0;
  } finally {
    stopReturning();
    await endInReverse(started).finally(() => signal.release());
  }
}

/** Runs a program in a Pod of its own in namespace `default`. @throws {Error} where that does not run. */
async function runInside(run: ProgramRun, network: ClusterNetwork, log: Logger): Promise<number> {
  const entering = network.enter({ kind: 'client', namespace: 'default' });
  const entered = await Promise.race([entering, run.interrupted, run.failure]);
  if (typeof entered === 'string') {
    entering.catch(() => undefined);
    return exitCodes[entered];
  }
  try {
    return await runProgram({ ...run, program: [...entered.argv, ...run.program] });
  } finally {
    await entered.release().catch((error: unknown) => {
      log.error({ err: error }, 'the Pod of the program could not be deleted');
    });
  }
}

/**
 * Opens the ways into the cluster network from this machine.
 *
 * @param started gets what ends them.
 * @throws {Error} where a port is in use, or another error of the system.
 */
async function openWays(
  config: UpConfig,
  network: ClusterNetwork,
  log: Logger,
  started: End[],
): Promise<void> {
  const { publish } = await import('./local-cluster/network.ts');
  for (const port of config.publish) {
    const server = await publish(port, network, log);
    started.push(() => Promise.resolve(void server.close()));
  }
}

/** Serves the page. @param port undefined: the usual one. @throws {Error} where the port is in use. */
async function openPage(
  port: number | undefined,
  config: UpConfig,
  server: ServerAccess,
  network: ClusterNetwork | undefined,
  log: Logger,
): Promise<PageOfUp> {
  const { openPageOfUp } = await import('./page.ts');
  return await openPageOfUp(port, config.kubeconfigPath, server, network !== undefined, log);
}

/** Answers the commands beside this one. */
async function openControl(
  config: UpConfig,
  network: ClusterNetwork | undefined,
  page: PageOfUp | undefined,
  log: Logger,
  started: End[],
): Promise<void> {
  const path = controlSocketPath(config.kubeconfigPath);
  const control = await serveControl(path, { network, pageLink: page?.link }, log);
  if (control !== undefined) started.push(() => control.close());
}

/** The output of an interactive start: the live view, until a signal. */
async function watch(
  { url, ca, token }: Embedded,
  kubeconfigPath: string,
  hints: Hints,
  page: PageOfUp | undefined,
  network: ClusterNetwork | undefined,
  log: Logger,
  ended: Promise<unknown>,
): Promise<void> {
  const { showLiveView } = await import('./top/view.ts');
  const { createTransport } = await import('../client/connect.ts');
  const transport = await createTransport({ kind: 'endpoint', url, ca, token });
  const ending = new AbortController();
  const end = (): void => ending.abort();
  ended.then(end, end);
  try {
    const onResponses = (tell: NonNullable<ClusterNetwork['onResponses']>): void => {
      if (network !== undefined) network.onResponses = tell;
    };
    const ask = (request: object, signal: AbortSignal) =>
      askFlows(controlSocketPath(kubeconfigPath), request, signal);
    const view = {
      transport,
      log,
      namespace: undefined,
      settings: usualLoadBalancer,
      title: [`${url}  (q stops it)`, ...(page === undefined ? [] : [page.line]), hints.exportLine],
      hints: hints.paragraphs.flat().filter((line) => line.startsWith(' ')),
      onResponses,
      pageLink: () => Promise.resolve(page?.link),
      clusterFlags: kubeconfigPath === kubeconfigOfUp() ? [] : ['--kubeconfig', kubeconfigPath],
      askFlows: network === undefined ? undefined : ask,
    };
    await showLiveView(view, ending.signal);
  } finally {
    await transport.close();
  }
}

/** The text of `up` when it is ready: the cluster's contents, and commands to try. */
function banner(
  config: UpConfig,
  report: ClientsReport,
  serviceTable: string,
  hints: Hints,
  network: Pick<ClusterNetwork, 'commandsObstacle'> | undefined,
  pageLine: string | undefined,
): string {
  const applied = report.applied.map((line) => `  ${line}`);
  const [first = [], ...others] = hints.paragraphs;
  return [
    ...poolLine(config, report),
    ...(network === undefined ? [] : [commandsLine(config, network)]),
    ...(applied.length === 0 ? [] : ['', 'Applied:', ...applied]),
    '',
    serviceTable,
    ...(pageLine === undefined ? [] : [pageLine, '']),
    'Try it:',
    `  ${hints.exportLine}`,
    ...first,
    ...others.flatMap((lines) => ['', ...lines]),
    '',
    'Stop it with Ctrl-C.',
    '',
  ].join('\n');
}

/** Commands to try: each works as it stands, in another terminal and the folder in which `up` was started. */
interface Hints {
  /** Makes kubectl talk to this server. */
  readonly exportLine: string;
  /** Commands are indented, and fit into 80 columns where the paths do; other lines say what they are for. */
  readonly paragraphs: readonly (readonly string[])[];
}

/** @param command begins command lines of this program. */
export function hintsFor(
  config: Pick<UpConfig, 'kubeconfigPath' | 'nodes'>,
  report: Pick<ClientsReport, 'applied'>,
  hasNetwork: boolean,
  command: string,
): Hints {
  // Workloads need nodes, and Services of type LoadBalancer a controller that assigns addresses.
  const workload =
    config.nodes === 0
      ? ['  kubectl create service nodeport hello --tcp=80:8080']
      : [
          '  kubectl create deployment web --image=nginx --port=80 --replicas=3',
          '  kubectl expose deployment web --port=80 --type=LoadBalancer',
        ];
  const packets = [
    [
      'Pods answer, in a network of their own. From another Pod of it:',
      `  ${command} run -- curl -s http://storefront.shop/hostname`,
    ],
    [
      // Not 8080, where kubectl looks for a server without a kubeconfig.
      'From this machine, in a browser at http://127.0.0.1:8000:',
      '  kubectl -n shop port-forward service/storefront 8000:80',
    ],
  ];
  return {
    exportLine: `export KUBECONFIG=${quoted(config.kubeconfigPath)}`,
    paragraphs: [
      [
        '  kubectl get services --all-namespaces',
        ...workload,
        '  kubectl explain service.spec.ports',
        '  kubectl get services --watch',
      ],
      ...(hasNetwork && report.applied.includes('service/storefront') ? packets : []),
    ],
  };
}

/** Whether commands of containers run in the cluster network, and why not. */
export function commandsLine(
  { containers }: Pick<UpConfig, 'containers'>,
  { commandsObstacle }: Pick<ClusterNetwork, 'commandsObstacle'>,
): string {
  if (containers === 'processes')
    return 'commands of containers: programs of this machine, which read what you can read';
  const why = containers === 'off' ? '--containers=off' : commandsObstacle;
  return why === ''
    ? 'commands of containers: programs of this machine, which see no other file of it'
    : `commands of containers: built-in ones alone (${why})`;
}

/** Where LoadBalancer Services get their addresses, if that was chosen here. */
function poolLine(config: UpConfig, { addressPool }: ClientsReport): readonly string[] {
  if (config.addressPool !== undefined || addressPool.length === 0) return [];
  const ranges = addressPool.join(' and ');
  return [`addresses of LoadBalancer Services: ${ranges} (for documentation; no interface has them)`];
}
