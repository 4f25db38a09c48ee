import type { Handler } from '../http/exchange.ts';
import { replyNotFound } from '../http/router.ts';

/** Serves `/metrics` and paths below it in the text format of Prometheus. @param pages by path. */
export function metricsHandler(pages: ReadonlyMap<string, () => Promise<string>>): Handler {
  return async ({ info }, reply) => {
    const collect = pages.get(info.path);
    if (collect === undefined) replyNotFound(reply);
    else reply.send(200, 'text/plain; version=0.0.4; charset=utf-8', await collect());
  };
}
