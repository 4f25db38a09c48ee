import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { isRecord } from '../../../src/objects/json.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { TurnsInside } from '../support/turns-inside.ts';

describePods('streams of containers', () => {
  let pods: PodNetwork;
  let kubectl: Kubectl;
  let turns: TurnsInside;
  const running: ChildProcess[] = [];

  beforeAll(async () => {
    turns = new TurnsInside();
    pods = await PodNetwork.start({ containers: 'processes', nodes: 1 });
    kubectl = new Kubectl(pods.server.kubeconfig);
    await pods.pod('web', 'web', { ports: [{ containerPort: 8080 }] });
    const print = 'echo two >&2; echo one; sleep 0.3; echo three; exec sleep 1000';
    await pods.pod('box', 'box', { image: 'busybox', command: ['sh', '-c', print], stdin: true });
    await pods.pod('cat', 'cat', { image: 'busybox', command: ['cat'], stdin: true });
    for (const app of ['web', 'box', 'cat']) await pods.running(app, 1);
  });
  afterAll(async () => {
    for (const child of running) child.kill();
    kubectl.dispose();
    turns.close();
    await pods.server.stop();
  });
  beforeEach(async () => {
    await turns.longest();
  });
  afterEach(async () => {
    // Milliseconds of CPU.
    expect(await turns.longest(), 'a turn of the process of the cluster network').toBeLessThan(200);
  });

  it('exec runs a program, with its output, its input and its exit code', async () => {
    const script = 'echo out; echo err >&2; cat; exit 3';
    expect(await kubectl.run(['exec', '-i', 'box', '--', 'sh', '-c', script], 'input')).toEqual({
      code: 3,
      stdout: 'out\ninput',
      stderr: 'err\ncommand terminated with exit code 3\n',
    });
    expect(await kubectl.fails(['exec', 'box', '--', 'nothing-like-it'])).toContain('exit code 127');
    expect(await kubectl.fails(['exec', 'box', '-c', 'other', '--', 'ls'])).toContain(
      'container other is not valid for pod box',
    );
    expect(await kubectl.fails(['exec', 'nobody', '--', 'ls'])).toContain('pods "nobody" not found');
  });

  it('exec carries 10 MB in and back unchanged', async () => {
    const sent = randomBytes(10_000_000);
    const child = kubectl.start(['exec', '-i', 'box', '--', 'cat']);
    running.push(child);
    const hash = createHash('sha256');
    child.stdout?.on('data', (chunk: Buffer) => hash.update(chunk));
    child.stdin?.end(sent);
    await once(child, 'close');
    expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'));
  });

  it('exec gives a terminal of the size of the user', async () => {
    // As the clients of Python, Go and browsers write them.
    const query = ['stdin=True', 'stdout=true', 'tty=1', 'stderr=False'];
    const program = ['sh', '-c', 'read line; stty size; test -t 1 && echo terminal; tty; echo x >$(tty)'];
    const words = program.map((word) => `command=${encodeURIComponent(word)}`);
    const { output, status } = await command(`box/exec?${[...query, ...words].join('&')}`, '\n');
    expect(output.replaceAll('\r', '').trim().split('\n').slice(-4)).toEqual([
      ...['17 91', 'terminal', '/dev/pts/0', 'x'],
    ]);
    expect(status).toEqual({ metadata: {}, status: 'Success' });
  });

  it('exec outlives a storm of sizes, channels that there are not, empty messages and a command of 1 MB', async () => {
    const path = (words: readonly string[], query: string): string =>
      `box/exec?${query}&${words.map((word) => `command=${encodeURIComponent(word)}`).join('&')}`;
    const { output, status } = await command(
      path(['sh', '-c', 'read line; stty size'], 'stdin=1&stdout=1&tty=1'),
      '\n',
      (socket) => {
        for (let i = 1; i <= 20_000; i++) socket.send(Buffer.from(`\u0004{"Width":${i},"Height":1}`));
        for (const junk of ['', '\u0009x', '\u0004', '\u0004{"Width":-1}', '\u0004[]'])
          socket.send(Buffer.from(junk));
        socket.send(Buffer.from([255, 7]));
      },
    );
    expect(output).toContain('17 91');
    expect(status).toEqual({ metadata: {}, status: 'Success' });
    const long = connect(path(['echo', 'x'.repeat(1024 * 1024)], 'stdout=1'));
    const refused = await new Promise<number | undefined>((resolve) => {
      long.on('error', () => resolve(undefined));
      long.on('unexpected-response', (_, response) => resolve(response.statusCode));
    });
    expect([undefined, 414, 431]).toContain(refused);
    expect(await kubectl.ok(['exec', 'box', '--', 'echo', 'still'])).toBe('still\n');
  });

  it('a reader that stops holds the program back, and nothing is kept for it', async () => {
    const script = 'i=0; while head -c 1000000 /dev/zero; do i=$((i+1)); echo $i >/tmp/written; done';
    const words = ['sh', '-c', script].map((word) => `command=${encodeURIComponent(word)}`);
    const socket = connect(`box/exec?stdout=1&${words.join('&')}`);
    await once(socket, 'open');
    socket.pause();
    const written = async (): Promise<number> =>
      Number(await kubectl.ok(['exec', 'box', '--', 'sh', '-c', 'cat /tmp/written 2>/dev/null || echo 0']));
    let before = -1;
    const held = await until(written, (now) => {
      const isHeld = now === before && now > 0;
      before = now;
      return isHeld;
    });
    // Megabytes: what buffers of sockets and pipes on the way hold.
    expect(held).toBeLessThan(64);
    socket.resume();
    await until(written, (now) => now > held + 50);
    // In the middle of a write: the program is held back, and its container goes on.
    socket.terminate();
    before = -1;
    const last = await until(written, (now) => {
      const isHeld = now === before;
      before = now;
      return isHeld;
    });
    expect(last).toBeGreaterThan(held);
  });

  const connect = (path: string): WebSocket =>
    new WebSocket(
      `${pods.server.url}${pods.path('pods')}/${path}`.replace('https', 'wss'),
      'v5.channel.k8s.io',
      {
        ca: pods.server.ca,
        headers: { authorization: `Bearer ${pods.server.token}` },
      },
    );

  /** Connects to a program by WebSocket, with a terminal of 91 × 17, and types something; to its end. */
  async function command(
    path: string,
    typed: string,
    before: (socket: WebSocket) => void = () => undefined,
  ): Promise<{ output: string; status: unknown }> {
    const socket = connect(path);
    let output = '';
    let status = '';
    socket.on('message', (data: Buffer) => {
      if (data[0] === 1) output += data.subarray(1).toString();
      if (data[0] === 3) status += data.subarray(1).toString();
    });
    await once(socket, 'open');
    before(socket);
    socket.send(Buffer.concat([Buffer.from([4]), Buffer.from('{"Width":91,"Height":17}')]));
    socket.send(Buffer.concat([Buffer.from([0]), Buffer.from(typed)]));
    await once(socket, 'close');
    return { output, status: JSON.parse(status) };
  }

  it('cp copies a file there and back', async () => {
    const file = kubectl.file('there', 'content\n');
    await kubectl.ok(['cp', file, 'box:/tmp/there']);
    expect(await kubectl.ok(['exec', 'box', '--', 'cat', '/tmp/there'])).toBe('content\n');
    await kubectl.ok(['cp', 'box:/tmp/there', `${file}-back`]);
  });

  it('attach connects to the program that runs', async () => {
    const child = kubectl.start(['attach', '-i', 'cat']);
    running.push(child);
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stdin?.write('hello\n');
    await until(
      () => Promise.resolve(output),
      (text) => text.includes('hello'),
    );
    child.kill();
  });

  it('run -i passes its input to a container, which ends with it', async () => {
    const script = 'cat && echo "stdin closed"';
    const run = ['run', 'once', '-i', '--rm', '--image=busybox', '--restart=Never', '--', 'sh', '-c', script];
    const { code, stdout } = await kubectl.run(run, 'abc\n');
    expect(stdout).toMatch(/^abc\nstdin closed\n(pod "once" deleted.*\n)?$/);
    expect(code).toBe(0);
  });

  it('attach gives the terminal of a container, of the size of the user, until it ends', async () => {
    const container = { image: 'busybox', command: ['sh'], stdin: true, stdinOnce: true, tty: true };
    await pods.pod('shell', 'shell', container, { spec: { restartPolicy: 'Never' } });
    await pods.running('shell', 1);
    const query = ['stdin', 'stdout', 'tty'].map((name) => `${name}=true`).join('&');
    const { output, status } = await command(
      `shell/attach?${query}`,
      // The size comes by a channel of its own, maybe after the input.
      'until stty size | grep 17; do sleep 0.1; done; test -t 0 && echo is a tty; exit 5\n',
    );
    const lines = output.replaceAll('\r', '').split('\n');
    expect(lines).toEqual(expect.arrayContaining(['17 91', 'is a tty']));
    expect(status).toMatchObject({ status: 'Success' });
    expect(await kubectl.ok(['logs', 'shell'])).toContain('is a tty');
    const failing = [
      'run',
      'failing',
      '-i',
      '--image=busybox',
      '--restart=Never',
      '--',
      'sh',
      '-c',
      'cat; exit 42',
    ];
    expect(await kubectl.run(failing, 'abc\n')).toMatchObject({ code: 42, stdout: 'abc\n' });
  });

  it('debug adds a container to a Pod, in its network, and runs a program there', async () => {
    const script = 'hostname; cat /proc/net/tcp6 /proc/net/tcp | wc -l; exit';
    const debug = ['debug', 'box', '-i', '--image=busybox', '--profile=general', '--', 'sh'];
    const { stdout } = await kubectl.run(debug, `${script}\n`);
    expect(stdout).toMatch(/^box\n\d+\n/m);
    expect(
      await kubectl.ok(['get', 'pod', 'box', '-o', 'jsonpath={.spec.ephemeralContainers[*].image}']),
    ).toBe('busybox');
  });

  it('logs have every option', async () => {
    const logs = async (...args: string[]): Promise<string> => kubectl.ok(['logs', 'box', ...args]);
    const lines = async (): Promise<string[]> => (await logs()).split('\n').toSorted();
    expect(await until(lines, (all) => all.length === 4)).toEqual(['', 'one', 'three', 'two']);
    expect(await logs('--tail=1')).toBe('three\n');
    expect(await logs('--limit-bytes=2')).toHaveLength(2);
    expect(await logs('--timestamps', '--tail=1')).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z three\n$/);
    // Previous logs would be refused.
    const fromPython = `${pods.path('pods')}/box/log?tailLines=1&timestamps=True&previous=False`;
    const python = await pods.server.client.request('GET', fromPython);
    expect(python.bytes.toString()).toMatch(/Z three\n$/);
    expect(await logs('--since=1h', '--all-containers')).toContain('one\n');
    expect(await logs('--since-time=2100-01-01T00:00:00Z')).toBe('');
    expect(await kubectl.fails(['logs', 'box', '--previous'])).toContain(
      'previous terminated container "main" in pod "box" not found',
    );
    const refused = await pods.call('GET', `${pods.path('pods')}/box/log?tailLines=-1`);
    expect(refused).toMatchObject({
      status: 422,
      body: { details: { causes: [{ field: 'tailLines', reason: 'FieldValueInvalid' }] } },
    });
  });

  it('logs follow a container to its end', async () => {
    const command = ['sh', '-c', 'for i in 1 2 3; do echo line $i; sleep 0.2; done'];
    const spec = { restartPolicy: 'Never' };
    await pods.pod('short', 'short', { image: 'busybox', command }, { spec });
    const text = await until(
      async () => kubectl.run(['logs', '-f', 'short']),
      ({ code }) => code === 0,
    );
    expect(text.stdout).toBe('line 1\nline 2\nline 3\n');
  });

  it('port-forward leads to ports of the Pod, many at once, and says what nothing listens on', async () => {
    const child = kubectl.start(['port-forward', 'web', ':8080']);
    running.push(child);
    const port = await until(
      () => firstPort(child),
      (found) => found > 0,
    );
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () => (await fetch(`http://127.0.0.1:${port}/`)).json()),
    );
    expect(answers.every((answer) => isRecord(answer) && answer['pod'] === 'web')).toBe(true);
    child.kill();
    const refused = kubectl.start(['port-forward', 'web', ':99']);
    running.push(refused);
    let errors = '';
    refused.stderr?.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const other = await until(
      () => firstPort(refused),
      (found) => found > 0,
    );
    await fetch(`http://127.0.0.1:${other}/`).catch(() => undefined);
    await until(
      () => Promise.resolve(errors),
      (text) => text.includes('dial tcp4 127.0.0.1:99: connect: connection refused'),
    );
  });

  it('are refused without an upgrade, and where nothing runs', async () => {
    const path = `${pods.path('pods')}/box/exec?command=ls&stdout=true`;
    expect(await pods.call('GET', path)).toMatchObject({
      status: 400,
      body: { message: 'Upgrade request required' },
    });
    const first = [{ name: 'first', image: 'busybox', command: ['sleep', '1000'] }];
    await pods.pod('starting', 'starting', { image: 'busybox' }, { spec: { initContainers: first } });
    await until(
      () => kubectl.run(['exec', 'starting', '-c', 'first', '--', 'true']),
      ({ code }) => code === 0,
    );
    const refused = 'error: Internal error occurred: unable to upgrade connection: ';
    expect(await kubectl.fails(['exec', 'starting', '-c', 'main', '--', 'ls'])).toContain(
      `${refused}container not found ("main")`,
    );
    expect(await kubectl.fails(['attach', 'starting', '-c', 'main'])).toContain(
      `${refused}container main not found in pod starting_default`,
    );
    const overSpdy = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' };
    const old = await kubectl.run(['exec', 'starting', '-c', 'main', '--', 'ls'], '', overSpdy);
    expect(old.stderr).toContain('unable to upgrade connection: container not found ("main")');
    expect(await kubectl.fails(['logs', 'starting', '-c', 'main'])).toContain(
      'Error from server (BadRequest): container "main" in pod "starting" is waiting to start: PodInitializing',
    );
  });

  it('top shows what Pods and nodes use', async () => {
    await expect.poll(() => kubectl.ok(['get', 'apiservice', 'v1beta1.metrics.k8s.io'])).toContain('True');
    const annotations = { 'servicenet.dev/cpu-usage': '250m', 'servicenet.dev/memory-usage': '100Mi' };
    const patch = JSON.stringify({ metadata: { annotations } });
    await kubectl.ok(['patch', 'pod', 'web', '-p', patch]);
    await expect
      .poll(async () => (await kubectl.ok(['top', 'pod', 'web', '--no-headers'])).split(/\s+/))
      .toEqual(['web', '250m', '100Mi', '']);
    const [node, cpu] = (await kubectl.ok(['top', 'nodes', '--no-headers'])).split(/\s+/);
    expect(node).toBe('node-1');
    expect(Number.parseInt(cpu ?? '', 10)).toBeGreaterThan(250);
    expect(await kubectl.fails(['top', 'pod', 'nobody'])).toContain('"default/nobody" not found');
  });
});

const printed = new WeakMap<ChildProcess, { text: string }>();

/** The local port that `kubectl port-forward` has printed; 0: none yet. */
function firstPort(child: ChildProcess): Promise<number> {
  let seen = printed.get(child);
  if (seen === undefined) {
    const heard = { text: '' };
    seen = heard;
    printed.set(child, heard);
    child.stdout?.on('data', (chunk: Buffer) => (heard.text += chunk.toString()));
  }
  return Promise.resolve(Number(/127\.0\.0\.1:(\d+) ->/.exec(seen.text)?.[1] ?? 0));
}
