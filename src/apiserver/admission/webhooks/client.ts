import { Agent, buildConnector, type Dispatcher } from 'undici';
import type { Webhook } from '../../../registry/admissionregistration/webhookconfiguration/webhook.ts';
import type { WebhookAnswer } from './answer.ts';
import { postUntilAnswered, WaitingTooLong } from './attempts.ts';
import { transportFailure } from './transport-failure.ts';

/** Asks one webhook. */
export interface WebhookClient {
  /** Posts an AdmissionReview. @throws {Error} whose message is in kube-apiserver's words when no answer comes. */
  ask(body: string): Promise<WebhookAnswer>;
  /** Closes its connections when the last question has been answered. */
  close(): Promise<void>;
  /** Closes its connections; questions fail. */
  destroy(): Promise<void>;
}

/** Where a Service's requests go now. @throws {StatusError} when it has no endpoint. */
export type ServiceResolver = (
  namespace: string,
  name: string,
  port: number,
) => { readonly host: string; readonly port: number };

const defaultTimeout = 10;
/** A review carries an object and a patch of it, both of at most 3 MiB, and base64. */
const maxAnswerBytes = 12 * 1024 * 1024;

/** Makes the client of a webhook's `clientConfig`. Connections are kept, and made when they are needed. */
export function createWebhookClient(webhook: Webhook, resolve: ServiceResolver): WebhookClient {
  const { caBundle = '', service, url = '' } = webhook.clientConfig ?? {};
  const ca = Buffer.from(caBundle, 'base64').toString();
  const seconds = webhook.timeoutSeconds ?? defaultTimeout;
  const base = service === undefined ? url : serviceUrl(service);
  const address = `${base}?timeout=${seconds}s`;
  const agent = new Agent({
    connect: connector(ca, service, resolve),
    // As many as there are questions, as in kube-apiserver: those in flight bound them, and none must wait for others.
    connections: null,
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
  });
  return {
    ask: async (body) => {
      const signal = AbortSignal.timeout(seconds * 1000);
      const tooLate = 'context deadline exceeded';
      let head: Dispatcher.ResponseData;
      try {
        head = await postUntilAnswered(agent, address, body, signal);
      } catch (error) {
        if (error instanceof WaitingTooLong) throw new Error(tooLate, { cause: error });
        const why = signal.aborted ? tooLate : transportFailure(error, new URL(base));
        throw new Error(`Post ${JSON.stringify(address)}: ${why}`, { cause: error });
      }
      try {
        return await read(head);
      } catch (error) {
        if (error instanceof AnswerTooLarge) throw error;
        throw new Error(
          `unexpected error when reading response body. Please retry. Original error: ${signal.aborted ? tooLate : 'unexpected EOF'}`,
          { cause: error },
        );
      }
    },
    close: async () => agent.close(),
    destroy: async () => agent.destroy(),
  };
}

type ServiceReference = NonNullable<NonNullable<Webhook['clientConfig']>['service']>;

function hostOf({ name = '', namespace = '' }: ServiceReference): string {
  return `${name}.${namespace}.svc`;
}

function serviceUrl(service: ServiceReference): string {
  return `https://${hostOf(service)}:${service.port ?? 443}${service.path ?? '/'}`;
}

/** A Service is reached at one of its endpoints, under its own name. */
function connector(
  ca: string,
  service: ServiceReference | undefined,
  resolve: ServiceResolver,
): buildConnector.connector {
  const connect = buildConnector({ ...(ca === '' ? {} : { ca }) });
  if (service === undefined) return connect;
  const servername = hostOf(service);
  return (options, callback) => {
    let target: { readonly host: string; readonly port: number };
    try {
      target = resolve(service.namespace ?? '', service.name ?? '', service.port ?? 443);
    } catch (error) {
      callback(error instanceof Error ? error : new Error(String(error)), null);
      return;
    }
    connect(
      { ...options, hostname: target.host, host: target.host, port: String(target.port), servername },
      callback,
    );
  };
}

/** kube-apiserver reads as much as a webhook sends; one that never ends must not take all memory. */
class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

async function read({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<WebhookAnswer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > maxAnswerBytes) {
      throw new AnswerTooLarge(`the response is larger than ${maxAnswerBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const type = headers['content-type'];
  return {
    status: statusCode,
    contentType: typeof type === 'string' ? type : '',
    bytes: Buffer.concat(chunks),
  };
}
