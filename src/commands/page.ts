import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Embedded } from '../apiserver/embedded.ts';
import { askPageLink } from '../emulation/control-socket.ts';
import { controlSocketPath } from '../host/control-client.ts';
import type { PageConfig } from '../flags/page.ts';
import { usualLoadBalancer } from '../flags/shared.ts';
import { listenAt, newCredentials, PageListener, pageLink, pageUrl } from '../page/listener.ts';
import type { PageSettings } from '../page/page.ts';
import { createLog } from '../telemetry/log.ts';
import { version } from '../telemetry/version.ts';
import { kubeconfigOfUp } from './choices.ts';
import { untilSignal } from './signals.ts';

/** The usual ports; where none is free, any other one. */
const usualPorts = [6480, 6481, 6482, 6483, 6484, 6485, 6486, 6487, 6488, 6489, 0];

/** @param port that a flag names. */
function portsFor(port: number | undefined): readonly number[] {
  return port === undefined ? usualPorts : [port];
}

const noNetwork = 'this servicenet up has no cluster network';

/** ` (6480 is in use)`. */
function otherPort(given: number | undefined, port: number): string {
  return given === undefined && port !== usualPorts[0] ? ` (${usualPorts[0] ?? ''} is in use)` : '';
}

/** The page of an `up`. */
export interface PageOfUp {
  readonly link: string;
  /** For the screen; without the key where the output is kept, as a log is. */
  readonly line: string;
  close(): Promise<void>;
}

/**
 * Listens for browsers; a process that answers them begins with the first.
 *
 * @param given the port; undefined: the usual one.
 * @throws {Error} where the port is in use.
 */
export async function openPageOfUp(
  given: number | undefined,
  kubeconfigPath: string,
  { url, ca, token }: Pick<Embedded, 'url' | 'ca' | 'token'>,
  hasNetwork: boolean,
  log: Logger,
): Promise<PageOfUp> {
  const credentials = newCredentials();
  const settings: PageSettings = {
    credentials,
    cluster: {
      ...{ server: url, kind: 'up', version: version() },
      clusterFlags: kubeconfigPath === kubeconfigOfUp() ? [] : ['--kubeconfig', kubeconfigPath],
      ...(hasNetwork ? {} : { whyNoCheck: noNetwork, whyNoFlows: noNetwork }),
    },
    proxy: { clusterCidrs: undefined, masqueradeAll: undefined, nodePortAddresses: undefined },
    loadBalancer: usualLoadBalancer,
    controlSocket: hasNetwork ? controlSocketPath(kubeconfigPath) : undefined,
  };
  const { listener, port } = await PageListener.open(
    {
      ...{ source: { kind: 'endpoint', url, ca, token }, settings, log },
      enter: hasNetwork
        ? async (place) => {
            const { enterForPackets } = await import('./packets.ts');
            return await enterForPackets(controlSocketPath(kubeconfigPath), place);
          }
        : undefined,
    },
    portsFor(given),
  );
  const link = pageLink(port, credentials);
  const shown = process.stdout.isTTY ? link : `${pageUrl(port)} (servicenet page prints the link)`;
  return {
    link,
    line: `page: ${shown}${otherPort(given, port)}`,
    close: () => listener.close(),
  };
}

/**
 * Prints the link to the page of the `up` that the flags lead to; where they lead to another cluster, or ask for a page of
 * its own, serves one until a signal comes.
 */
export async function page(config: PageConfig): Promise<void> {
  const { cluster, namespace, port } = config;
  // The page of an up has all namespaces, and a port of its own.
  const link = namespace === undefined && port === undefined ? await linkOfUp(cluster) : undefined;
  if (link === undefined) {
    await serve(config);
    return;
  }
  process.stdout.write(`${link}\n`);
  if (config.open) await openInBrowser(link);
}

/** The link to the page of an `up`; undefined: the flags do not lead to one. */
export async function linkOfUp(cluster: PageConfig['cluster']): Promise<string | undefined> {
  const socket = socketOfUp(cluster);
  return socket === undefined ? undefined : await askPageLink(socket);
}

/** The socket of the `up` that the flags would lead to; undefined: they lead elsewhere. */
export function socketOfUp(cluster: PageConfig['cluster']): string | undefined {
  if (cluster.kind !== 'kubeconfig' || cluster.context !== undefined) return undefined;
  const named = cluster.path ?? process.env['KUBECONFIG']?.split(':')[0] ?? '';
  return controlSocketPath(named === '' ? kubeconfigOfUp() : named);
}

async function serve(config: PageConfig): Promise<void> {
  const log = createLog({ level: 'error', format: process.stderr.isTTY ? 'pretty' : 'json' });
  const { clusterFlagsOf, connectCluster, reportedCluster } = await import('./connect.ts');
  const { openPage } = await import('../page/page.ts');
  const { namespace, port: given, proxy, settings } = config;
  const cluster = await reportedCluster(config.cluster);
  const transport = await connectCluster(cluster);
  const stop = untilSignal(log);
  try {
    const credentials = newCredentials();
    const shown = openPage(
      {
        ...{ credentials, proxy, loadBalancer: settings },
        cluster: {
          ...{ server: transport.server, kind: 'kubeconfig', version: version() },
          clusterFlags: clusterFlagsOf(cluster),
          ...(namespace === undefined ? {} : { onlyNamespace: namespace }),
          whyNoCheck: 'packets are sent in the cluster network of servicenet up alone',
          whyNoFlows: 'flows are those of the cluster network of servicenet up alone',
        },
        controlSocket: undefined,
      },
      transport,
      undefined,
      log,
    );
    const listening = createServer((socket) => shown.server.serve(socket));
    try {
      const port = await listenAt(listening, portsFor(given));
      const link = pageLink(port, credentials);
      process.stdout.write(`page: ${link}${otherPort(given, port)}\n`);
      process.stdout.write(`of ${transport.server}, which it only reads; Ctrl-C ends it\n`);
      if (config.open) await openInBrowser(link);
      await stop.received;
    } finally {
      listening.close();
      await shown.close();
    }
  } finally {
    await transport.close();
    stop.release();
  }
}

/** A browser may take so long to read a file. */
const readMs = 10_000;

/**
 * Every user of the machine can read the words of a command, and the key is in the link: a browser is given a file that only
 * its user can read, and that leads there.
 */
async function openInBrowser(link: string): Promise<void> {
  const folder = dirname(kubeconfigOfUp());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `page-${process.pid}.html`);
  const html = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${link}">\n`;
  await writeFile(file, html, { mode: 0o600, flag: 'wx' });
  try {
    const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
    const child = spawn(opener, [file], { stdio: 'ignore' });
    await once(child, 'exit').catch((error: unknown) => {
      throw new Error(`cannot run ${opener}: open the link yourself`, { cause: error });
    });
    if (child.exitCode !== 0) throw new Error(`${opener} found no browser: open the link yourself`);
    await sleep(readMs);
  } finally {
    await rm(file, { force: true });
  }
}
