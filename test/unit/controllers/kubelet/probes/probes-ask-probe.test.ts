import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { connect, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { askProbe } from '../../../../../src/controllers/kubelet/probes/probes.ts';
import type { ExecStreams, ProbeResult } from '../../../../../src/controllers/kubelet/container-runtime.ts';
import type { Probe } from '../../../../../src/objects/types/core.generated.ts';
import { pod } from '../../workloads/samples.ts';

const asked = { ...pod('p'), status: { podIP: '127.0.0.1' } };
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** The port of a server of this machine. */
async function listening(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A port that nothing listens on. */
async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await listening(server);
  server.close();
  await once(server, 'close');
  return port;
}

const http = (listener: RequestListener): Promise<number> => listening(createHttpServer(listener));

/** Asks; `timeout` milliseconds are those of the probe. */
async function ask(
  probe: Probe,
  { timeout = 10_000, exec = () => Promise.resolve(0) }: { timeout?: number; exec?: Program } = {},
): Promise<ProbeResult> {
  const runtime = {
    exec: (_pod: unknown, _name: string, command: readonly string[], streams: ExecStreams) =>
      exec(command, streams),
    connect: async (_pod: unknown, address: string, port: number, signal: AbortSignal) => {
      const socket = connect({ host: address, port });
      await once(socket, 'connect', { signal });
      return socket;
    },
  };
  return await askProbe(runtime, asked, { name: 'main' }, probe, AbortSignal.timeout(timeout));
}

type Program = (command: readonly string[], streams: ExecStreams) => Promise<number>;

describe('a probe by HTTP', () => {
  it.each([
    [200, true, ''],
    [204, true, ''],
    [399, true, ''],
    [404, false, 'HTTP probe failed with statuscode: 404'],
    [503, false, 'HTTP probe failed with statuscode: 503'],
  ])('that is answered with %i', async (status, success, output) => {
    const port = await http((_, response) => response.writeHead(status).end());
    expect(await ask({ httpGet: { port } })).toEqual({ success, output });
  });

  it('sends the headers and the path of the probe as a kubelet does', async () => {
    const heard: unknown[] = [];
    const port = await http(({ url, headers }, response) => {
      heard.push([url, headers['user-agent'], headers['x-own'], headers.connection]);
      response.end();
    });
    await ask({ httpGet: { port, path: '/a?b=c', httpHeaders: [{ name: 'X-Own', value: 'yes' }] } });
    await ask({ httpGet: { port, path: 'a', httpHeaders: [{ name: 'User-Agent', value: 'mine' }] } });
    expect(heard).toEqual([
      ['/a?b=c', 'kube-probe/1.37', 'yes', 'close'],
      ['/a', 'mine', undefined, 'close'],
    ]);
  });

  it('follows redirects to the same host, ten at most, and takes others for a success', async () => {
    const port = await http(({ url = '' }, response) => {
      const location = url === '/away' ? 'http://elsewhere.test/' : url === '/once' ? '/done' : url;
      const isDone = url === '/done';
      response.writeHead(isDone ? 418 : 302, isDone ? {} : { location }).end();
    });
    const get = (path: string) => ask({ httpGet: { port, path } });
    expect(await get('/once')).toEqual({
      success: false,
      output: 'HTTP probe failed with statuscode: 418',
    });
    expect(await get('/away')).toEqual({ success: true, output: '' });
    expect(await get('/round')).toEqual({
      success: false,
      output: `Get "http://127.0.0.1:${port}/round": stopped after 10 redirects`,
    });
  });

  it('that hangs, and one that nothing listens for', async () => {
    const port = await http(() => undefined);
    expect(await ask({ httpGet: { port } }, { timeout: 50 })).toEqual({
      success: false,
      output: `Get "http://127.0.0.1:${port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    });
    const closed = await closedPort();
    expect(await ask({ httpGet: { port: closed } })).toEqual({
      success: false,
      output: `Get "http://127.0.0.1:${closed}/": dial tcp 127.0.0.1:${closed}: connect: connection refused`,
    });
  });
});

describe('a probe by TCP', () => {
  it('is answered by who listens', async () => {
    const port = await listening(createServer((socket) => socket.destroy()));
    expect(await ask({ tcpSocket: { port } })).toEqual({ success: true, output: '' });
    const closed = await closedPort();
    expect(await ask({ tcpSocket: { port: closed } })).toEqual({
      success: false,
      output: `dial tcp 127.0.0.1:${closed}: connect: connection refused`,
    });
  });
});

describe('a probe by a program', () => {
  const probe = { exec: { command: ['sh', '-c', 'check'] }, timeoutSeconds: 3 };

  it.each([
    [0, true],
    [1, false],
    [127, false],
  ])('that ends with %i', async (code, success) => {
    const exec: Program = (command, { stdout, stderr }) => {
      stdout.write(`${command.join()} `);
      stderr.write('said');
      return Promise.resolve(code);
    };
    expect(await ask(probe, { exec })).toEqual({ success, output: 'sh,-c,check said' });
  });

  it('that hangs', async () => {
    const exec: Program = (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal?.addEventListener('abort', () => reject(new Error('aborted'))),
      );
    expect(await ask(probe, { exec, timeout: 50 })).toEqual({
      success: false,
      output: 'command timed out: "sh -c check" timed out after 3s',
    });
  });

  it('that prints without end is shown by its first 10 KiB', async () => {
    const exec: Program = async (_, { stdout }) => {
      for (let i = 0; i < 1000; i++) stdout.write('x'.repeat(1000));
      return Promise.resolve(1);
    };
    const { output } = await ask(probe, { exec });
    expect(output).toBe('x'.repeat(10 * 1024));
  });
});
