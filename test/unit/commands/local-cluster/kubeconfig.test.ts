import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createCertificateAuthority, issueServerCertificate } from '../../../../src/tls/certificates.ts';
import { kubeconfig } from '../../../../src/apiserver/pki/identity.ts';
import {
  checkKubeconfig,
  removeKubeconfig,
  writeKubeconfig,
} from '../../../../src/commands/local-cluster/kubeconfig.ts';

const now = new Date();
const authority = createCertificateAuthority('one', { now });
const { certificate: cert, key } = issueServerCertificate(authority, 'one', ['127.0.0.1'], { now });
const ofOther = createCertificateAuthority('other', { now }).certificate;

let folder = '';
let path = '';
const servers: Server[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'servicenet-kubeconfig-'));
  path = join(folder, 'kubeconfig');
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  rmSync(folder, { recursive: true });
});

/** Where a server listens. */
async function urlOf(server: Server): Promise<string> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  const address = server.address();
  return `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

const running = (): Promise<string> => urlOf(createServer({ cert, key }));
const of = (url: string, ca = authority.certificate): string =>
  kubeconfig({ url, ca, token: 'secret-token' });

test('a kubeconfig is for its owner, in a folder that is made', async () => {
  const made = join(folder, 'made', 'kubeconfig');
  await writeKubeconfig(made, 'text');
  expect(statSync(made).mode & 0o777).toBe(0o600);
  await removeKubeconfig(made, 'text');
  await removeKubeconfig(made, 'text');
  expect(readdirSync(join(folder, 'made'))).toEqual([]);
});

test('that of a server that runs is not replaced, whatever kubectl has written into it', async () => {
  const url = await running();
  await writeKubeconfig(path, of(url));
  const written = of(url).replace('namespace: default', 'namespace: shop');
  for (const text of [of(url), written]) {
    writeFileSync(path, text);
    const refused = `another servicenet up runs and has the kubeconfig ${path}, which leads to ${url}: stop it, or`;
    await expect(checkKubeconfig(path)).rejects.toThrow(refused);
    await expect(writeKubeconfig(path, of('https://127.0.0.1:1'))).rejects.toThrow(refused);
    expect(readFileSync(path, 'utf8')).toBe(text);
  }
  await removeKubeconfig(path, of(url));
  expect(readdirSync(folder)).toEqual([]);
});

test('nor that of one that is stopped: it accepts connections, and does not answer', async () => {
  const url = await urlOf(createTcpServer((socket) => socket.on('error', () => undefined)));
  writeFileSync(path, of(url));
  await expect(checkKubeconfig(path)).rejects.toThrow('another servicenet up runs');
}, 20_000);

test.each([
  ['nothing listens at its port', () => Promise.resolve(of('https://127.0.0.1:1'))],
  ['another server has its port', async () => of(await running(), ofOther)],
  [
    'a program without TLS has its port',
    async () => of(await urlOf(createTcpServer((socket) => socket.end('no\n')))),
  ],
])('that of a server that was killed is replaced, and said: %s', async (_, text) => {
  writeFileSync(path, await text());
  expect(await checkKubeconfig(path)).toMatchObject({ wasKilled: true });
  await writeKubeconfig(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(readdirSync(folder)).toEqual(['kubeconfig']);
});

test('an empty file is written to: mktemp made it', async () => {
  writeFileSync(path, '');
  expect(await checkKubeconfig(path)).toMatchObject({ wasKilled: false });
  await writeKubeconfig(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test.each([
  ['one with clusters of the user', of('https://127.0.0.1:1').replaceAll('servicenet', 'kind-home')],
  [
    'one that clusters were added to',
    of('https://127.0.0.1:1').replace('users:', '  - name: home\n    cluster: {}\nusers:'),
  ],
  ['another file', 'my notes: [\n'],
])('what no up has written is not replaced, and not removed: %s', async (_, text) => {
  writeFileSync(path, text);
  const refused = `cannot write the kubeconfig ${path}: another program has written it; --write-kubeconfig names`;
  await expect(checkKubeconfig(path)).rejects.toThrow(refused);
  await expect(writeKubeconfig(path, 'new')).rejects.toThrow(refused);
  await removeKubeconfig(path, of('https://127.0.0.1:1'));
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('no device, and no link to nothing', async () => {
  await expect(writeKubeconfig('/dev/null', 'new')).rejects.toThrow('it is no regular file');
  symlinkSync(join(folder, 'nowhere'), path);
  await expect(writeKubeconfig(path, 'new')).rejects.toThrow('it is no regular file');
});

test('of two that begin at once, one gets the path', async () => {
  writeFileSync(path, of('https://127.0.0.1:1'));
  const texts = [of(await running()), of(await running())];
  const results = await Promise.allSettled(texts.map((text) => writeKubeconfig(path, text)));
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(readFileSync(path, 'utf8')).toBe(texts[results.findIndex(({ status }) => status === 'fulfilled')]);
});
