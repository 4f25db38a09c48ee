import { createServer as createTcpServer, isIP, type Socket } from 'node:net';
import { type Answer, headerValue, httpServer, httpsServer } from '../../host/http-server.ts';
import { type AgnhostRun, tlsFile } from './context.ts';
import { bodyFrom } from './clients.ts';
import { errorMessage } from '../../objects/status.ts';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Answers every request with the host name: HTTP, unless `--http=false`; then TCP, UDP or both. */
export async function serveHostname(run: AgnhostRun): Promise<void> {
  const { args, container } = run;
  const port = args.number('port', 9376);
  const [isTcp, isUdp] = [args.has('tcp'), args.has('udp')];
  const isHttp = args.text('http', 'true') !== 'false';
  if (isHttp && (isTcp || isUdp)) {
    container.write('stderr', "Can't server TCP/UDP mode and HTTP mode at the same time\n");
    run.end(1);
    return;
  }
  if (isUdp) await run.receive(port, () => container.hostname);
  if (isTcp) {
    await run.listen(port, () =>
      createTcpServer((socket) => {
        // The client's data is read, so that closing does not reset the connection.
        socket.resume().end(container.hostname);
      }),
    );
  }
  if (isHttp) {
    await run.listen(port, () =>
      httpServer((request, response) => {
        request.resume();
        if (args.has('close')) response.setHeader('Connection', 'close');
        response.end(container.hostname);
      }),
    );
  }
  run.onTerm = () => run.end(0);
}

/**
 * Answers on each port of `SERVE_PORT_<port>` and `SERVE_TLS_PORT_<port>` with the text of the variable;
 * `--json-response`: with the method, too.
 */
export async function porter(run: AgnhostRun): Promise<void> {
  const { environment } = run.container;
  const isJson = run.args.has('json-response');
  const answer =
    (text: string): Answer =>
    (request, response) => {
      request.resume();
      // As Go finds out: markup, or a text.
      response.setHeader('Content-Type', `text/${text.startsWith('<') ? 'html' : 'plain'}; charset=utf-8`);
      response.end(isJson ? JSON.stringify({ Method: request.method, Body: text }) : text);
    };
  for (const [name, text] of environment) {
    const [, secure, number] = /^SERVE_(TLS_)?PORT_(\d+)$/.exec(name) ?? [];
    if (number === undefined) continue;
    if (secure === undefined) {
      await run.listen(Number(number), () => httpServer(answer(text)));
      continue;
    }
    const cert = await tlsFile(run.container, environment.get('CERT_FILE') ?? 'localhost.crt');
    const key = await tlsFile(run.container, environment.get('KEY_FILE') ?? 'localhost.key');
    await run.listen(Number(number), () => httpsServer({ cert, key }, answer(text)));
  }
}

/** The time that `liveness` is healthy. */
const healthyMs = 10_000;

/** Healthy for ten seconds. */
export async function liveness(run: AgnhostRun): Promise<void> {
  const started = performance.now();
  await run.listen(8080, () =>
    httpServer((request, response, { pathname, searchParams }) => {
      request.resume();
      const age = performance.now() - started;
      if (pathname === '/started') response.end(`${age / 1000}`);
      else if (pathname === '/redirect') {
        response.writeHead(302, { Location: headerValue(searchParams.get('loc') ?? '') }).end();
      } else if (age > healthyMs) response.writeHead(500).end(`error: ${age / 1000}`);
      else response.end('ok');
    }),
  );
}

/** A web server of the container's files. */
export async function testWebserver(run: AgnhostRun): Promise<void> {
  await run.listen(run.args.number('port', 80), () =>
    httpServer(async (request, response, { pathname }) => {
      request.resume();
      response.setHeader('Cache-Control', 'private');
      response.setHeader('Access-Control-Allow-Origin', '*');
      const { status, type, body } = await fileAnswer(run.container, pathname);
      response.writeHead(status, { 'Content-Type': type }).end(body);
    }),
  );
}

