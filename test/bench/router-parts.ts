/**
 * What a router is measured with, each in a process of its own: `backend ADDRESS`, whose answers are 1 KiB, and `pipe PORT`,
 * the least that can be between it and clients with the libraries of the router (node:http in, undici out). It sends
 * its port to the process that forked it.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Pool } from 'undici';
import { portOf } from '../support/router/router.ts';
import { podAddress } from './own-network.ts';

const [part = '', backendPort = '0'] = process.argv.slice(2);
const server = part === 'backend' ? backend() : pipe(Number(backendPort));
server.listen(0, part === 'backend' ? podAddress : '127.0.0.1');
await once(server, 'listening');
process.send?.(portOf(server));

function backend(): Server {
  const body = Buffer.alloc(1024, 'a');
  return createServer((_, response) => response.end(body));
}

function pipe(port: number): Server {
  const pool = new Pool(`http://${podAddress}:${port}`, { connections: null, pipelining: 1 });
  return createServer((request, response) => {
    const { method = 'GET', url: path = '/' } = request;
    pool.dispatch(
      { method, path, headers: request.rawHeaders },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_, status, headers) => {
          response.writeHead(status, { ...headers, connection: [] });
        },
        onResponseData: (_, chunk) => {
          response.write(chunk);
        },
        onResponseEnd: () => {
          response.end();
        },
        onResponseError: () => {
          response.destroy();
        },
      },
    );
  });
}
