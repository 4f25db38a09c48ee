import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import {
  Attach,
  Cp,
  Exec,
  KubeConfig,
  Log,
  Metrics,
  PortForward,
  type V1Status,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

/** Streams as programs with `@kubernetes/client-node` open them. */
describePods('streams of client-node', () => {
  let pods: PodNetwork;
  let config: KubeConfig;
  let folder = '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'servicenet-client-node-'));
    pods = await PodNetwork.start({ containers: 'processes', nodes: 1 });
    config = new KubeConfig();
    config.loadFromString(pods.server.kubeconfig);
    await pods.pod('web', 'web', { ports: [{ containerPort: 8080 }] });
    const print = 'echo one; echo two; while read -r line; do echo "got $line"; done';
    await pods.pod('box', 'box', { image: 'busybox', command: ['sh', '-c', print], stdin: true });
    for (const app of ['web', 'box']) await pods.running(app, 1);
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
    await pods.server.stop();
  });

  /** Runs a program in the Pod `box`: what it prints, and the Status of its end. */
  async function exec(
    command: readonly string[],
    stdin: Readable | null,
  ): Promise<{ stdout: Buffer; stderr: string; status: V1Status }> {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const chunks: Buffer[] = [];
    stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    const printed = text(stderr);
    const status = await new Promise<V1Status>((resolve, reject) => {
      new Exec(config)
        .exec('default', 'box', 'main', [...command], stdout, stderr, stdin, false, resolve)
        .catch(reject);
    });
    return { stdout: Buffer.concat(chunks), stderr: await printed, status };
  }

  it('exec brings output, errors and the exit code', async () => {
    const { stdout, stderr, status } = await exec(['sh', '-c', 'echo out; echo err >&2; exit 3'], null);
    expect([stdout.toString(), stderr]).toEqual(['out\n', 'err\n']);
    expect(status).toMatchObject({
      status: 'Failure',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    });
    expect((await exec(['true'], null)).status.status).toBe('Success');
  });

  it('exec carries 10 MB in and back unchanged, and hears the end of its input', async () => {
    const sent = randomBytes(10_000_000);
    const { stdout } = await exec(['cat'], Readable.from(cut(sent, 64 * 1024)));
    const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    expect(hash(stdout)).toBe(hash(sent));
  });

  it('attach talks to the program of a container', async () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    let heard = '';
    stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    const socket = await new Attach(config).attach('default', 'box', 'main', stdout, null, stdin, false);
    stdin.write('hello\n');
    await until(
      () => Promise.resolve(heard),
      (all) => all.includes('got hello'),
    );
    socket.close();
  });

  it('logs are read whole, from their end, and followed', async () => {
    const read = async (options: object): Promise<string> => {
      const stream = new PassThrough();
      await new Log(config).log('default', 'box', 'main', stream, options);
      return await text(stream);
    };
    expect(await read({})).toMatch(/^one\ntwo\n/);
    expect((await read({ tailLines: 1 })).split('\n')).toHaveLength(2);
    expect(await read({ timestamps: true, limitBytes: 20 })).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.$/);
    const command = ['sh', '-c', 'echo begins; sleep 1; echo ends'];
    await pods.pod('short', 'short', { image: 'busybox', command }, { spec: { restartPolicy: 'Never' } });
    await pods.running('short', 1);
    const stream = new PassThrough();
    await new Log(config).log('default', 'short', 'main', stream, { follow: true });
    expect(await text(stream)).toBe('begins\nends\n');
  });

  it('a port is forwarded', async () => {
    const [output, input] = [new PassThrough(), new PassThrough()];
    let heard = '';
    output.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    await new PortForward(config).portForward('default', 'web', [8080], output, null, input);
    input.write('GET /hostname HTTP/1.0\r\n\r\n');
    await until(
      () => Promise.resolve(heard),
      (all) => all.endsWith('\r\n\r\nweb\n'),
    );
  });

  it('files are copied in and out', async () => {
    await writeFile(join(folder, 'greeting'), 'hello');
    await new Cp(config).cpToPod('default', 'box', 'main', folder, '/tmp');
    await until(
      async () => (await exec(['cat', '/tmp/greeting'], null)).stdout.toString(),
      (content) => content === 'hello',
    );
    await exec(['sh', '-c', 'echo back > /tmp/answer'], null);
    await new Cp(config).cpFromPod('default', 'box', 'main', 'answer', folder, '/tmp');
    const answer = async (): Promise<string> => readFile(join(folder, 'answer'), 'utf8').catch(() => '');
    await until(answer, (content) => content === 'back\n');
  });

  it('usage is measured', async () => {
    const metrics = new Metrics(config);
    const names = async (): Promise<string[]> =>
      (await metrics.getPodMetrics('default')).items.map(({ metadata }) => metadata.name).sort();
    await until(names, (all) => all.join() === 'box,web');
    expect((await metrics.getNodeMetrics()).items).toHaveLength(1);
  });
});

function* cut(bytes: Buffer, length: number): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}
