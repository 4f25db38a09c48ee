import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import { dispatchers } from '../../src/client/dispatchers.ts';
import { HttpTransport } from '../../src/client/http-transport.ts';
import { kubeConfigIdentity } from '../../src/client/credentials/kubeconfig.ts';
import type { Transport } from '../../src/client/transport.ts';
import { ConnectProxy } from '../support/connect-proxy.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { type Exchange, ScriptedServer } from '../support/scripted-server.ts';
import { SocksProxy } from '../support/socks-proxy.ts';

const validity = { now: new Date() };
const authority = createCertificateAuthority('test', validity);
const served = issueServerCertificate(authority, 'server', ['127.0.0.1'], validity);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

let server: ScriptedServer;
let folder: string;
let clock: FakeClock;
const cleanups: (() => Promise<void>)[] = [];

/** The modules of client-node take a while to load: not within the time of a test. */
beforeAll(() => import('@kubernetes/client-node'));

beforeEach(async () => {
  server = await ScriptedServer.start({
    cert: served.certificate,
    key: served.key,
    ca: authority.certificate,
  });
  folder = await mkdtemp(join(tmpdir(), 'servicenet-'));
  clock = new FakeClock(Date.now());
});

afterEach(async () => {
  vi.unstubAllEnvs();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await server.close();
  await rm(folder, { recursive: true });
});

/** A transport by a kubeconfig with this user and these additions to the cluster. */
async function connect(user: object, cluster: object = {}): Promise<Transport> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: server.url,
          'certificate-authority-data': base64(authority.certificate),
          ...cluster,
        },
      },
    ],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  const path = join(folder, 'config');
  await writeFile(path, JSON.stringify(config));
  const identity = await kubeConfigIdentity({ kind: 'kubeconfig', path }, clock);
  const transport = new HttpTransport(identity, dispatchers(identity.proxy));
  cleanups.push(() => transport.close());
  return transport;
}

/** Sends one request and answers it; gives what the server saw of it. */
async function seen(transport: Transport): Promise<Exchange> {
  const answer = transport.request('GET', '/version');
  const request = await Promise.race([
    server.next(),
    answer.then(() => Promise.reject(new Error('no request'))),
  ]);
  request.json(200, {});
  await answer;
  return request;
}

async function bearer(transport: Transport): Promise<string | undefined> {
  return (await seen(transport)).headers.authorization;
}

