import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTransport } from '../../src/client/connect.ts';
import { isRecord } from '../../src/objects/json.ts';
import { call } from '../support/test-server.ts';
import { writeProgram, writeStandIns } from './stand-ins/directory.ts';
import { startAssets } from './targets/assets.ts';

const cidrs = '10.96.0.0/16,fd00:10:96::/112';

/** The target KUBEBUILDER_ASSETS without its programs: what is started, with what, and what is left afterwards. */
describe('etcd and kube-apiserver of KUBEBUILDER_ASSETS', () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'servicenet-assets-test-'));
    process.env['STAND_IN_NOTES'] = directory;
    process.env['ARTIFACTS'] = join(directory, 'artifacts');
    writeStandIns(directory);
  });

  afterEach(() => {
    delete process.env['STAND_IN_NOTES'];
    delete process.env['ARTIFACTS'];
    rmSync(directory, { recursive: true });
  });

  const flagsOf = (program: string): Record<string, unknown> => {
    const flags: unknown = JSON.parse(readFileSync(join(directory, `${program}.json`), 'utf8'));
    return isRecord(flags) ? flags : {};
  };

  test('are started with the flags of envtest, answer an administrator, and leave their logs only', async () => {
    const target = await startAssets(directory, cidrs);
    const work = dirname(target.kubeconfig);
    try {
      const client = await createTransport({ kind: 'kubeconfig', path: target.kubeconfig });
      const me = await call(client, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      });
      await client.close();
      expect(me.body['status']).toMatchObject({
        userInfo: { username: 'system:servicenet-e2e', groups: ['system:masters', 'system:authenticated'] },
      });
      const etcd = flagsOf('etcd');
      expect(etcd).toMatchObject({ 'unsafe-no-fsync': 'true', 'data-dir': join(work, 'etcd') });
      expect(etcd['advertise-client-urls']).toBe(etcd['listen-client-urls']);
      const apiserver = flagsOf('kube-apiserver');
      expect(apiserver).toMatchObject({
        'etcd-servers': etcd['listen-client-urls'],
        'bind-address': '127.0.0.1',
        'service-cluster-ip-range': cidrs,
        'authorization-mode': 'RBAC',
        // No controller of service accounts runs: Pods would need one that is not made.
        'disable-admission-plugins': 'ServiceAccount',
        'allow-privileged': 'true',
        'service-account-issuer': `https://127.0.0.1:${String(apiserver['secure-port'])}/`,
        'cert-dir': work,
      });
    } finally {
      await target.stop();
    }
    expect(existsSync(work)).toBe(false);
    const logs = readdirSync(join(directory, 'artifacts')).sort();
    expect(logs).toEqual(['etcd.log', 'kube-apiserver.log']);
    expect(readFileSync(join(directory, 'artifacts', 'kube-apiserver.log'), 'utf8')).toContain(
      'Serving securely',
    );
  });

  test('a server that ends at once says why, and nothing goes on', async () => {
    writeProgram(directory, 'kube-apiserver', 'echo "Error: invalid argument" >&2; exit 1');
    await expect(startAssets(directory, cidrs)).rejects.toThrow('Error: invalid argument');
    const { 'listen-client-urls': url, 'data-dir': data } = flagsOf('etcd');
    await expect(fetch(`${String(url)}/health`)).rejects.toThrow('fetch failed');
    expect(existsSync(dirname(String(data)))).toBe(false);
  });

  test('a program that is not there is named', async () => {
    rmSync(join(directory, 'etcd'));
    await expect(startAssets(directory, cidrs)).rejects.toThrow(`${join(directory, 'etcd')} `);
  });
});
