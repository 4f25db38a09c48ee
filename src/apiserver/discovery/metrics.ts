import type { Handler } from '../http/exchange.ts';
import { replyNotFound } from '../http/router.ts';

/** Serves `/metrics` in the text format of Prometheus, and nothing below it. */
export function metricsHandler(collect: () => Promise<string>): Handler {
  return async ({ info }, reply) => {
    if (info.path !== '/metrics') replyNotFound(reply);
    else reply.send(200, 'text/plain; version=0.0.4; charset=utf-8', await collect());
  };
}
