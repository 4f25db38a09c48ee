import { Agent, buildConnector, request } from 'undici';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { Webhook } from '../../registry/webhookconfiguration/webhook.ts';
import { transportFailure } from './transport-failure.ts';

/** Asks one webhook. */
export interface WebhookClient {
  /** Posts an AdmissionReview and reads the one that answers. @throws {Error} whose message is in kube-apiserver's words. */
  ask(body: string): Promise<JsonRecord>;
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
/** What is shown of the body of an answer that is no review. */
const maxShown = 2048;

/** Makes the client of a webhook's `clientConfig`. Connections are kept, and made when they are needed. */
export function createWebhookClient(webhook: Webhook, resolve: ServiceResolver): WebhookClient {
  const { caBundle = '', service, url = '' } = webhook.clientConfig ?? {};
  const ca = Buffer.from(caBundle, 'base64').toString();
  const seconds = webhook.timeoutSeconds ?? defaultTimeout;
  const base = service === undefined ? url : serviceUrl(service);
  const address = `${base}?timeout=${seconds}s`;
  const agent = new Agent({
    connect: connector(ca, service, resolve),
    connections: 16,
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 1,
  });
  return {
    ask: async (body) => {
      const signal = AbortSignal.timeout(seconds * 1000);
      let answer: { readonly status: number; readonly text: string };
      try {
        answer = await post(agent, address, body, signal);
      } catch (error) {
        throw new Error(
          `Post ${JSON.stringify(address)}: ${signal.aborted ? 'context deadline exceeded' : transportFailure(error, new URL(base))}`,
          {
            cause: error,
          },
        );
      }
      return parse(answer.status, answer.text);
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

async function post(
  agent: Agent,
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, */*',
    'user-agent': 'kube-apiserver-admission',
  };
  const { statusCode, body: stream } = await request(url, {
    method: 'POST',
    dispatcher: agent,
    headers,
    body,
    signal,
  });
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > maxAnswerBytes) throw new Error(`the response is larger than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return { status: statusCode, text: Buffer.concat(chunks).toString() };
}

/** What client-go makes of an answer: an object, or the error of its code. */
function parse(status: number, text: string): JsonRecord {
  if (status < 200 || status > 299) throw new Error(describeStatus(status, text));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(
      `couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : ''}`,
      { cause: error },
    );
  }
  if (!isRecord(value))
    throw new Error("couldn't get version/kind; json parse error: the answer is no object");
  const { kind, apiVersion } = value;
  if (typeof kind !== 'string' || kind === '')
    throw new Error(`Object 'Kind' is missing in '${text.slice(0, maxShown)}'`);
  if (
    typeof apiVersion !== 'string' ||
    !/^admission\.k8s\.io\/v1(beta1)?$/.test(apiVersion) ||
    kind !== 'AdmissionReview'
  ) {
    throw new Error(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion ?? '')} in scheme "admission"`,
    );
  }
  return value;
}

function describeStatus(status: number, text: string): string {
  if (status === 404) return 'the server could not find the requested resource';
  if (status === 401) return 'Unauthorized';
  if (status === 503) return 'the server is currently unable to handle the request';
  if (status < 500) return `the server rejected our request for an unknown reason`;
  const shown = JSON.stringify(text.slice(0, maxShown).trim() || 'unknown');
  return `an error on the server (${shown}) has prevented the request from succeeding`;
}
