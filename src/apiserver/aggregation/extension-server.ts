import { once } from 'node:events';
import type { ClientRequest, OutgoingHttpHeaders } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import type { APIServiceSpec } from '../../objects/types/apiregistration.generated.ts';
import type { WebhookNetwork, ServiceTarget } from '../admission/webhooks/client.ts';
import { dialInTime, noClusterNetwork, describeDialFailure } from '../proxy/dial-pod.ts';
import { type FrontProxy, userHeaders } from './front-proxy.ts';
import { joinHostPort } from '../../objects/address.ts';
import { handshake } from '../../tls/handshake.ts';
import { PeerTrust } from '../../tls/peer-trust.ts';
import type { ApiRequest, Reply, UpgradeHandler } from '../http/exchange.ts';
import { plainError, serviceUnavailable } from '../../objects/status.ts';
import { copy, forward, headersToBackend, headersToClient } from '../proxy/forwarding.ts';
import { forwardUpgrade, upgradeHeaders } from '../proxy/upgrade.ts';

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
export async function openExtensionRequest(
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
