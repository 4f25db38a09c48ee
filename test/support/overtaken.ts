import type { RequestOptions, Transport } from '../../src/client/transport.ts';

/** A request that is about to be sent. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly options: RequestOptions;
}

/** A transport on which another client was quicker, once. */
export interface Overtaken extends Transport {
  /** Resolves when the request that was overtaken is over, however it went. */
  readonly over: Promise<void>;
}

/**
 * A transport on which another client is quicker once: before the first request that is meant arrives, `act` is done.
 * What `act` throws is what the request comes to.
 */
export function overtaken(
  inner: Transport,
  isMeant: (request: Request) => boolean,
  act: () => Promise<unknown>,
): Overtaken {
  const over = Promise.withResolvers<undefined>();
  let isLate = false;
  return {
    over: over.promise,
    server: inner.server,
    request: async (method, path, options = {}) => {
      if (isLate || !isMeant({ method, path, options })) return inner.request(method, path, options);
      isLate = true;
      try {
        await act();
        return await inner.request(method, path, options);
      } finally {
        over.resolve(undefined);
      }
    },
    stream: (path, options) => inner.stream(path, options),
    close: () => Promise.resolve(),
  };
}