describe('an exec plugin', () => {
  const v1 = 'client.authentication.k8s.io/v1';
  /** A plugin that notes each run and answers what the file `status` says. */
  async function plugin(status: object, settings: object = {}): Promise<object> {
    await answers(status);
    const script = [
      '#!/bin/sh',
      'cd "$(dirname "$0")"',
      'echo "$1 $FROM_CONFIG" >> runs',
      'printf %s "$KUBERNETES_EXEC_INFO" > exec-info',
      'cat status',
    ];
    await writeFile(join(folder, 'plugin'), script.join('\n'));
    await chmod(join(folder, 'plugin'), 0o755);
    const env = [{ name: 'FROM_CONFIG', value: 'yes' }];
    return { exec: { apiVersion: v1, command: './plugin', args: ['get-token'], env, ...settings } };
  }
  const answers = (status: object): Promise<void> =>
    writeFile(join(folder, 'status'), JSON.stringify({ kind: 'ExecCredential', apiVersion: v1, status }));
  const runs = async (): Promise<string[]> =>
    (await readFile(join(folder, 'runs'), 'utf8')).trim().split('\n');
  const inSeconds = (seconds: number): string => new Date(clock.now() + seconds * 1000).toISOString();

  it('gives a token, which is kept until it runs out', async () => {
    const user = await plugin({ token: 'one', expirationTimestamp: inSeconds(90) });
    const transport = await connect(user);
    expect(await bearer(transport)).toBe('Bearer one');
    await answers({ token: 'two' });
    await clock.advance(80_000);
    expect(await bearer(transport)).toBe('Bearer one');
    await clock.advance(11_000);
    expect(await bearer(transport)).toBe('Bearer two');
    await clock.advance(3_600_000);
    expect(await bearer(transport)).toBe('Bearer two');
    expect(await runs(), 'arguments and environment of the kubeconfig').toEqual([
      'get-token yes',
      'get-token yes',
    ]);
  });

  it('is asked again when the server refuses its token, but not again and again', async () => {
    const transport = await connect(await plugin({ token: 'one' }));
    expect(await bearer(transport)).toBe('Bearer one');
    await answers({ token: 'two' });
    await clock.advance(20_000);
    const answer = transport.request('GET', '/version');
    (await server.next()).status(401, 'Unauthorized');
    const again = await server.next();
    expect(again.headers.authorization).toBe('Bearer two');
    again.json(200, {});
    await answer;
    for (let i = 0; i < 5; i++) {
      const refused = transport.request('GET', '/version').catch(() => undefined);
      (await server.next()).status(401, 'Unauthorized');
      (await server.next()).status(401, 'Unauthorized');
      await refused;
    }
    expect(await runs()).toHaveLength(2);
  });

  it('gives a certificate', async () => {
    const issued = issueClientCertificate(authority, 'by-plugin', ['group'], validity);
    const user = await plugin({ clientCertificateData: issued.certificate, clientKeyData: issued.key });
    expect((await seen(await connect(user))).clientName).toBe('by-plugin');
  });

  it('runs once for all that ask at once, and gets the cluster if it asks for it', async () => {
    const extension = { name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } };
    const transport = await connect(await plugin({ token: 'one' }, { provideClusterInfo: true }), {
      extensions: [extension],
    });
    const answers = Array.from({ length: 10 }, () => transport.request('GET', '/version'));
    for (const _ of answers) (await server.next()).json(200, {});
    await Promise.all(answers);
    expect(await runs()).toHaveLength(1);
    expect(JSON.parse(await readFile(join(folder, 'exec-info'), 'utf8'))).toEqual({
      kind: 'ExecCredential',
      apiVersion: v1,
      spec: {
        interactive: false,
        cluster: {
          server: server.url,
          'certificate-authority-data': base64(authority.certificate),
          config: { audience: 'a' },
        },
      },
    });
  });

  it.each([
    ['is not there', { command: './absent', installHint: 'get it' }, {}, /cannot be run: .*ENOENT\nget it/],
    ['fails', { command: 'sh', args: ['-c', 'echo why >&2; exit 3'] }, {}, /failed \(exit code 3\): why/],
    ['says nothing', { command: 'true' }, {}, 'did not return an ExecCredential'],
    ['has no credential', {}, {}, 'neither a token nor a certificate'],
    ['has half a credential', {}, { clientKeyData: 'k' }, 'only one of certificate and key'],
    ['speaks another version', { apiVersion: `${v1}beta1` }, { token: 't' }, 'the kubeconfig says'],
    ['wants to ask a person', { interactiveMode: 'Always' }, { token: 't' }, 'needs interactive input'],
  ])('that %s is an error of each request, in words', async (_, settings, status, message) => {
    const transport = await connect(await plugin(status, settings));
    await expect(transport.request('GET', '/version')).rejects.toThrow(message);
  });

  it('of an unknown kind is an error at once', async () => {
    await expect(
      connect(await plugin({}, { apiVersion: 'client.authentication.k8s.io/v1alpha1' })),
    ).rejects.toThrow('the exec plugin of the kubeconfig is not valid');
  });
});

describe('OpenID Connect', () => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const idToken = (name: string, seconds: number): string =>
    `${part({ alg: 'RS256' })}.${part({ name, exp: Math.floor(clock.now() / 1000) + seconds })}.signature`;
  let provider: ScriptedServer;
  const user = (token: string) => ({
    'auth-provider': {
      name: 'oidc',
      config: {
        'idp-issuer-url': provider.url,
        'idp-certificate-authority-data': base64(authority.certificate),
        'client-id': 'me',
        'client-secret': 'mine',
        'id-token': token,
        'refresh-token': 'r1',
      },
    },
  });
  /** The provider answers one refresh. */
  async function grant(answer: object): Promise<URLSearchParams> {
    const discovery = await provider.next();
    expect(discovery.path).toBe('/.well-known/openid-configuration');
    discovery.json(200, { issuer: provider.url, token_endpoint: `${provider.url}/token` });
    const request = await provider.next();
    expect(request).toMatchObject({ method: 'POST', path: '/token' });
    request.json(200, { access_token: 'a', token_type: 'Bearer', ...answer });
    return new URLSearchParams(request.body);
  }

  beforeEach(async () => {
    provider = await ScriptedServer.start({ cert: served.certificate, key: served.key });
    cleanups.push(() => provider.close());
  });

  it('uses the ID token while it lasts, then refreshes it, with whatever refresh token came last', async () => {
    const first = idToken('first', 600);
    const transport = await connect(user(first));
    expect(await bearer(transport)).toBe(`Bearer ${first}`);

    await clock.advance(600_000);
    const second = idToken('second', 600);
    const form = grant({ id_token: second, refresh_token: 'r2' });
    expect(await bearer(transport)).toBe(`Bearer ${second}`);
    expect(Object.fromEntries(await form)).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'r1',
      client_id: 'me',
      client_secret: 'mine',
    });

    for (const [name, used] of [
      ['third', 'r2'],
      // A provider that does not rotate refresh tokens sends none.
      ['fourth', 'r2'],
    ] as const) {
      await clock.advance(600_000);
      const next = idToken(name, 600);
      const rotated = grant({ id_token: next });
      expect(await bearer(transport)).toBe(`Bearer ${next}`);
      expect((await rotated).get('refresh_token')).toBe(used);
    }
  });

  it('says what the provider said when it refuses', async () => {
    const transport = await connect(user(idToken('old', -1)));
    const failed = expect(transport.request('GET', '/version')).rejects.toThrow(
      /openid-configuration answered 403: go away/,
    );
    (await provider.next()).text(403, 'go away');
    await failed;
  });
});

