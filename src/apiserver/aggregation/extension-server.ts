import { once } from 'node:events';
import type { ClientRequest, OutgoingHttpHeaders, IncomingMessage } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import type { APIServiceSpec } from '../../objects/types/apiregistration.generated.ts';
import type { WebhookNetwork, ServiceTarget } from '../admission/webhooks/client.ts';
import { dialInTime, noClusterNetwork, describeDialFailure, answerOf } from '../proxy/dial-pod.ts';
import { type FrontProxy, userHeaders } from './front-proxy.ts';
import { joinHostPort } from '../../objects/address.ts';
import { handshake } from '../../tls/handshake.ts';
import { PeerTrust } from '../../tls/peer-trust.ts';
import type { ApiRequest, Reply, UpgradeHandler } from '../http/exchange.ts';
import { plainError, serviceUnavailable, errorMessage } from '../../objects/status.ts';
import { copy, forward, headersToBackend, headersToClient } from '../proxy/forwarding.ts';
import { forwardUpgrade, upgradeHeaders } from '../proxy/upgrade.ts';
import { at, listAt, textAt, textsAt } from '../../objects/json.ts';
import type { DiscoveredResource, SubresourceRow } from '../discovery/discovered-resource.ts';
import { partOfV2 } from '../discovery/openapi/document-v2.ts';
import type { RemoteGroupVersion } from '../discovery/documents.ts';
import type { UserInfo } from '../../registry/generic/strategy.ts';

/** The network to extension API servers, and this server's identity to them. */
export interface ExtensionNetwork {
  readonly network: WebhookNetwork;
  readonly frontProxy: FrontProxy;
}

/** An extension API server: the Service of an APIService, and the verification of its certificate. */
export interface ExtensionServer {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /** PEM; undefined for the authorities of the system. */
  readonly ca: string | undefined;
  readonly insecureSkipTLSVerify: boolean;
}

/** An extension API server with the result of its last check. */
export interface CheckedServer extends ExtensionServer {
  readonly isAvailable: boolean;
}

/** A request to an extension API server. */
export interface ExtensionRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
}

/** The server that an APIService names; undefined for a local one. */
export function extensionServer(spec: APIServiceSpec): ExtensionServer | undefined {
  const { service, caBundle = '', insecureSkipTLSVerify = false } = spec;
  if (service === undefined) return undefined;
  const { namespace = '', name = '', port = 443 } = service;
  const ca = caBundle === '' ? undefined : Buffer.from(caBundle, 'base64').toString();
  return { namespace, name, port, ca, insecureSkipTLSVerify };
}

/**
 * Connects to an endpoint of an extension API server, and begins a request. The certificate has to be for
 * `<service>.<namespace>.svc`. Rejects with the transport's error.
 */
async function openExtensionRequest(
  { network, frontProxy }: ExtensionNetwork,
  server: ExtensionServer,
  target: ServiceTarget,
  requested: ExtensionRequest,
  signal: AbortSignal,
): Promise<ClientRequest> {
  const trust = server.insecureSkipTLSVerify ? undefined : new PeerTrust(server.ca);
  const socket = await dial(network, target, signal);
  const servername = `${server.name}.${server.namespace}.svc`;
  const options = {
    ...{ socket, servername, cert: frontProxy.certificate, key: frontProxy.key },
    ...(trust?.options ?? { rejectUnauthorized: false }),
  };
  const secure = await handshake(options, signal);
  const fault = trust?.fault(secure, servername, Date.now());
  if (fault !== undefined) {
    secure.destroy();
    throw fault;
  }
  // Not imported: that would load the fetch of Node.js too, 13 MiB.
  const { request } = process.getBuiltinModule('node:http');
  return request({
    ...requested,
    host: target.host,
    port: target.port,
    defaultPort: 443,
    createConnection: () => secure,
  });
}

/** Addresses of the simulated network are reached through the cluster network only. */
async function dial(network: WebhookNetwork, target: ServiceTarget, signal: AbortSignal): Promise<Socket> {
  const { host, port, isPod } = target;
  if (isPod || network.isSimulated(host)) {
    if (network.dialPod === undefined) {
      throw new Error(`dial tcp ${joinHostPort(host, port)}: ${noClusterNetwork}`);
    }
    return dialInTime(network.dialPod, target, signal);
  }
  return dialInTime(connect, target, signal);
}