/** The answer of Go's file server: a file, 404, or for a folder a list that is left empty. */
export async function fileAnswer(
  { readFile }: Pick<AgnhostRun['container'], 'readFile'>,
  pathname: string,
): Promise<{ readonly status: number; readonly type: string; readonly body: string | Buffer }> {
  const page = (status: number, body: string): { status: number; type: string; body: string } => ({
    ...{ status, type: status === 200 ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8', body },
  });
  if (pathname.endsWith('/')) return page(200, '<pre>\n</pre>\n');
  let path: string;
  try {
    path = decodeURIComponent(pathname);
  } catch {
    return page(400, 'invalid URL path\n');
  }
  try {
    const body = await readFile(path);
    return {
      status: 200,
      type: path.endsWith('.html') ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8',
      body,
    };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code === 'EISDIR') return page(200, '<pre>\n</pre>\n');
    if (code === 'EACCES') return page(403, '403 Forbidden\n');
    return page(404, '404 page not found\n');
  }
}

/** Resets each connection that has sent more than one byte; others are closed. */
export async function tcpReset(run: AgnhostRun): Promise<void> {
  const port = run.args.number('port', 8080);
  await run.listen(port, () =>
    createTcpServer((socket) => {
      const from = `${socket.remoteAddress ?? ''}:${socket.remotePort ?? 0}`;
      socket.once('data', (chunk) => {
        if (chunk.length > 1) socket.resetAndDestroy();
        else socket.end();
        run.print(`TCP request from ${from}`);
      });
    }),
  );
  run.print(`Serving on port ${port}.`);
  run.onTerm = () => run.end(0);
}

/** `/whoami`: the client's address; `/checknosnat?ips=A:PORT,B:PORT`: whether those see this Pod by its own. */
export async function noSnatTest(run: AgnhostRun): Promise<void> {
  const { host, environment } = run.container;
  const [pod, node] = ['POD_IP', 'NODE_IP'].map((name) => {
    const address = environment.get(name);
    if (address === undefined) throw new Error(`${name} env var was not present in the environment`);
    if (isIP(address) !== 0) return address;
    throw new Error(`${name} env var contained "${address}", which is not an IP address`);
  });
  const wrong = async (target: string): Promise<string | undefined> => {
    const [, address = '', port = '80'] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(target) ?? [];
    try {
      const answer = await bodyFrom(host, address, Number(port), 'whoami');
      const [, seen = ''] = /^\[?(.*?)\]?:\d+$/.exec(answer) ?? [];
      if (seen === pod) return undefined;
      const not = `Returned ip "${seen}" != my Pod ip "${pod}"`;
      if (seen === node) return `${not}, == my Node ip "${node}" - SNAT`;
      return `${not} or my Node ip "${node}" - SNAT to unexpected ip (possible SNAT through unexpected interface on the way into another node)`;
    } catch (error) {
      return errorMessage(error);
    }
  };
  await run.listen(run.args.number('port', 8080), () =>
    httpServer(async (request, response, { pathname, searchParams }) => {
      request.resume();
      const { remoteAddress = '', remotePort = 0 } = request.socket;
      if (pathname === '/whoami') {
        const shown = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
        response.end(`${shown}:${remotePort}`);
      } else if (pathname === '/checknosnat') {
        const targets = (searchParams.get('ips') ?? '').split(',');
        const errors = (await Promise.all(targets.map(wrong))).filter((each) => each !== undefined);
        response.writeHead(errors.length > 0 ? 500 : 200).end(errors.join(', '));
      } else response.writeHead(404).end('404 page not found\n');
    }),
  );
}

