import { methodNotAllowed, resourceNotFound } from '../objects/status-errors.ts';
import { accessOf, type Authorizer, requireAccess } from './authorization/authorizer.ts';
import { effectiveUser } from './authorization/impersonation.ts';
import { discoveryHandler } from './discovery/handler.ts';
import { healthHandler } from './discovery/health.ts';
import type { ApiRequest, Handler, UpgradeHandler } from './http/exchange.ts';
import { createRouter } from './http/router.ts';
import { restHandler } from './rest/dispatch.ts';
import type { ServerCore } from './rest/server-core.ts';
import type { ReviewSources } from './reviews/reviews.ts';
import { servedForDiscovery, specialHandlers } from './subresources.ts';

/** Everything behind authentication. */
export interface Serving {
  readonly handler: Handler;
  readonly upgrade: UpgradeHandler;
  /** Turns `/readyz` to ok. */
  ready(): void;
}

/** Wires paths to handlers; every request is authorized first. */
export function createServing(core: ServerCore, authorizer: Authorizer, reviews: ReviewSources): Serving {
  let isReady = false;
  const served = servedForDiscovery(core);
  const rest = restHandler(core, specialHandlers(reviews));
  const discovery = discoveryHandler(served, () => '');
  const api: Handler = async (request, reply) => {
    const { info } = request;
    const known = info.isResource && core.resources.hasGroupVersion(info.group, info.version);
    return known ? rest(request, reply) : discovery(request, reply);
  };
  const health = healthHandler([
    { name: 'ping', on: ['healthz', 'livez', 'readyz'], check: () => undefined },
    {
      name: 'poststarthook/bootstrap-controller',
      on: ['healthz', 'livez', 'readyz'],
      check: () => {
        if (!isReady) throw new Error('not finished');
      },
    },
  ]);
  const route = createRouter(
    new Map<string, Handler>([
      ['api', api],
      ['apis', api],
      ['healthz', health],
      ['livez', health],
      ['readyz', health],
    ]),
  );
  return {
    handler: async (request, reply) => {
      await route(authorized(authorizer, request), reply);
    },
    upgrade: async (request) => {
      authorized(authorizer, request);
      throw request.info.isResource ? resourceNotFound() : methodNotAllowed();
    },
    ready: () => {
      isReady = true;
    },
  };
}

/** The request as its effective user. @throws {StatusError} 403 */
function authorized(authorizer: Authorizer, request: ApiRequest): ApiRequest {
  const user = effectiveUser(authorizer, request.user, request.headers);
  requireAccess(authorizer, user, accessOf(request.info));
  return user === request.user ? request : asUser(request, user);
}

function asUser(request: ApiRequest, user: ApiRequest['user']): ApiRequest {
  return {
    method: request.method,
    url: request.url,
    info: request.info,
    query: request.query,
    headers: request.headers,
    user,
    body: async () => request.body(),
    get signal() {
      return request.signal;
    },
    incoming: request.incoming,
  };
}
