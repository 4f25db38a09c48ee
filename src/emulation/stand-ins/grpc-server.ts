import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';

/** gRPC's status codes that are used here. */
export const grpcCodes = { ok: 0, unimplemented: 12 } as const;

/** A call, whose message does not matter. */
export interface GrpcCall {
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Address and port. */
  readonly client: string;
}

/** The answer to a call. */
export interface GrpcAnswer {
  readonly code: (typeof grpcCodes)[keyof typeof grpcCodes];
  /** Why; empty for none. */
  readonly reason?: string;
  /** The message of the answer, up to 255 bytes. */
  readonly message?: Buffer;
}

/** The method of gRPC's health service (`grpc.health.v1`). */
export const healthCheckPath = '/grpc.health.v1.Health/Check';

/** `HealthCheckResponse` with a `ServingStatus`. */
export function healthAnswer(isServing: boolean): GrpcAnswer {
  return { code: grpcCodes.ok, message: Buffer.from([0x08, isServing ? 1 : 2]) };
}

/**
 * A server of gRPC over HTTP/2 without TLS. Requests of other kinds get 415, as gRPC's servers give them.
 *
 * @param answer throws nothing.
 */
export function grpcServer(answer: (call: GrpcCall) => GrpcAnswer): Http2Server {
  // Loaded when the first is made: most processes have none.
  const server = process.getBuiltinModule('node:http2').createServer();
  server.on('sessionError', () => undefined);
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined);
    if (headers['content-type']?.startsWith('application/grpc') !== true) {
      stream.respond({ ':status': 415 });
      stream.end();
      return;
    }
    const { remoteAddress = '', remotePort = 0 } = stream.session?.socket ?? {};
    stream.resume();
    stream.once('end', () => {
      // Reset by its client.
      if (stream.destroyed || stream.closed) return;
      const client = `${remoteAddress}:${remotePort}`;
      respond(stream, answer({ path: headers[':path'] ?? '', headers, client }));
    });
  });
  return server;
}

function respond(stream: ServerHttp2Stream, { code, reason = '', message }: GrpcAnswer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => {
    stream.sendTrailers({ 'grpc-status': String(code), 'grpc-message': reason });
  });
  stream.end(message && Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
}
