import type { Handler } from './exchange.ts';

/** A handler whose code is loaded when the first request for it comes: what few servers are asked for must not slow every start. */
export function onDemand(load: () => Promise<Handler>): Handler {
  let loaded: Promise<Handler> | undefined;
  return async (request, reply) => {
    const handler = await (loaded ??= load());
    await handler(request, reply);
  };
}
