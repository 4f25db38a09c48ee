import { afterAll, beforeAll, expect, it } from 'vitest';
import { call } from '../../support/test-server.ts';
import { describePods, PodNetwork, until } from '../support/pod-network.ts';

const combined =
  /^\S+ - - \[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET \/cart\?a=1 HTTP\/1\.1" (?:200|404) (\d+) "-" "tester\\x22\/1"$/m;

describePods('Stand-in servers', () => {
  let pods: PodNetwork;
  const from = { node: 'node-1' };

  beforeAll(async () => {
    pods = await PodNetwork.start({ nodes: 1, containers: 'auto' });
  });
  afterAll(() => pods.server.stop());

  async function addressOf(name: string): Promise<string> {
    const [pod] = await pods.running(name, 1);
    return pod?.status.podIP ?? '';
  }

  async function logOf(name: string): Promise<string> {
    const { client } = pods.server;
    return (await client.request('GET', `${pods.path('pods')}/${name}/log`)).bytes.toString();
  }

  /** The status, a header and the body of an answer. */
  async function answerOf(url: string, ...flags: string[]): Promise<string> {
    return await pods.curl(from, url, '-i', '--path-as-is', ...flags);
  }

  it('write an access log, as the server of their image does', async () => {
    await pods.pod('web', 'web', { image: 'nginx:1.29' });
    await pods.pod('other', 'other', { image: 'example.com/shop:2', ports: [{ containerPort: 80 }] });
    const agent = ['-A', 'tester"/1'];
    await pods.pod('tested', 'tested', { image: 'httpd:2.4' });
    for (const name of ['web', 'tested', 'other']) {
      const url = `http://${await addressOf(name)}/cart?a=1`;
      const body = await pods.curl(from, url, ...agent);
      const wanted = name !== 'other' ? combined : /^GET \/cart\?a=1 200 (\d+) from \S+ "tester\\x22\/1"$/m;
      const log = await until(
        () => logOf(name),
        (lines) => wanted.test(lines),
      );
      expect(Number(wanted.exec(log)?.[1])).toBe(body.length);
    }
  });

  it('show browsers a page, and send others what they sent', async () => {
    await pods.pod('page', 'page', { ports: [{ containerPort: 80 }] });
    const url = `http://${await addressOf('page')}/a?b=<i>`;
    const page = await answerOf(url, '-H', 'Accept: text/html,*/*;q=0.8', '-H', 'X-Forwarded-For: 192.0.2.7');
    expect(page).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*Content-Type: text\/html; charset=utf-8\r\n/i);
    expect(page, 'so that a reload may reach another Pod').toMatch(/^Connection: close\r$/im);
    expect(page).toContain('<h1>page</h1>');
    expect(page).toContain('<th>X-Forwarded-For</th><td>192.0.2.7</td>');
    expect(page).toContain('/a?b=&lt;i&gt;');
    const posted = JSON.parse(
      await pods.curl(from, url, '-d', 'hello=you', '-H', 'Accept: text/html'),
    ) as object;
    expect(posted).toMatchObject({ pod: 'page', method: 'POST', body: 'hello=you' });
    expect(JSON.parse(await pods.curl(from, url))).not.toHaveProperty('body');
  });

  it('serve the volumes at the document root of their image, and nothing else', async () => {
    const data = { 'index.html': '<h1>from a ConfigMap</h1>', 'style.css': 'p {}' };
    await call(pods.server.client, 'POST', pods.path('configmaps'), {
      body: { metadata: { name: 'site' }, data },
    });
    const at = (image: string, mountPath: string, more: object = {}) => ({
      image,
      volumeMounts: [{ name: 'site', mountPath, ...more }],
    });
    const spec = {
      volumes: [
        { name: 'site', configMap: { name: 'site' } },
        { name: 'machine', hostPath: { path: '/etc' } },
      ],
    };
    const root = '/usr/share/nginx/html';
    await pods.pod('site', 'site', at('nginx:1.29', root), { spec });
    await pods.pod('apache', 'apache', at('httpd:2.4', '/usr/local/apache2/htdocs'), { spec });
    await pods.pod('one', 'one', at('nginx', `${root}/index.html`, { subPath: 'index.html' }), { spec });
    const machine = { image: 'nginx', volumeMounts: [{ name: 'machine', mountPath: root }] };
    await pods.pod('machine', 'machine', machine, { spec });

    const site = `http://${await addressOf('site')}`;
    expect(await answerOf(`${site}/`)).toMatch(
      /^HTTP\/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text\/html\r\n[^]*<h1>from a ConfigMap<\/h1>$/,
    );
    expect(await answerOf(`${site}/style.css`)).toMatch(/Content-Type: text\/css\r\n[^]*p \{\}$/);
    expect(await answerOf(`${site}/hostname`)).toMatch(/^HTTP\/1.1 404 Not Found\r\n/);
    for (const path of ['/../../../../../etc/passwd', '/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd']) {
      expect(await answerOf(`${site}${path}`)).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    }
    expect(await pods.curl(from, `${site}/healthz`)).toBe('ok\n');
    expect(await pods.curl(from, `http://${await addressOf('apache')}/`)).toBe(data['index.html']);
    expect(await pods.curl(from, `http://${await addressOf('one')}/`)).toBe(data['index.html']);
    expect(await pods.get(from, `http://${await addressOf('machine')}/passwd`)).toMatchObject({
      pod: 'machine',
    });
    expect(await logOf('site')).toMatch(/"GET \/hostname HTTP\/1.1" 404 \d+ /);
  });

  it('serve what another container writes, and no link that leads out', async () => {
    const root = '/usr/share/nginx/html';
    const script = [
      'echo written >/html/page.txt',
      'ln -s page.txt /html/inside.txt',
      'ln -s /etc/passwd /html/outside.txt',
      'mkdir /html/folder',
      'ln -s ../.. /html/folder/above',
      'mkfifo /html/pipe',
      'exec sleep 3600',
    ].join('; ');
    const writer = {
      ...{ name: 'writer', image: 'busybox', command: ['sh', '-c', script] },
      volumeMounts: [{ name: 'html', mountPath: '/html' }],
    };
    const server = { name: 'web', image: 'nginx', volumeMounts: [{ name: 'html', mountPath: root }] };
    await call(pods.server.client, 'POST', pods.path('pods'), {
      body: {
        metadata: { name: 'written', labels: { app: 'written' } },
        spec: { volumes: [{ name: 'html', emptyDir: {} }], containers: [server, writer] },
      },
    });
    const site = `http://${await addressOf('written')}`;
    const statusOf = async (path: string) =>
      await pods.curl(from, `${site}${path}`, '-o', '/dev/null', '-w', '%{http_code}');
    await until(
      () => statusOf('/pipe'),
      (status) => status === '403',
    );
    expect(await pods.curl(from, `${site}/inside.txt`)).toBe('written\n');
    for (const path of ['/outside.txt', '/folder/', '/folder/above/', '/folder/above/hosts']) {
      expect(await statusOf(path), path).toBe('403');
    }
    expect(await statusOf('/folder')).toBe('301');
    expect(await statusOf('/')).toBe('403');
  });

  it('say who they are by TCP, UDP and gRPC', async () => {
    const ports = [{ containerPort: 6379 }, { containerPort: 53, protocol: 'UDP' }];
    await pods.pod('who', 'who', { image: 'redis:8', ports });
    const address = await addressOf('who');
    const line = `Pod default/who (${address}) on node-1: a stand-in of servicenet for redis:8\n`;
    const say = async (protocol: string, port: number, words: string) => {
      const script = `exec 3<>/dev/${protocol}/${address}/${port}; ${words}`;
      return (await pods.server.run(['bash', '-c', script], from)).stdout;
    };
    expect(await say('udp', 53, `printf 'hi\\n' >&3; head -n 2 <&3`)).toBe(`hi\n${line}`);
    const introduced = `printf '%s' '${line}' >&3; printf 'hi\\n' >&3; head -n 2 <&3`;
    expect(await say('udp', 53, introduced), 'it answers no introduction').toBe(`hi\n${line}`);
    const node = async (script: string) =>
      (await pods.server.run([process.execPath, '-e', script], from)).stdout;
    const ask = async (input: string) =>
      await node(
        `require('node:net').connect(6379, '${address}').on('data', (b) => process.stdout.write(b)).end('${input}')`,
      );
    expect(await ask('PING\\n')).toBe(`PING\n${line}`);
    expect(await ask('')).toBe(line);
    expect(await ask('\\x01\\x02'), 'no text: an echo').toBe('\x01\x02');
    const grpc = async (path: string): Promise<unknown> =>
      JSON.parse(
        await node(`
          const session = require('node:http2').connect('http://${address}:6379');
          const headers = { ':method': 'POST', ':path': '${path}', 'content-type': 'application/grpc' };
          const stream = session.request(headers);
          const chunks = [];
          let trailers;
          stream.on('trailers', (all) => (trailers = all)).on('data', (chunk) => chunks.push(...chunk));
          stream.on('end', () => {
            console.log(JSON.stringify([trailers['grpc-status'], trailers['grpc-message'], chunks]));
            session.close();
          });
          stream.end(Buffer.alloc(5));`),
      );
    expect(await grpc('/grpc.health.v1.Health/Check')).toEqual(['0', '', [0, 0, 0, 0, 2, 8, 1]]);
    expect(await grpc('/shop.Cart/Get')).toEqual(['12', line.trimEnd(), []]);
    const log = await until(
      () => logOf('who'),
      (lines) => lines.includes('/shop.Cart/Get'),
    );
    expect(log).toMatch(/^TCP connection from \S+$/m);
    expect(log).toMatch(/^UDP 3 bytes from \S+$/m);
    expect(log).toMatch(/^gRPC "\/shop.Cart\/Get" UNIMPLEMENTED from \S+ "-"$/m);
  });
});
