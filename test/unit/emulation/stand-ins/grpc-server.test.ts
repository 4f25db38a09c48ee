import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  grpcCodes,
  grpcServer,
  healthAnswer,
  healthCheckPath,
} from '../../../../src/emulation/stand-ins/grpc-server.ts';

let isServing = true;
const server = grpcServer(({ path }) =>
  path === healthCheckPath
    ? healthAnswer(isServing)
    : { code: grpcCodes.unimplemented, reason: 'not by this one' },
);
let url = '';

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  url = `http://127.0.0.1:${address.port}`;
});
afterAll(() => server.close());

/** The status, and what comes behind it. */
async function call(path: string, type = 'application/grpc') {
  const session = connect(url);
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': type });
  let trailers: IncomingHttpHeaders = {};
  stream.once('trailers', (headers: IncomingHttpHeaders) => (trailers = headers));
  let status: number | undefined;
  stream.once('response', (headers) => (status = headers[':status']));
  // An empty message behind its head.
  stream.end(Buffer.alloc(5));
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
  await once(stream, 'end');
  session.close();
  return { status, code: trailers['grpc-status'], bytes: [...Buffer.concat(chunks)] };
}

it('answers health checks by the state of the moment', async () => {
  expect(await call(healthCheckPath)).toEqual({ status: 200, code: '0', bytes: [0, 0, 0, 0, 2, 8, 1] });
  isServing = false;
  expect(await call(healthCheckPath)).toEqual({ status: 200, code: '0', bytes: [0, 0, 0, 0, 2, 8, 2] });
});

it('says of other methods that there is none, and of other requests that they are not gRPC', async () => {
  expect(await call('/shop.Cart/Get')).toEqual({ status: 200, code: '12', bytes: [] });
  expect(await call('/', 'text/plain')).toEqual({ status: 415, code: undefined, bytes: [] });
});
