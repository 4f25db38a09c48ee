import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { systemClock } from '../../src/client/clock.ts';
import type { Transport } from '../../src/client/transport.ts';
import { localHost } from '../../src/host/local-host.ts';
import { agentServerName } from '../../src/network/flows/agents.ts';
import type { Flow, FlowNews } from '../../src/network/flows/flow.ts';
import { FlowAccess } from '../../src/node/flows/access.ts';
import { FlowServer, type FlowServerOptions } from '../../src/node/flows/flow-server.ts';
import { createCertificateAuthority, issueServerCertificate } from '../../src/tls/certificates.ts';
import { portOf } from './router/router.ts';

/** What the kernel of a node would tell. */
export class ToldFlows {
  readonly #viewers = new Set<(news: FlowNews) => void>();
  known: readonly Flow[] = [];

  get viewers(): number {
    return this.#viewers.size;
  }

  watch: FlowServerOptions['collector']['watch'] = (_, tell) => {
    this.#viewers.add(tell);
    const end = (): Promise<void> => {
      this.#viewers.delete(tell);
      return Promise.resolve();
    };
    return Promise.resolve({ known: this.known, end });
  };

  tell(news: FlowNews): void {
    for (const tell of this.#viewers) tell(news);
  }
}

export interface RunningFlowServer {
  readonly port: number;
  /** PEM, of the authority of its certificate. */
  readonly authority: string;
  readonly told: ToldFlows;
  /** Asks for `/flows?…`; its body is read by the caller. */
  ask(token: string | undefined, query?: string, options?: object): Promise<IncomingMessage>;
  close(): void;
}

/** A server of flows on 127.0.0.1 that asks an API server who may look. */
export async function startFlowServer(
  transport: Transport,
  clock: FlowServerOptions['clock'] = systemClock,
): Promise<RunningFlowServer> {
  const authority = createCertificateAuthority('flows', { now: new Date() });
  const certificate = issueServerCertificate(authority, agentServerName, [agentServerName], {
    now: new Date(),
  });
  const told = new ToldFlows();
  const access = new FlowAccess(transport, clock);
  const log = pino({ enabled: false });
  const server = new FlowServer({ certificate, access, collector: told, clock, log }).open();
  await localHost.listen(server, '127.0.0.1', 0);
  const port = portOf(server);
  return {
    ...{ port, told, authority: authority.certificate },
    ask: async (token, query = '', options = {}) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const sent = request({
        ...{ host: '127.0.0.1', port, path: `/flows${query}`, agent: false, headers },
        ...{ ca: authority.certificate, servername: agentServerName, ...options },
      });
      // Of a server that cuts it.
      sent.on('error', () => undefined);
      sent.end();
      const answered: unknown[] = await once(sent, 'response');
      const [response] = answered;
      if (!isMessage(response)) throw new Error('no answer came');
      response.on('error', () => undefined);
      return response;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function isMessage(value: unknown): value is IncomingMessage {
  return typeof value === 'object' && value !== null && 'statusCode' in value;
}

/** Status and text of an answer that ends. */
export async function wholeAnswer(response: IncomingMessage): Promise<{ status: number; said: string }> {
  return { status: response.statusCode ?? 0, said: await text(response) };
}

/** The lines of an answer that goes on. */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<string, undefined> {
  yield* createInterface({ input: response });
}