async function connect(host: string, port: number): Promise<Socket> {
  const socket = connectTcp({ host, port });
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/**
 * Proxies a request to an extension API server, with the user in headers; bodies are streamed both ways. Failures are
 * answered in plain text (kube-aggregator `apiserver/handler_proxy.go`).
 */
export async function proxyRequest(
  extension: ExtensionNetwork,
  server: CheckedServer,
  request: ApiRequest,
  reply: Reply,
): Promise<void> {
  const target = resolve(extension, server);
  if (target === undefined) {
    unavailable(reply, 'service unavailable');
    return;
  }
  const requested = {
    method: request.method,
    path: request.url,
    headers: { ...headersToBackend(request), ...userHeaders(request.user) },
  };
  try {
    const response = await forward(
      request,
      async () => openExtensionRequest(extension, server, target, requested, request.signal),
      (error) => {
        throw new Unreachable(describeDialFailure(error, target));
      },
    );
    const headers = headersToClient(response.headers, (location) => location);
    await copy([], response, reply.stream(response.statusCode ?? 502, headers));
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    unavailable(reply, `error trying to reach service: ${error.message}`);
  }
}

/** Proxies an upgraded connection to an extension API server. */
export function proxyUpgrade(extension: ExtensionNetwork, server: CheckedServer): UpgradeHandler {
  return async (request, client, head) => {
    const target = resolve(extension, server);
    if (target === undefined) throw serviceUnavailable('service unavailable');
    const requested = {
      method: request.method,
      path: request.url,
      headers: { ...upgradeHeaders(request), ...userHeaders(request.user) },
    };
    await forwardUpgrade(
      client,
      head,
      async (signal) => openExtensionRequest(extension, server, target, requested, signal),
      (error) => {
        throw plainError(`error dialing backend: ${describeDialFailure(error, target)}`);
      },
    );
  };
}

class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** Undefined where the server is not available, or its Service has no endpoint. */
function resolve({ network }: ExtensionNetwork, server: CheckedServer): ServiceTarget | undefined {
  if (!server.isAvailable) return undefined;
  try {
    return network.resolve(server.namespace, server.name, server.port);
  } catch {
    return undefined;
  }
}

function unavailable(reply: Reply, message: string): void {
  reply.send(503, 'text/plain; charset=utf-8', `${message}\n`, { 'X-Content-Type-Options': 'nosniff' });
}

/**
 * The resources of an APIResourceList, as discovery shows them (apiserver `endpoints/installer.go`,
 * ConvertGroupVersionIntoToDiscovery). Rows without a name are left out.
 */
function remoteResources(group: string, version: string, list: unknown): DiscoveredResource[] {
  const rows = listAt(list, 'resources');
  return rows.flatMap((row) => {
    const plural = textAt(row, 'name');
    if (plural === '' || plural.includes('/')) return [];
    return [
      {
        group,
        version,
        plural,
        singular: textAt(row, 'singularName'),
        kind: textAt(row, 'kind'),
        namespaced: at(row, 'namespaced') === true,
        shortNames: textsAt(row, 'shortNames'),
        categories: textsAt(row, 'categories'),
        verbs: textsAt(row, 'verbs'),
        schema: '',
        subresources: subresourcesOf(plural, rows),
        custom: true,
      },
    ];
  });
}

function subresourcesOf(plural: string, rows: readonly unknown[]): SubresourceRow[] {
  return rows.flatMap((row) => {
    const name = textAt(row, 'name');
    if (!name.startsWith(`${plural}/`)) return [];
    const kindGroup = textAt(row, 'group');
    const kindVersion = textAt(row, 'version');
    return [
      {
        name: name.slice(plural.length + 1),
        kind: textAt(row, 'kind'),
        verbs: textsAt(row, 'verbs'),
        ...(kindGroup === '' && kindVersion === '' ? {} : { kindGroup, kindVersion }),
      },
    ];
  });
}

/** Parallel requests, as in kube-aggregator: each may go to another endpoint, and one answer is enough. */
const attempts = 5;
/** For all requests of one read. */
const answerTimeoutMs = 6000;
/** The limit for discovery documents; a larger one fails the check. */
const maxDocumentBytes = 16 * 1024 * 1024;
/** The limit for OpenAPI 2, which is parsed and encoded again as a whole; larger documents are left out. */
const maxOpenApiV2Bytes = 4 * 1024 * 1024;

/** The user of requests for the discovery of extension API servers. */
const aggregatorUser: UserInfo = {
  name: 'system:kube-aggregator',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

/**
 * Reads the discovery documents of an extension API server for a group version: its resources, where its OpenAPI 3
 * document is, and its part of the OpenAPI 2 document.
 *
 * @param known the documents of the last read.
 * @param stopping ends the requests.
 * @throws {Error} with kube-aggregator's message, if no request is answered in time.
 */
export async function discoverRemote(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  group: string,
  version: string,
  known: RemoteOpenApi | undefined,
  stopping: AbortSignal,
): Promise<Pick<RemoteGroupVersion, 'resources'> & RemoteOpenApi> {
  const done = new AbortController();
  const stop = (): void => done.abort();
  const timer = setTimeout(stop, answerTimeoutMs);
  stopping.addEventListener('abort', stop);
  if (stopping.aborted) stop();
  const groupVersion = `apis/${group}/${version}`;
  try {
    const reads = Array.from({ length: attempts }, async () =>
      readDocument(extension, server, `/${groupVersion}`, done.signal),
    );
    const list = await Promise.any(reads);
    const openApi = await openApiAddress(extension, server, groupVersion, done.signal);
    // The address contains the hash of the document: the same address is the same document.
    const isSame = openApi !== undefined && openApi === known?.openApi && known.openApiV2 !== undefined;
    const openApiV2 = isSame
      ? known.openApiV2
      : partOfV2(
          await optional(readDocument(extension, server, '/openapi/v2', done.signal, maxOpenApiV2Bytes)),
          `/${groupVersion}/`,
        );
    return { resources: remoteResources(group, version, list), openApi, openApiV2 };
  } catch (error) {
    const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error];
    throw first instanceof Error ? first : new Error(String(first), { cause: error });
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener('abort', stop);
    // Ends the other requests.
    stop();
  }
}

/** The OpenAPI documents of a group version. */
type RemoteOpenApi = Pick<RemoteGroupVersion, 'openApi' | 'openApiV2'>;

async function optional(document: Promise<unknown>): Promise<unknown> {
  return await document.catch(() => undefined);
}

/** Undefined where the server has none. */
async function openApiAddress(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  groupVersion: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const index = await optional(readDocument(extension, server, '/openapi/v3', signal));
  return textAt(index, 'paths', groupVersion, 'serverRelativeURL') || undefined;
}

async function readDocument(
  extension: ExtensionNetwork,
  server: ExtensionServer,
  path: string,
  signal: AbortSignal,
  maxBytes = maxDocumentBytes,
): Promise<unknown> {
  const target = extension.network.resolve(server.namespace, server.name, server.port);
  const url = `https://${joinHostPort(target.host, target.port)}${path}`;
  let response: IncomingMessage;
  try {
    const headers = { ...userHeaders(aggregatorUser), Accept: 'application/json' };
    const requested = { method: 'GET', path, headers };
    const outgoing = await openExtensionRequest(extension, server, target, requested, signal);
    signal.addEventListener('abort', () => outgoing.destroy(), { once: true });
    outgoing.end();
    ({ response } = await answerOf(outgoing));
  } catch (error) {
    if (signal.aborted) throw new Error(`timed out waiting for ${url}`, { cause: error });
    const why = errorMessage(error);
    throw new Error(`failing or missing response from ${url}: Get ${JSON.stringify(url)}: ${why}`, {
      cause: error,
    });
  }
  const status = response.statusCode ?? 0;
  if (status < 200 || status >= 300) {
    response.destroy();
    throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${status}`);
  }
  return parsed(await bodyOf(response, maxBytes));
}

/** An answer that is not JSON counts as an empty document. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

async function bodyOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    length += chunk.length;
    if (length > maxBytes) throw new Error(`the document is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
