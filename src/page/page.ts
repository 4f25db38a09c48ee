import type { Logger } from 'pino';
import { systemClock } from '../client/clock.ts';
import { createTransport } from '../client/connect.ts';
import type { ClusterSource, Transport } from '../client/transport.ts';
import type { RequestSettings } from '../controllers/load-balancer/request.ts';
import { askFlows } from '../host/control-client.ts';
import { ReadOnlyTransport } from '../view/read-only-transport.ts';
import type { ProxyFlags } from '../view/trace-cluster.ts';
import type { ConnectionChecker } from '../view/trace-connection.ts';
import { Answers } from './answers.ts';
import type { AskFlows } from './flow-watch.ts';
import { type Credentials, Gate } from './gate.ts';
import type { ClusterInfo } from './messages.ts';
import { PageServer } from './server.ts';
import { type StaticFiles, staticFilesOfPackage } from './static-files.ts';
import { Viewers } from './viewers.ts';

/** Which cluster a page shows, and to whom. */
export interface PageSettings {
  readonly credentials: Credentials;
  readonly cluster: ClusterInfo;
  readonly proxy: ProxyFlags;
  readonly loadBalancer: RequestSettings;
  /** Of the `up` that tells flows; undefined: there are none. */
  readonly controlSocket: string | undefined;
}

/** A page that is served. */
export interface Page {
  readonly server: PageServer;
  /** Ends its connections and watches. */
  close(): Promise<void>;
}

/** @param checker undefined: no packet is sent. @param files what browsers load; default: those of the package. */
export function openPage(
  { credentials, cluster, proxy, loadBalancer, controlSocket }: PageSettings,
  transport: Transport,
  checker: ConnectionChecker | undefined,
  log: Logger,
  files: () => Promise<StaticFiles> = staticFilesOfPackage,
): Page {
  const clock = systemClock;
  const reading = new ReadOnlyTransport(transport);
  const viewers = new Viewers({
    ...{ transport: reading, log, clock, random: Math.random },
    ...{ namespace: cluster.onlyNamespace, settings: loadBalancer },
  });
  const answers = new Answers({ transport: reading, viewers, cluster, clock, proxy, checker });
  const gate = new Gate(credentials, clock);
  const askFlowsOf: AskFlows | undefined =
    controlSocket === undefined ? undefined : (request, signal) => askFlows(controlSocket, request, signal);
  let loaded: Promise<StaticFiles> | undefined;
  const once = (): Promise<StaticFiles> => {
    loaded ??= files();
    // It is tried again.
    loaded.catch(() => (loaded = undefined));
    return loaded;
  };
  const server = new PageServer({
    ...{ gate, viewers, cluster, clock, answers, files: once, log },
    askFlows: askFlowsOf,
  });
  return {
    server,
    close: async () => {
      server.close();
      await viewers.close();
    },
  };
}

/** The same for a cluster that is reached by itself. */
export async function openPageOf(
  source: ClusterSource,
  settings: PageSettings,
  checker: ConnectionChecker | undefined,
  log: Logger,
): Promise<Page> {
  const transport = await createTransport(source);
  const page = openPage(settings, transport, checker, log);
  return {
    server: page.server,
    close: async () => {
      await page.close();
      await transport.close();
    },
  };
}