describe('files that others rotate', () => {
  it('reads a token file beside the kubeconfig again after a minute, and at once after a 401', async () => {
    const path = join(folder, 'token');
    await writeFile(path, 'one\n');
    const transport = await connect({ tokenFile: 'token' });
    expect(await bearer(transport)).toBe('Bearer one');
    await writeFile(path, 'two\n');
    expect(await bearer(transport)).toBe('Bearer one');
    await clock.advance(60_000);
    expect(await bearer(transport)).toBe('Bearer two');
    await writeFile(path, 'three\n');
    const answer = transport.request('GET', '/version');
    (await server.next()).status(401, 'Unauthorized');
    const again = await server.next();
    expect(again.headers.authorization).toBe('Bearer three');
    again.json(200, {});
    await answer;
  });

  it('shows a new client certificate on new connections, while a watch goes on over the old one', async () => {
    const write = async (name: string): Promise<void> => {
      const issued = issueClientCertificate(authority, name, ['group'], validity);
      await writeFile(join(folder, 'client.crt'), issued.certificate);
      await writeFile(join(folder, 'client.key'), issued.key);
    };
    await write('first');
    await writeFile(join(folder, 'ca.crt'), authority.certificate);
    const transport = await connect(
      { 'client-certificate': 'client.crt', 'client-key': 'client.key' },
      { 'certificate-authority-data': undefined, 'certificate-authority': 'ca.crt' },
    );
    expect((await seen(transport)).clientName).toBe('first');
    const stream = transport.stream('/watch');
    const watch = (await server.next()).watch();
    const chunks = (await stream).chunks[Symbol.asyncIterator]();
    await write('second');
    await clock.advance(60_000);
    expect((await seen(transport)).clientName).toBe('second');
    watch.raw('still here');
    expect(String((await chunks.next()).value)).toBe('still here');
    watch.end();
    expect((await chunks.next()).done).toBe(true);
  });
});

describe('a user of a kubeconfig', () => {
  it('is impersonated with uid, groups and extras', async () => {
    const { headers } = await seen(
      await connect({
        token: 't',
        as: 'jane',
        'as-uid': '7',
        'as-groups': ['a', 'b'],
        'as-user-extra': { 'Example.com/Scope': ['x'] },
      }),
    );
    expect(headers).toMatchObject({
      authorization: 'Bearer t',
      'impersonate-user': 'jane',
      'impersonate-uid': '7',
      'impersonate-group': 'a, b',
      'impersonate-extra-example.com%2fscope': 'x',
    });
  });

  it('may be missing', async () => {
    expect(await bearer(await connect({}))).toBeUndefined();
    const path = join(folder, 'config');
    const text = (await readFile(path, 'utf8')).replace('"user":"u"', '"user":"nobody"');
    await writeFile(path, text);
    const identity = await kubeConfigIdentity({ kind: 'kubeconfig', path }, clock);
    const transport = new HttpTransport(identity, dispatchers(identity.proxy));
    cleanups.push(() => transport.close());
    expect(await bearer(transport)).toBeUndefined();
  });
});

