import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../../src/tls/certificates.ts';
import { createTransport } from '../../../src/client/connect.ts';
import { Child } from '../child.ts';
import type { Target } from './target.ts';

const user = 'system:servicenet-e2e';

/**
 * etcd and kube-apiserver as controller-runtime's envtest starts them (`pkg/internal/testing/controlplane`): from one
 * directory, on loopback, with a client certificate of system:masters. Nothing else of a cluster runs there.
 */
export async function startAssets(directory: string, serviceCidrs: string): Promise<Target> {
  const work = mkdtempSync(join(tmpdir(), 'servicenet-envtest-'));
  const [etcdPort, apiPort] = await Promise.all([freePort(), freePort()]);
  const url = `https://127.0.0.1:${apiPort}`;
  const children = new Map<string, Child>();
  const stop = async (): Promise<void> => {
    for (const [name, child] of [...children].reverse()) {
      await child.end();
      keepLog(name, child.output);
    }
    rmSync(work, { recursive: true, force: true });
  };
  try {
    const kubeconfig = writeCredentials(work, url);
    const etcd = new Child(join(directory, 'etcd'), etcdFlags(join(work, 'etcd'), etcdPort));
    children.set('etcd', etcd);
    await etcd.until(() => answers(`http://127.0.0.1:${etcdPort}/health`));
    const flags = apiserverFlags({ work, etcdPort, apiPort, serviceCidrs });
    const apiserver = new Child(join(directory, 'kube-apiserver'), flags);
    children.set('kube-apiserver', apiserver);
    const client = await createTransport({ kind: 'kubeconfig', path: kubeconfig });
    try {
      await apiserver.until(() =>
        client.request('GET', '/readyz').then(
          () => true,
          () => false,
        ),
      );
    } finally {
      await client.close();
    }
    return {
      ...{ name: 'kube-apiserver', kubeconfig, endpoints: 'none', controllers: 'suite', stop },
      identity: 'service-account',
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What they wrote, where `ARTIFACTS` names a directory for it. */
function keepLog(name: string, text: string): void {
  const directory = process.env['ARTIFACTS'];
  if (directory === undefined || directory === '') return;
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${name}.log`), text);
}

function etcdFlags(data: string, port: number): string[] {
  return [
    `--data-dir=${data}`,
    '--unsafe-no-fsync',
    '--listen-peer-urls=http://127.0.0.1:0',
    `--listen-client-urls=http://127.0.0.1:${port}`,
    `--advertise-client-urls=http://127.0.0.1:${port}`,
  ];
}

/** Where things are. */
interface AssetPlaces {
  readonly work: string;
  readonly etcdPort: number;
  readonly apiPort: number;
  readonly serviceCidrs: string;
}

function apiserverFlags({ work, etcdPort, apiPort, serviceCidrs }: AssetPlaces): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${apiPort}`,
    `--tls-cert-file=${join(work, 'apiserver.crt')}`,
    `--tls-private-key-file=${join(work, 'apiserver.key')}`,
    `--client-ca-file=${join(work, 'ca.crt')}`,
    `--cert-dir=${work}`,
    `--service-cluster-ip-range=${serviceCidrs}`,
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
    `--service-account-issuer=https://127.0.0.1:${apiPort}/`,
    `--service-account-key-file=${join(work, 'service-accounts.pub')}`,
    `--service-account-signing-key-file=${join(work, 'service-accounts.key')}`,
  ];
}

/** Certificates, keys and a kubeconfig; answers the path of the latter. */
function writeCredentials(work: string, url: string): string {
  const validity = { now: new Date() };
  const authority = createCertificateAuthority('servicenet-e2e', validity);
  const hosts = ['127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
  const server = issueServerCertificate(authority, 'kube-apiserver', hosts, validity);
  const client = issueClientCertificate(authority, user, ['system:masters'], validity);
  const accounts = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const files = new Map<string, string>([
    ['ca.crt', authority.certificate],
    ['apiserver.crt', server.certificate],
    ['apiserver.key', server.key],
    ['service-accounts.key', accounts.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['service-accounts.pub', accounts.publicKey.export({ type: 'spki', format: 'pem' }).toString()],
    [
      'kubeconfig',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          {
            name: 'e2e',
            cluster: { server: url, 'certificate-authority-data': base64(authority.certificate) },
          },
        ],
        users: [
          {
            name: user,
            user: {
              'client-certificate-data': base64(client.certificate),
              'client-key-data': base64(client.key),
            },
          },
        ],
        contexts: [{ name: 'e2e', context: { cluster: 'e2e', user } }],
        'current-context': 'e2e',
      }),
    ],
  ]);
  for (const [name, text] of files) writeFileSync(join(work, name), text, { mode: 0o600 });
  return join(work, 'kubeconfig');
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
