import type { Handler } from '../http/exchange.ts';

/** Serves `/metrics` in the text format of Prometheus. */
export function metricsHandler(collect: () => Promise<string>): Handler {
  return async (_request, reply) => {
    reply.send(200, 'text/plain; version=0.0.4; charset=utf-8', await collect());
  };
}
