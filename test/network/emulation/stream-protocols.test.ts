import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { textAt } from '../../../src/objects/json.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

/** The protocols of clients other than a new kubectl: old subprotocols, SPDY/3.1, and logs over WebSocket. */
describePods('protocols of streams', () => {
  let pods: PodNetwork;
  let kubectl: Kubectl;
  const running: ChildProcess[] = [];
  /** Clients of Kubernetes before 1.31 know SPDY alone. */
  const overSpdy = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false', KUBECTL_PORT_FORWARD_WEBSOCKETS: 'false' };

  beforeAll(async () => {
    pods = await PodNetwork.start({ containers: 'processes', nodes: 1 });
    kubectl = new Kubectl(pods.server.kubeconfig);
    await pods.pod('web', 'web', { ports: [{ containerPort: 8080 }] });
    const command = ['sh', '-c', 'echo printed; exec cat'];
    await pods.pod('box', 'box', { image: 'busybox', command, stdin: true });
    for (const app of ['web', 'box']) await pods.running(app, 1);
  });
  afterAll(async () => {
    for (const child of running) child.kill();
    kubectl.dispose();
    await pods.server.stop();
  });

  function connect(path: string, protocols: string[]): WebSocket {
    const url = `${pods.server.url}${pods.path('pods')}/${path}`.replace('https', 'wss');
    const headers = { authorization: `Bearer ${pods.server.token}` };
    const socket = new WebSocket(url, protocols, { ca: pods.server.ca, headers });
    socket.on('error', () => undefined);
    return socket;
  }

  const script = ['sh', '-c', 'read line; echo "out $line"; echo err >&2; exit 3'];
  const words = script.map((word) => `command=${encodeURIComponent(word)}`).join('&');
  const failure = 'command terminated with non-zero exit code: exit status 3';

  it.each([
    ['channel.k8s.io', false, failure],
    ['base64.channel.k8s.io', true, failure],
    ['v4.channel.k8s.io', false, 'Status'],
    ['v4.base64.channel.k8s.io', true, 'Status'],
    ['v5.channel.k8s.io', false, 'Status'],
    ['', false, failure],
  ])('exec speaks %j', async (protocol, isBase64, report) => {
    const socket = connect(`box/exec?stdin=1&stdout=1&stderr=1&${words}`, protocol === '' ? [] : [protocol]);
    const heard = new Map<number, string>();
    socket.on('message', (data: Buffer, isBinary) => {
      expect(isBinary).toBe(!isBase64);
      const channel = (data[0] ?? 0) - (isBase64 ? 0x30 : 0);
      const bytes = data.subarray(1);
      const text = isBase64 ? Buffer.from(bytes.toString(), 'base64').toString() : bytes.toString();
      heard.set(channel, (heard.get(channel) ?? '') + text);
    });
    await once(socket, 'open');
    expect(socket.protocol).toBe(protocol);
    socket.send(isBase64 ? `0${Buffer.from('typed\n').toString('base64')}` : Buffer.from('\0typed\n'));
    await once(socket, 'close');
    expect([heard.get(1), heard.get(2)]).toEqual(['out typed\n', 'err\n']);
    const said = heard.get(3) ?? '';
    if (report !== 'Status') expect(said).toBe(report);
    else expect(JSON.parse(said)).toMatchObject({ reason: 'NonZeroExitCode', message: failure });
  });

  it('exec refuses subprotocols that it does not know, and SPDY without a version', async () => {
    const socket = connect(`box/exec?stdout=1&${words}`, ['v6.channel.k8s.io']);
    const answer = await new Promise<IncomingMessage>((resolve) =>
      socket.on('unexpected-response', (_request, response) => resolve(response)),
    );
    expect(answer.statusCode).toBe(403);
    const upgrade = async (...headers: string[]): Promise<string> => {
      const { hostname, port } = new URL(pods.server.url);
      const raw = connectTls({ host: hostname, port: Number(port), ca: pods.server.ca });
      const lines = [
        `POST ${pods.path('pods')}/box/exec?stdout=1&${words} HTTP/1.1`,
        ...[`Host: ${hostname}`, `Authorization: Bearer ${pods.server.token}`, 'Content-Length: 0'],
        ...['Connection: Upgrade', 'Upgrade: SPDY/3.1', ...headers, '', ''],
      ];
      raw.write(lines.join('\r\n'));
      let text = '';
      for await (const chunk of raw) text += String(chunk);
      return text;
    };
    expect(await upgrade()).toMatch(/^HTTP\/1\.1 400 [^]*X-Stream-Protocol-Version is required/);
    expect(await upgrade('X-Stream-Protocol-Version: v9')).toMatch(
      /^HTTP\/1\.1 403 [^]*client supports \[v9\], server accepts \[v4\.channel\.k8s\.io /,
    );
  });

  it.each([
    ['', false],
    ['v4.channel.k8s.io', false],
    ['v4.base64.channel.k8s.io', true],
  ])('port-forward speaks %j', async (protocol, isBase64) => {
    const socket = connect('web/portforward?ports=8080', protocol === '' ? [] : [protocol]);
    const chunks: Buffer[] = [];
    socket.on('message', (data: Buffer) => {
      if (data[0] !== (isBase64 ? 0x30 : 0)) return;
      chunks.push(isBase64 ? Buffer.from(data.subarray(1).toString(), 'base64') : data.subarray(1));
    });
    await once(socket, 'open');
    const asked = Buffer.from('GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n');
    socket.send(isBase64 ? `0${asked.toString('base64')}` : Buffer.concat([Buffer.from([0]), asked]));
    await once(socket, 'close');
    const heard = Buffer.concat(chunks);
    expect(heard.readUInt16LE()).toBe(8080);
    expect(heard.subarray(2).toString()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    [[], true, 'printed\n'],
    [['binary.k8s.io'], true, 'printed\n'],
    [['base64.binary.k8s.io'], false, 'cHJpbnRlZAo='],
  ])('logs come over WebSocket by %j', async (protocols, isBinary, text) => {
    const socket = connect('box/log', protocols);
    const heard: [string, boolean][] = [];
    socket.on('message', (data: Buffer, binary) => heard.push([data.toString(), binary]));
    const closed: unknown[] = await once(socket, 'close');
    expect([socket.protocol, closed[0]]).toEqual([protocols[0] ?? '', 1000]);
    // An empty message first.
    expect(heard).toEqual([
      ['', isBinary],
      [text, isBinary],
    ]);
  });

  it('exec over SPDY runs a program, with its output, its input and its exit code', async () => {
    const inside = 'echo out; echo err >&2; cat; exit 3';
    expect(await kubectl.run(['exec', '-i', 'box', '--', 'sh', '-c', inside], 'input', overSpdy)).toEqual({
      code: 3,
      stdout: 'out\ninput',
      stderr: 'err\ncommand terminated with exit code 3\n',
    });
    expect(await kubectl.ok(['exec', 'box', '--', 'echo', 'short'], '', overSpdy)).toBe('short\n');
    const missing = await kubectl.run(['exec', 'box', '--', 'nothing-like-it'], '', overSpdy);
    expect(missing.stderr).toContain('exit code 127');
    const other = await kubectl.run(['exec', 'nobody', '--', 'ls'], '', overSpdy);
    expect(other.stderr).toContain('pods "nobody" not found');
  });

  it('exec over SPDY carries 10 MB in and back unchanged', async () => {
    const sent = randomBytes(10_000_000);
    const child = kubectl.start(['exec', '-i', 'box', '--', 'cat'], overSpdy);
    running.push(child);
    const hash = createHash('sha256');
    child.stdout?.on('data', (chunk: Buffer) => hash.update(chunk));
    child.stdin?.end(sent);
    await once(child, 'close');
    expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'));
  });

  it('attach and cp work over SPDY', async () => {
    const child = kubectl.start(['attach', '-i', 'box'], overSpdy);
    running.push(child);
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stdin?.write('hello\n');
    await until(
      () => Promise.resolve(output),
      (text) => text.includes('hello'),
    );
    child.kill();
    const file = kubectl.file('there', 'content\n');
    await kubectl.ok(['cp', file, 'box:/tmp/there'], '', overSpdy);
    expect(await kubectl.ok(['exec', 'box', '--', 'cat', '/tmp/there'], '', overSpdy)).toBe('content\n');
  });

  it('port-forward over SPDY leads to ports of the Pod, and says what nothing listens on', async () => {
    const ports = async (child: ChildProcess): Promise<number> => {
      let printed = '';
      child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
      return until(
        () => Promise.resolve(Number(/127\.0\.0\.1:(\d+) ->/.exec(printed)?.[1] ?? 0)),
        (port) => port > 0,
      );
    };
    const child = kubectl.start(['port-forward', 'web', ':8080'], overSpdy);
    running.push(child);
    const port = await ports(child);
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (): Promise<unknown> =>
        (await fetch(`http://127.0.0.1:${port}/`)).json(),
      ),
    );
    expect(answers.map((answer) => textAt(answer, 'pod'))).toEqual(answers.map(() => 'web'));
    child.kill();
    const refused = kubectl.start(['port-forward', 'web', ':99'], overSpdy);
    running.push(refused);
    let errors = '';
    refused.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    await fetch(`http://127.0.0.1:${await ports(refused)}/`).catch(() => undefined);
    await until(
      () => Promise.resolve(errors),
      (text) => text.includes('dial tcp4 127.0.0.1:99: connect: connection refused'),
    );
  });
});
