import type { MutatingWebhook } from '../../../objects/types/admissionregistration.generated.ts';
import { isIP } from 'node:net';
import type { Agent, buildConnector, Dispatcher } from 'undici';

import type { WebhookAnswer } from './answer.ts';
import { postUntilAnswered, WaitingTooLong } from './attempts.ts';
import { describeDialFailure } from '../../proxy/backend.ts';
import { type DialPod, dialInTime, noClusterNetwork } from '../../proxy/dial-pod.ts';
import { isRecord } from '../../../objects/json.ts';
import { joinHostPort } from '../../../objects/address.ts';

/** Calls one webhook. */
export interface WebhookClient {
  /** Posts a review. @throws {Error} with kube-apiserver's message when there is no answer. */
  call(body: string): Promise<WebhookAnswer>;
  /** Closes the connections once all calls have been answered. */
  close(): Promise<void>;
  /** Closes the connections at once; open calls fail. */
  destroy(): Promise<void>;
}

/** Where a Service's requests go. */
export interface ServiceTarget {
  /** An address or a DNS name. */
  readonly host: string;
  readonly port: number;
  /** Whether it is a Pod's address. */
  readonly isPod: boolean;
}

/** The network to webhooks. */
export interface WebhookNetwork {
  /** Where a Service's requests go now. @throws {StatusError} when it has no endpoint. */
  resolve(namespace: string, name: string, port: number): ServiceTarget;
  /** Whether an address belongs to the simulated cluster network, and so must not be dialled in the machine's. */
  isSimulated(address: string): boolean;
  /** Connects to Pods; undefined where the cluster network is not simulated. */
  readonly dialPod: DialPod | undefined;
}

/** Seconds, where a webhook has no `timeoutSeconds`. */
const defaultTimeout = 10;
/** A review has an object and a base64 patch of it, of at most 3 MiB each. */
const maxAnswerBytes = 12 * 1024 * 1024;

/** The fields of a webhook that say how to reach it. */
export type ConnectedWebhook = Partial<Pick<MutatingWebhook, 'clientConfig' | 'timeoutSeconds'>>;

/** The client of a webhook's `clientConfig`. Connections are opened with the first call, and kept. */
export function createWebhookClient(webhook: ConnectedWebhook, network: WebhookNetwork): WebhookClient {
  const { caBundle = '', service, url = '' } = webhook.clientConfig ?? {};
  const ca = Buffer.from(caBundle, 'base64').toString();
  const seconds = webhook.timeoutSeconds ?? defaultTimeout;
  const base = service === undefined ? url : serviceUrl(service);
  const address = `${base}?timeout=${seconds}s`;
  const open = async (): Promise<Agent> => {
    // Loaded on demand: most servers have no webhook, and the library takes 10 MiB.
    const undici = await import('undici');
    return new undici.Agent({
      connect: connector(undici.buildConnector(ca === '' ? {} : { ca }), service, network, seconds * 1000),
      // Unlimited, as in kube-apiserver: no call waits for another, and requests in flight are limited.
      connections: null,
      headersTimeout: 0,
      bodyTimeout: 0,
      pipelining: 1,
    });
  };
  let opened: Promise<Agent> | undefined;
  return {
    call: async (body) => {
      const signal = AbortSignal.timeout(seconds * 1000);
      const deadlineExceeded = 'context deadline exceeded';
      let head: Dispatcher.ResponseData;
      try {
        opened ??= open();
        head = await postUntilAnswered(await opened, address, body, signal);
      } catch (error) {
        if (error instanceof WaitingTooLong) throw new Error(deadlineExceeded, { cause: error });
        const why = signal.aborted ? deadlineExceeded : transportFailure(error, new URL(base));
        throw new Error(`Post ${JSON.stringify(address)}: ${why}`, { cause: error });
      }
      try {
        return await read(head);
      } catch (error) {
        if (error instanceof AnswerTooLarge) throw error;
        throw new Error(
          `unexpected error when reading response body. Please retry. Original error: ${signal.aborted ? deadlineExceeded : 'unexpected EOF'}`,
          { cause: error },
        );
      }
    },
    close: async () => (await opened)?.close(),
    destroy: async () => (await opened)?.destroy(),
  };
}

type ServiceReference = NonNullable<NonNullable<MutatingWebhook['clientConfig']>['service']>;

function hostOf({ name, namespace }: ServiceReference): string {
  return `${name}.${namespace}.svc`;
}

function serviceUrl(service: ServiceReference): string {
  return `https://${hostOf(service)}:${service.port ?? 443}${service.path ?? '/'}`;
}

/**
 * Connects to a Service at one of its endpoints, with its DNS name for TLS; to a Pod through the cluster network only.
 * Addresses of the simulated network are never dialled in the machine's, neither for a URL nor for an ExternalName.
 */
function connector(
  connect: buildConnector.connector,
  service: ServiceReference | undefined,
  network: WebhookNetwork,
  timeoutMs: number,
): buildConnector.connector {
  const open = async (options: buildConnector.Options): Promise<buildConnector.Options> => {
    const target: ServiceTarget =
      service === undefined
        ? { host: options.hostname, port: Number(options.port), isPod: false }
        : network.resolve(service.namespace, service.name, service.port ?? 443);
    const { host, port } = target;
    const changed: buildConnector.Options =
      service === undefined
        ? options
        : { ...options, hostname: host, host, port: String(port), servername: hostOf(service) };
    const address = host.replace(/^\[(.*)\]$/, '$1');
    if (!target.isPod && (isIP(address) === 0 || !network.isSimulated(address))) return changed;
    if (network.dialPod === undefined)
      throw new Error(`dial tcp ${joinHostPort(address, port)}: ${noClusterNetwork}`);
    const signal = AbortSignal.timeout(timeoutMs);
    return { ...changed, httpSocket: await dialInTime(network.dialPod, { host: address, port }, signal) };
  };
  return (options, callback) => {
    open(options).then(
      (changed) => connect(changed, callback),
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
    );
  };
}

/** kube-apiserver has no such limit; here an endless response must not take all memory. */
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

/** OpenSSL's codes for a chain without a trusted authority. */
const unknownAuthority = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
]);

/** Why an HTTPS request had no answer, with the messages of Go's net and TLS packages. */
function transportFailure(error: unknown, url: URL): string {
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const code = textOf(cause, 'code');
  const tls = (reason: string) => `tls: failed to verify certificate: x509: ${reason}`;
  if (unknownAuthority.has(code)) return tls('certificate signed by unknown authority');
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID') {
    return tls('certificate has expired or is not yet valid');
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = [
      ...textOf(isRecord(cause) ? cause['cert'] : undefined, 'subjectaltname').matchAll(
        /(?:DNS|IP Address):([^,]+)/g,
      ),
    ];
    const valid = names.map(([, name = '']) => name).join(', ');
    return tls(`certificate is valid for ${valid === '' ? 'no names' : valid}, not ${textOf(cause, 'host')}`);
  }
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `dial tcp: lookup ${url.hostname}: no such host`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO') {
    return 'http: server gave HTTP response to HTTPS client';
  }
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET') return 'EOF';
  const host = textOf(cause, 'address');
  const port = isRecord(cause) && typeof cause['port'] === 'number' ? cause['port'] : Number(url.port) || 443;
  return describeDialFailure(cause, { host: host === '' ? url.hostname : host, port });
}

function textOf(value: unknown, member: string): string {
  const found = isRecord(value) ? value[member] : undefined;
  return typeof found === 'string' ? found : '';
}
