import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { builtinSchema, interpretKind, VersionKindError } from '../../schema/builtin.ts';
import { notRegistered } from '../../schema/decode-body.ts';
import { DecodeError, decodeStruct } from '../../schema/decode.ts';
import { parseJson, type ParsedJson, JsonSyntaxError, YamlSyntaxError } from '../../schema/json.ts';
import { parseYaml } from '../../schema/yaml/parse-yaml.ts';
import { setTimeout } from 'node:timers/promises';
import type { Dispatcher, Agent, buildConnector } from 'undici';
import type { MutatingWebhook } from '../../../objects/types/admissionregistration.generated.ts';
import { isIP } from 'node:net';
import { describeDialFailure, type DialPod, dialInTime, noClusterNetwork } from '../../proxy/dial-pod.ts';
import { joinHostPort } from '../../../objects/address.ts';
import { errorMessage } from '../../../objects/status.ts';
import { escapePath, joinPath, pathOfUrl } from '../../../objects/formats/go-url.ts';
import { PeerTrust, UntrustedPeer } from '../../../tls/peer-trust.ts';

/**
 * - Reads the response of a webhook as client-go does (`rest/request.go`: `transformResponse`, `Into`), with its
 *   error texts and those of the codec that kube-apiserver calls webhooks with
 *   (`apiserver/pkg/util/webhook/client.go`).
 * - Retries of webhook calls, as client-go's REST client does them.
 */

/** The HTTP response of a webhook. */
export interface WebhookAnswer {
  readonly status: number;
  /** "" when there is none. */
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** The version of a review. */
export type ReviewVersion = 'v1' | 'v1beta1';

/** True for a version of reviews that this server supports. */
export function isReviewVersion(version: string): version is ReviewVersion {
  return version === 'v1' || version === 'v1beta1';
}

/** A kind of review: both versions of it have the same fields. */
export interface ReviewKind {
  readonly group: string;
  readonly kind: string;
  /** The name of its schema. */
  readonly schema: string;
}

/** Bytes of an error response's body that are shown (`maxUnstructuredResponseTextBytes`). */
const maxShown = 2048;

/**
 * The review in an answer: values have the types of the Go structs, unknown fields are dropped.
 *
 * @throws {Error} with client-go's message when it is not of the version of the request.
 */
export function readAnswer(
  answer: WebhookAnswer,
  { group, kind, schema }: ReviewKind,
  asked: ReviewVersion,
): JsonRecord {
  const { status, contentType, bytes } = answer;
  if (status < 200 || status > 206) throw new Error(statusMessage(answer) ?? codeMessage(answer));
  if (bytes.length === 0) {
    const type = contentType === '' ? 'application/json' : contentType;
    throw new Error(`0-length response with status code: ${status} and content type: ${type}`);
  }
  return withGoErrors(() => {
    const parsed = parse(bytes);
    const actual = interpretKind(parsed.value, { group, version: asked, kind });
    if (actual.group !== group || actual.kind !== kind || !isReviewVersion(actual.version)) {
      throw new Error(notRegistered(actual));
    }
    const review = decodeStruct(builtinSchema(schema), parsed).object;
    if (actual.version === asked) return review;
    throw new Error(`converting (${actual.version}.${kind}) to (${asked}.${kind}): unknown conversion`);
  });
}

/** JSON where the first character is a brace, else YAML: the codec reads both and ignores the content type. */
function parse(bytes: Buffer): ParsedJson {
  const first = /\S/.exec(bytes.toString('latin1', 0, maxShown));
  if (first?.[0] === '{') return parseJson(bytes);
  const { value, hasRawNumbers } = parseYaml(bytes);
  return { value, repeated: undefined, hasRawNumbers };
}

/** Turns the errors of parsing and decoding into those of the webhook codec. */
function withGoErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw new Error(`couldn't get version/kind; json parse error: ${error.message}`, { cause: error });
    }
    if (
      error instanceof DecodeError ||
      error instanceof VersionKindError ||
      error instanceof YamlSyntaxError
    ) {
      throw new Error(error.message, { cause: error });
    }
    throw error;
  }
}

/** The message of a Status; undefined where the body is none. */
function statusMessage({ bytes }: WebhookAnswer): string | undefined {
  let value: unknown;
  try {
    ({ value } = parse(bytes));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value['kind'] !== 'Status' || value['status'] !== 'Failure') return undefined;
  const { message } = value;
  return typeof message === 'string' ? message : '';
}

const messages: ReadonlyMap<number, string> = new Map([
  [400, 'the server rejected our request for an unknown reason'],
  [401, 'the server has asked for the client to provide credentials'],
  [404, 'the server could not find the requested resource'],
  [405, 'the server does not allow this method on the requested resource'],
  [409, 'the server reported a conflict'],
  [422, 'the server rejected our request due to an error in our request'],
  [429, 'the server has received too many requests and has asked us to try again later'],
  [503, 'the server is currently unable to handle the request'],
  [
    504,
    'the server was unable to return a response in the time allotted, but may still be processing the request',
  ],
]);

/** client-go's message for a code (apimachinery `errors.NewGenericServerResponse`). */
function codeMessage({ status, contentType, bytes }: WebhookAnswer): string {
  const isText = contentType === '' || /^text\//i.test(contentType);
  const shown = isText ? bytes.toString('utf8', 0, maxShown).trim() : 'unknown';
  const message = messages.get(status);
  if (message !== undefined) return message;
  if (status === 403 || status === 415) return shown;
  if (status === 406) {
    const isKnown = shown !== '' && shown !== 'unknown';
    return isKnown ? shown : 'the server was unable to respond with a content type that the client supports';
  }
  return status >= 500
    ? `an error on the server (${JSON.stringify(shown)}) has prevented the request from succeeding`
    : `the server responded with the status code ${status} but did not return more information`;
}

