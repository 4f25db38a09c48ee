import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serviceAccountSource } from '../../../src/client/connect.ts';

let folder: string;
const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'servicenet-pod-'));
  await writeFile(join(folder, 'token'), 'secret');
  await writeFile(join(folder, 'ca.crt'), 'authority');
  await mkdir(join(folder, 'home', '.kube'), { recursive: true });
  await writeFile(join(folder, 'home', '.kube', 'config'), '');
});
afterAll(() => rm(folder, { recursive: true }));

it.each([
  ['10.96.0.1', 'https://10.96.0.1:443'],
  ['api.example.com', 'https://api.example.com:443'],
  ['fd00:96::1', 'https://[fd00:96::1]:443'],
])('is the server at %s, with the files that the kubelet mounts', async (host, url) => {
  const variables = { ...pod, KUBERNETES_SERVICE_HOST: host };
  expect(await serviceAccountSource({ variables, folder })).toEqual({
    ...{ kind: 'endpoint', url, ca: Buffer.from('authority'), tokenFile: join(folder, 'token') },
  });
});

it.each([
  ['outside of Pods', {}, ''],
  ['without a token', pod, 'nowhere'],
  ['where KUBECONFIG names a file', { ...pod, KUBECONFIG: '/some/file' }, ''],
  ['where the home directory has a kubeconfig', { ...pod, HOME: 'home' }, ''],
])('is not there %s', async (_, variables, subfolder) => {
  const home = 'HOME' in variables ? { HOME: join(folder, 'home') } : {};
  const place = { variables: { ...variables, ...home }, folder: join(folder, subfolder) };
  expect(await serviceAccountSource(place)).toBeUndefined();
});