/** Lines like those of kube-apiserver's log: `--log-lines-total` of them within `--run-duration`. */
export function logsGenerator(run: AgnhostRun): Promise<void> {
  const total = run.args.number('log-lines-total', run.args.number('t', 0));
  const durationMs = run.args.durationMs('run-duration', run.args.durationMs('d', 0));
  if (total <= 0 || durationMs < 0) {
    run.container.write('stderr', `Invalid total number of lines: ${total}\n`);
    run.end(255);
    return Promise.resolve();
  }
  const methods = ['GET', 'PUT', 'POST'];
  let line = 0;
  const print = (): void => {
    const now = new Date().toISOString();
    const stamp = `I${now.slice(5, 7)}${now.slice(8, 10)} ${now.slice(11, 23)}000`;
    const path = `/api/v1/namespaces/ns${line % 3}/pods/pod-${line}`;
    run.print(`${stamp}       1 logs_generator.go:76] ${line} ${methods[line % 3]} ${path} ${200 + line}`);
    if (++line < total) return;
    clearInterval(timer);
    run.end(0);
  };
  const timer = setInterval(print, Math.max(1, durationMs / total));
  run.keep({ close: () => clearInterval(timer) });
  return Promise.resolve();
}

/** Waits for SIGTERM. */
export function pause(run: AgnhostRun): Promise<void> {
  run.print('Paused');
  run.onTerm = () => run.end(0);
  return Promise.resolve();
}

/** The time that a client has to take the end before the connection is closed. */
const closingMs = 500;

/**
 * `agnhost port-forward-tester`: sends chunks to one client, and ends (test/images/agnhost/port-forward-tester). The
 * settings are in the environment.
 */
export async function portForwardTester(run: AgnhostRun): Promise<void> {
  const { environment } = run.container;
  const text = (name: string): string => environment.get(name) ?? '';
  const number = (name: string): number => {
    const value = Number(text(name));
    if (text(name) !== '' && Number.isInteger(value)) return value;
    throw new Error(`Error parsing ${name} ${JSON.stringify(text(name))}`);
  };
  const bind = text('BIND_ADDRESS');
  const addresses = bind === '' || bind === 'localhost' ? ['127.0.0.1'] : [bind];
  const [chunks, size, intervalMs] = [number('CHUNKS'), number('CHUNK_SIZE'), number('CHUNK_INTERVAL')];
  let isTaken = false;
  const serve = async (socket: Socket): Promise<number> => {
    run.print('Accepted client connection');
    const expected = text('EXPECTED_CLIENT_DATA');
    const [chunk = '', why = 'EOF'] = expected === '' ? [] : await received(socket);
    if (chunk.length !== expected.length) {
      run.print(
        `Expected to read ${expected.length} bytes from client, but got ${chunk.length} instead. err=${why}`,
      );
      return 2;
    }
    if (chunk !== expected) {
      run.print(`Expect to read ${JSON.stringify(expected)}, but got ${JSON.stringify(chunk)}. err=<nil>`);
      return 3;
    }
    if (expected !== '') run.print('Received expected client data');
    socket.resume();
    for (let i = 0; i < chunks; i++) {
      if (i > 0) await delay(intervalMs);
      socket.write('x'.repeat(size));
    }
    run.print('Shutting down connection');
    socket.end();
    await delay(closingMs);
    run.print('Done');
    return 0;
  };
  await run.listen(
    number('BIND_PORT'),
    () =>
      createTcpServer({ allowHalfOpen: true }, (socket) => {
        // Upstream accepts one; later ones are not served.
        if (isTaken) return;
        isTaken = true;
        serve(socket).then(
          (code) => run.end(code),
          (error: unknown) => {
            run.print(String(error));
            run.end(1);
          },
        );
      }),
    addresses,
  );
}

/** The first bytes of a client; none, and why, where it has ended before. */
async function received(socket: Socket): Promise<readonly [chunk: string, why?: string]> {
  const ended = once(socket, 'end').then((): readonly [string, string] => ['', 'EOF']);
  const came = once(socket, 'data').then((chunks: unknown[]): readonly [string] => [String(chunks[0])]);
  return await Promise.race([came, ended]).catch((error: unknown): readonly [string, string] => [
    '',
    errorMessage(error),
  ]);
}