/** Retries of a webhook that responds with Retry-After (client-go `rest/request.go` maxRetries). */
const maxRetries = 10;
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, */*',
  'user-agent': 'kube-apiserver-admission',
};

/** The timeout has passed while the client waited for a Retry-After. */
class WaitingTooLong extends Error {
  override readonly name = 'WaitingTooLong';
}

/**
 * Posts a review. 429 and server errors with `Retry-After` in seconds are retried, {@link maxRetries} times at most
 * (client-go `rest/with_retry.go`). Redirects are returned and not followed: they would let a webhook reach the network
 * of the server (CVE-2020-8561).
 *
 * @throws {WaitingTooLong} when the signal aborts between two attempts; the transport's errors.
 */
async function postUntilAnswered(
  dispatcher: Dispatcher,
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(url);
  const path = `${pathname}${search}`;
  for (let attempt = 0; ; attempt++) {
    const answer = await dispatcher.request({ origin, path, method: 'POST', headers, body, signal });
    const seconds = attempt < maxRetries ? retryAfterSeconds(answer) : undefined;
    if (seconds === undefined) return answer;
    await answer.body.dump();
    try {
      await setTimeout(seconds * 1000, undefined, { signal });
    } catch (error) {
      throw new WaitingTooLong('the webhook wants to be asked again later', { cause: error });
    }
  }
}

/** Seconds until the next attempt; undefined where the answer is final. */
function retryAfterSeconds({ statusCode, headers }: Dispatcher.ResponseData): number | undefined {
  if (statusCode !== 429 && (statusCode < 500 || statusCode > 599)) return undefined;
  const header = headers['retry-after'];
  return typeof header === 'string' && /^[+-]?\d{1,9}$/.test(header)
    ? Math.max(Number(header), 0)
    : undefined;
}

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
const defaultTimeoutSeconds = 10;
/** A review has an object and a base64 patch of it, of at most 3 MiB each. */
const maxAnswerBytes = 12 * 1024 * 1024;

/** The fields of a webhook that say how to reach it. */
export type ConnectedWebhook = Partial<Pick<MutatingWebhook, 'clientConfig' | 'timeoutSeconds'>>;

/** The client of a webhook's `clientConfig`. Connections are opened with the first call, and kept. */
export function createWebhookClient(webhook: ConnectedWebhook, network: WebhookNetwork): WebhookClient {
  const { caBundle = '', service, url = '' } = webhook.clientConfig ?? {};
  const seconds = webhook.timeoutSeconds ?? defaultTimeoutSeconds;
  const base = service === undefined ? cleanUrl(url) : serviceUrl(service);
  const address = `${base}?timeout=${seconds}s`;
  const open = async (): Promise<Agent> => {
    // Loaded on demand: most servers have no webhook, and the library takes 10 MiB.
    const undici = await import('undici');
    const trust = trustOf(caBundle);
    const connect = trust.connector(
      undici.buildConnector({ ...trust.options, allowH2: false, maxCachedSessions: 0 }),
      Date.now,
    );
    return new undici.Agent({
      connect: connector(connect, service, network, seconds * 1000),
      // Unlimited, as in kube-apiserver: no call waits for another, and requests in flight are limited.
      connections: null,
      headersTimeout: 0,
      bodyTimeout: 0,
      pipelining: 1,
      allowH2: false,
    });
  };
  let opened: Promise<Agent> | undefined;
  return {
    call: async (body) => {
      const signal = AbortSignal.timeout(seconds * 1000);
      const deadlineExceeded = 'context deadline exceeded';
      opened ??= open();
      const agent = await opened;
      let head: Dispatcher.ResponseData;
      try {
        head = await postUntilAnswered(agent, address, body, signal);
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

/** A webhook that cannot be called at all. */
export class UnusableWebhook extends Error {
  override readonly name = 'UnusableWebhook';
}

/** @param caBundle base64 of PEM. @throws {UnusableWebhook} where no certificate is in it. */
function trustOf(caBundle: string): PeerTrust {
  try {
    return new PeerTrust(Buffer.from(caBundle, 'base64').toString());
  } catch (error) {
    throw new UnusableWebhook(`could not get REST client: ${errorMessage(error)}`, { cause: error });
  }
}

type ServiceReference = NonNullable<NonNullable<MutatingWebhook['clientConfig']>['service']>;

function hostOf({ name, namespace }: ServiceReference): string {
  return `${name}.${namespace}.svc`;
}

function serviceUrl(service: ServiceReference): string {
  const path = escapePath(joinPath(service.path ?? ''));
  return `https://${hostOf(service)}:${service.port ?? 443}${path}`;
}

/** client-go joins the path anew (`rest/request.go` NewRequest), so that `//failing` and `/failing/` are `/failing`. */
function cleanUrl(url: string): string {
  const [origin = ''] = /^[^:]*:\/\/[^/?#]*/.exec(url) ?? [];
  return `${origin}${escapePath(joinPath(pathOfUrl(url)))}`;
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

/** Why an HTTPS request had no answer, with the messages of Go's net and TLS packages. */
function transportFailure(error: unknown, url: URL): string {
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const code = textOf(cause, 'code');
  if (cause instanceof UntrustedPeer) return cause.message;
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