describe('a kubeconfig of several files', () => {
  it('is read by client-node, with what one file says', async () => {
    const issued = issueClientCertificate(authority, 'me', ['group'], validity);
    const crt = join(folder, 'client.crt');
    await writeFile(crt, issued.certificate);
    const users = [
      { token: 't' },
      { username: 'name', password: 'secret' },
      { 'client-certificate': 'client.crt', 'client-key-data': base64(issued.key), token: 'both' },
    ];
    const file = join(folder, 'config');
    const second = join(folder, 'second');
    await writeFile(second, JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' }));
    for (const user of users) {
      await connect(user, { 'tls-server-name': 'server', 'insecure-skip-tls-verify': true });
      const one = await kubeConfigIdentity({ kind: 'kubeconfig', path: file }, clock);
      vi.stubEnv('KUBECONFIG', [file, second].join(delimiter));
      const several = await kubeConfigIdentity({ kind: 'kubeconfig' }, clock);
      expect(await one.credentials()).toEqual(await several.credentials());
      expect([one.server, one.proxy]).toEqual([several.server, several.proxy]);
    }
  });

  it.each([
    [
      'with a provider that is none of ours',
      { 'auth-provider': { name: 'gcp', config: {} } },
      {},
      'Token is expired',
    ],
    ['without a server', {}, { server: '' }, 'cluster.server is missing'],
  ])('%s is left to client-node, as its errors', async (_, user, cluster, error) => {
    await expect(connect(user, cluster).then((transport) => transport.request('GET', '/'))).rejects.toThrow(
      error,
    );
  });
});

describe('a proxy', () => {
  let proxy: ConnectProxy;
  const target = (): string => new URL(server.url).host;

  beforeEach(async () => {
    proxy = await ConnectProxy.start();
    cleanups.push(() => proxy.close());
  });

  it('of the kubeconfig gets a tunnel, through which both sides see each other’s certificates', async () => {
    const issued = issueClientCertificate(authority, 'behind', ['group'], validity);
    const transport = await connect(
      {
        'client-certificate-data': base64(issued.certificate),
        'client-key-data': base64(issued.key),
      },
      { 'proxy-url': proxy.url.replace('//', '//name:secret@') },
    );
    expect((await seen(transport)).clientName).toBe('behind');
    expect(proxy.tunnels).toEqual([target()]);
    expect(proxy.authorizations).toEqual([`Basic ${base64('name:secret')}`]);
    const stream = transport.stream('/watch');
    (await server.next()).watch();
    await stream;
    expect(proxy.tunnels, 'watches have connections of their own').toEqual([target(), target()]);
  });

  it('of the environment is used, except for what NO_PROXY names', async () => {
    vi.stubEnv('https_proxy', undefined);
    vi.stubEnv('no_proxy', undefined);
    vi.stubEnv('NO_PROXY', '');
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    await seen(await connect({ token: 't' }));
    expect(proxy.tunnels).toEqual([target()]);
    vi.stubEnv('NO_PROXY', '127.0.0.1');
    await seen(await connect({ token: 't' }));
    expect(proxy.tunnels).toHaveLength(1);
  });

  it('that does not answer is an error with its code', async () => {
    const transport = await connect({ token: 't' }, { 'proxy-url': proxy.url });
    await proxy.close();
    await expect(transport.request('GET', '/version')).rejects.toMatchObject({ name: 'ConnectionError' });
  });

  it('of the kubeconfig that speaks SOCKS5 carries requests and watches, with name and password', async () => {
    const socks = await SocksProxy.start();
    cleanups.push(() => socks.close());
    const issued = issueClientCertificate(authority, 'behind', ['group'], validity);
    const transport = await connect(
      {
        'client-certificate-data': base64(issued.certificate),
        'client-key-data': base64(issued.key),
      },
      { 'proxy-url': socks.url.replace('//', '//name:p%40ss@') },
    );
    for (let i = 0; i < 10; i++) expect((await seen(transport)).clientName).toBe('behind');
    const stream = transport.stream('/watch');
    (await server.next()).watch();
    await stream;
    expect(new Set(socks.tunnels)).toEqual(new Set([target()]));
    expect(socks.tunnels.length, 'connections are kept').toBeLessThan(10);
    expect(new Set(socks.authorizations)).toEqual(new Set(['name:p@ss']));
    await socks.close();
    await expect(transport.request('GET', '/version')).rejects.toMatchObject({ name: 'ConnectionError' });
  });

  it('of the environment may speak SOCKS5', async () => {
    const socks = await SocksProxy.start();
    cleanups.push(() => socks.close());
    vi.stubEnv('https_proxy', undefined);
    vi.stubEnv('no_proxy', undefined);
    vi.stubEnv('NO_PROXY', '');
    vi.stubEnv('HTTPS_PROXY', socks.url);
    await seen(await connect({ token: 't' }));
    expect(socks.tunnels).toEqual([target()]);
    expect(socks.authorizations).toEqual([undefined]);
  });

  it.each(['socks4://127.0.0.1:1080', 'ftp://127.0.0.1', 'not a url', '127.0.0.1:8080'])(
    'that cannot be reached is refused when the kubeconfig is read: %s',
    async (url) => {
      await expect(connect({ token: 't' }, { 'proxy-url': url })).rejects.toThrow(
        'the proxy-url of the cluster "c" is not an http, https or socks5 URL',
      );
    },
  );
});
