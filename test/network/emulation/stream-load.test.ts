import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { heapUsed } from '../../support/heap.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { TurnWatchdog } from '../../support/watchdog/turns.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';
import { TurnsInside } from '../support/turns-inside.ts';
import { insideOf } from '../support/up-process.ts';

const mebibyte = 1024 * 1024;

describePods('many and slow streams of containers', () => {
  let pods: PodNetwork;
  let kubectl: Kubectl;
  let turns: TurnsInside;
  const open: WebSocket[] = [];

  beforeAll(async () => {
    turns = new TurnsInside();
    pods = await PodNetwork.start({ containers: 'processes', nodes: 1 });
    kubectl = new Kubectl(pods.server.kubeconfig);
    await pods.pod('web', 'web', { ports: [{ containerPort: 8080 }] });
    await pods.pod('box', 'box', { image: 'busybox', command: ['sleep', '1000'] });
    for (const app of ['web', 'box']) await pods.running(app, 1);
  });
  afterAll(async () => {
    for (const socket of open) socket.terminate();
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

  function connect(path: string, protocol = 'v5.channel.k8s.io'): WebSocket {
    const url = `${pods.server.url}${pods.path('pods')}/${path}`.replace('https', 'wss');
    const headers = { authorization: `Bearer ${pods.server.token}` };
    const socket = new WebSocket(url, protocol, { ca: pods.server.ca, headers });
    socket.on('error', () => undefined);
    open.push(socket);
    return socket;
  }

  const exec = (pod: string, ...words: readonly string[]): WebSocket =>
    connect(`${pod}/exec?stdout=1&${words.map((word) => `command=${encodeURIComponent(word)}`).join('&')}`);
  const forward = (pod: string, port: number): WebSocket =>
    connect(`${pod}/portforward?ports=${port}`, 'v4.channel.k8s.io');

  /** What comes by a channel until the connection is closed; ports are announced by two bytes. */
  async function heard(socket: WebSocket, channel: number): Promise<string> {
    const parts: Buffer[] = [];
    socket.on('message', (message: Buffer) => {
      if (message[0] === channel) parts.push(message.subarray(1));
    });
    await once(socket, 'close');
    return Buffer.concat(parts).toString();
  }

  const ask = (socket: WebSocket, path: string): void =>
    socket.send(Buffer.from(`\0GET ${path} HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n`));

  it('100 port-forwards at once each carry what is theirs, in short turns', async () => {
    const sockets = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = forward('web', 8080);
        await once(socket, 'open');
        return socket;
      }),
    );
    const watchdog = new TurnWatchdog();
    const answers = await Promise.all(
      sockets.map(async (socket, i) => {
        const answer = heard(socket, 0);
        ask(socket, `/mine-${i}`);
        return await answer;
      }),
    );
    const longest = watchdog.longest();
    watchdog.stop();
    const right = answers.filter(
      (text, i) => text.includes('HTTP/1.1 200') && text.includes(`"path":"/mine-${i}"`),
    );
    expect(right).toHaveLength(100);
    // Milliseconds of CPU.
    expect(longest).toBeLessThan(200);
  });

  it('port-forward and exec end when their Pod does, with what a kubelet says', async () => {
    await pods.pod('brief', 'brief', { ports: [{ containerPort: 8080 }] });
    const script = 'echo begun; exec sleep 1000';
    await pods.pod('script', 'script', { image: 'busybox', command: ['sleep', '1000'] });
    for (const app of ['brief', 'script']) await pods.running(app, 1);
    const forwarded = forward('brief', 8080);
    await once(forwarded, 'message');
    const running = exec('script', 'sh', '-c', script);
    let output = '';
    running.on('message', (message: Buffer) => {
      if (message[0] === 1) output += message.subarray(1).toString();
    });
    await until(
      () => Promise.resolve(output),
      (text) => text === 'begun\n',
    );
    const status = heard(running, 3);
    const closed = Promise.all([once(forwarded, 'close'), once(running, 'close')]);
    for (const name of ['brief', 'script']) await pods.delete('pods', name);
    await closed;
    expect(JSON.parse(await status)).toMatchObject({
      status: 'Failure',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '137' }] },
    });
    const late = forward('brief', 8080);
    const [, response] = (await once(late, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(404);
    expect(await kubectl.ok(['exec', 'box', '--', 'echo', 'still'])).toBe('still\n');
  });

  it('attach and logs hold nothing for clients that do not read, and the Pod ends all the same', async () => {
    const script =
      'i=0; while head -c 100000 /dev/zero | tr "\\0" x; do i=$((i+1)); echo $i > /count/written; done';
    const volumeMounts = [{ name: 'count', mountPath: '/count' }];
    const container = { image: 'busybox', command: ['sh', '-c', script], volumeMounts };
    const volumes = [{ name: 'count', emptyDir: {} }];
    await pods.pod('endless', 'endless', container, { spec: { volumes } });
    const [pod] = await pods.running('endless', 1);
    const uid = pod?.metadata.uid ?? '';
    const written = async (): Promise<number> => {
      const file = `/run/pods/${uid}/volumes/count/written`;
      return Number((await pods.server.run(['cat', file], { node: 'node-1' })).stdout);
    };
    await until(written, (count) => count > 0);
    const before = memoryOf();
    const watchdog = new TurnWatchdog();
    const slow = connect('endless/attach?stdout=1');
    await once(slow, 'open');
    slow.pause();
    let last = -1;
    let times = 0;
    const heldAt = await until(written, (now) => {
      times = now === last ? times + 1 : 0;
      last = now;
      return times === 3;
    });
    // Programs and logs go on once that client is gone.
    slow.terminate();
    await until(written, (now) => now > heldAt + 20);
    const log = `${pods.server.url}${pods.path('pods')}/endless/log?follow=true`;
    const headers = { authorization: `Bearer ${pods.server.token}` };
    const followers = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const request = get(log, { ca: pods.server.ca, headers, agent: false });
        request.on('error', () => undefined);
        // Its body is not read.
        await once(request, 'response');
        return request;
      }),
    );
    const passed = await written();
    await until(written, (now) => now > passed + 100);
    const longest = watchdog.longest();
    watchdog.stop();
    expect(longest).toBeLessThan(200);
    // Each log that is followed would have brought 10 MB and more. Garbage goes in a while, what is held does not.
    const growing = (): string[] =>
      Object.entries(memoryOf()).flatMap(([name, bytes]) => {
        const more = bytes - (before[name] ?? 0);
        return more < 64 * mebibyte ? [] : [`${name}: ${more}`];
      });
    await expect.poll(growing, { timeout: 60_000, interval: 500 }).toEqual([]);
    for (const request of followers) request.destroy();
    const attached = connect('endless/attach?stdout=1');
    await once(attached, 'open');
    attached.pause();
    await pods.delete('pods', 'endless');
    await until(
      async () => (await pods.server.run(['ls', '/run/pods'], { node: 'node-1' })).stdout,
      (uids) => !uids.includes(uid),
    );
  });

  it('logs of a program that prints faster than it is read end where they were, in short turns', async () => {
    // An empty line takes 40 bytes in a log.
    await pods.pod('hasty', 'hasty', { image: 'busybox', command: ['yes', ''] });
    await pods.running('hasty', 1);
    const lines = async (...flags: readonly string[]): Promise<number> =>
      (await kubectl.ok(['logs', 'hasty', ...flags])).length;
    await until(
      () => lines('--tail=100000'),
      (count) => count === 100_000,
    );
    expect(await lines('--tail=10')).toBe(10);
    expect(await lines('--limit-bytes=1000')).toBe(1000);
    // Three files of 4 MiB.
    const all = await lines();
    expect(all).toBeGreaterThan(10_000);
    expect(all).toBeLessThan((12 * mebibyte) / 40);
    await pods.delete('pods', 'hasty');
  });

  it('the log before the last restart is there, and a probe that hangs fails', async () => {
    const crashing = ['sh', '-c', 'echo attempt $(date +%s%N); exit 3'];
    await pods.pod('crashing', 'crashing', { image: 'busybox', command: crashing });
    const livenessProbe = {
      exec: { command: ['sleep', '1000'] },
      ...{ timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 1 },
    };
    await pods.pod('hanging', 'hanging', { image: 'busybox', command: ['sleep', '1000'], livenessProbe });
    const previous = await until(
      () => kubectl.run(['logs', 'crashing', '--previous', '--insecure-skip-tls-verify-backend']),
      ({ code }) => code === 0,
    );
    expect(previous.stdout).toMatch(/^attempt \d+\n$/);
    expect(await kubectl.ok(['logs', 'crashing'])).not.toBe(previous.stdout);
    const events = await until(
      () =>
        kubectl.ok(['get', 'events', '-o', 'jsonpath={range .items[*]}{.reason}: {.message}{"\\n"}{end}']),
      (text) => text.includes('Container main failed liveness probe'),
    );
    expect(events).toContain(
      'Unhealthy: Liveness probe failed: command timed out: "sleep 1000" timed out after 1s',
    );
    const restarts = ['get', 'pod', 'hanging', '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'];
    await until(
      () => kubectl.ok(restarts),
      (count) => Number(count) > 0,
    );
  });
});

/** Bytes that the API server, which is this process, has in use, and of memory of the cluster network. */
function memoryOf(): Readonly<Record<string, number>> {
  const inside = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${insideOf(process)}/status`, 'utf8'));
  return {
    'API server': heapUsed() + process.memoryUsage().external,
    'cluster network': Number(inside?.[1]) * 1024,
  };
}
