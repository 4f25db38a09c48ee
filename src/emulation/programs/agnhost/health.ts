/** `agnhost grpc-health-checking`: a server of `grpc.health.v1.Health/Check` (test/images/agnhost/grpc-health-checking). */
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer } from '../../../host/node-http.ts';
import type { AgnhostRun } from './context.ts';

/** gRPC's status codes that are used here. */
const codes = { ok: 0, notFound: 5, unimplemented: 12 };
/** `HealthCheckResponse.ServingStatus`. */
const servingStatus = { serving: 1, notServing: 2 };

/** Healthy for `--delay-unhealthy-sec`, or as `/make-serving` and `/make-not-serving` say. */
export async function grpcHealthChecking(run: AgnhostRun): Promise<void> {
  const { args } = run;
  const started = performance.now();
  const service = args.text('service');
  const unhealthyAfter = args.number('delay-unhealthy-sec', -1);
  let forced: boolean | undefined;
  const age = (): number => (performance.now() - started) / 1000;
  const isServing = (): boolean => forced ?? (unhealthyAfter < 0 || age() < unhealthyAfter);
  await run.listen(args.number('http-port', 8080), () =>
    createServer((request, response) => {
      request.resume();
      const { pathname } = new URL(request.url ?? '/', 'http://health');
      if (pathname === '/make-serving') forced = true;
      else if (pathname === '/make-not-serving') forced = false;
      else {
        response.writeHead(404).end('404 page not found\n');
        return;
      }
      response.end(`${age()}s`);
    }),
  );
  const port = args.number('port', 5000);
  await run.listen(port, () => {
    const server = createHttp2Server();
    server.on('sessionError', () => undefined);
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('end', () => {
        if (headers[':path'] !== '/grpc.health.v1.Health/Check') {
          answer(stream, codes.unimplemented, 'unimplemented');
        } else if (serviceIn(Buffer.concat(chunks)) === service) {
          const status = isServing() ? servingStatus.serving : servingStatus.notServing;
          answer(stream, codes.ok, '', Buffer.from([0, 0, 0, 0, 2, 0x08, status]));
        } else answer(stream, codes.notFound, 'unknown service');
      });
    });
    return server;
  });
  run.print(`gRPC server starting to listen on :${port}`);
}

/** The first field of a message behind gRPC's head of five bytes: a text of up to 127 bytes. */
function serviceIn(body: Buffer): string {
  const message = body.subarray(5);
  return message[0] === 0x0a ? message.subarray(2, 2 + (message[1] ?? 0)).toString() : '';
}

function answer(stream: ServerHttp2Stream, code: number, message: string, body?: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => {
    stream.sendTrailers({ 'grpc-status': String(code), 'grpc-message': message });
  });
  stream.end(body);
}
