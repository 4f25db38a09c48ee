import type { ApiRequest, Reply, UpgradeHandler } from '../http/exchange.ts';
import { plainError, serviceUnavailable } from '../../objects/status-errors.ts';
import { describeDialFailure } from '../proxy/backend.ts';
import { copy, forward } from '../proxy/exchange.ts';
import { headersToBackend, headersToClient } from '../proxy/forwarding.ts';
import { forwardUpgrade, upgradeHeaders } from '../proxy/upgrade.ts';
import { type CheckedServer, type ExtensionNetwork, openExtensionRequest } from './extension-server.ts';
import { userHeaders } from './front-proxy.ts';
import type { ServiceTarget } from '../admission/webhooks/client.ts';

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
