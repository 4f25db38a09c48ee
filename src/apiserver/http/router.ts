import type { Handler, Reply } from './exchange.ts';

/** kube-apiserver's answer for unknown paths. */
export function replyNotFound(reply: Reply): void {
  reply.send(404, 'text/plain; charset=utf-8', '404 page not found\n', {
    'X-Content-Type-Options': 'nosniff',
  });
}

/**
 * Passes each request to the handler of its first path segment (`api` of `/api/v1/services`, "" of `/`); 404
 * without one. An empty segment in front (`//api`) is a segment.
 */
export function createRouter(routes: ReadonlyMap<string, Handler>): Handler {
  return async (request, reply) => {
    const { path } = request.info;
    const end = path.indexOf('/', 1);
    const first = end === -1 ? path.slice(1) : path.slice(1, end);
    const handler = first === '' && path !== '/' ? undefined : routes.get(first);
    if (handler === undefined) replyNotFound(reply);
    else await handler(request, reply);
  };
}
