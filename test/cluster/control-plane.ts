import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createCertificateAuthority,
  issueClientCertificate,
  issueServerCertificate,
} from '../../src/tls/certificates.ts';
import { machines, nodeNames, ranges } from './addresses.ts';
import { onMachine, run, start, until } from './processes.ts';
import { program, type ProgramName } from './programs.ts';

/** Of kube-apiserver. */
export const server = `https://${machines.cp.ipv4}:6443`;
const serviceRanges = `--service-cluster-ip-range=${ranges.services.join(',')}`;

/** Where the files of the cluster's certificates are. */
interface Credentials {
  readonly directory: string;
  /** Of the administrator. */
  readonly kubeconfig: string;
}

/** Writes the certificates, keys and kubeconfigs of a cluster into `directory`. */
function writeCredentials(directory: string): Credentials {
  mkdirSync(directory, { recursive: true });
  const validity = { now: new Date() };
  const ca = createCertificateAuthority('kubernetes', validity);
  const write = (name: string, text: string | Buffer): void =>
    writeFileSync(join(directory, name), text, { mode: 0o600 });
  write('ca.crt', ca.certificate);
  write('ca.key', ca.key.export({ type: 'pkcs8', format: 'pem' }));
  const tokens = generateKeyPairSync('rsa', { modulusLength: 2048 });
  write('sa.key', tokens.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  write('sa.pub', tokens.publicKey.export({ type: 'spki', format: 'pem' }));
  const pair = (name: string, { certificate, key }: { certificate: string; key: string }): void => {
    write(`${name}.crt`, certificate);
    write(`${name}.key`, key);
  };
  const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'localhost'];
  pair(
    'apiserver',
    issueServerCertificate(
      ca,
      'kube-apiserver',
      [
        ...names,
        'kubernetes.default.svc.cluster.local',
        ...['10.96.0.1', '127.0.0.1', machines.cp.ipv4, machines.cp.ipv6],
      ],
      validity,
    ),
  );
  pair('front-proxy', issueClientCertificate(ca, 'front-proxy', [], validity));
  const user = (file: string, name: string, groups: readonly string[] = []): void => {
    const { certificate, key } = issueClientCertificate(ca, name, groups, validity);
    pair(file, { certificate, key });
    const data = (text: string): string => Buffer.from(text).toString('base64');
    write(
      `${file}.conf`,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'rig', cluster: { server, 'certificate-authority-data': data(ca.certificate) } }],
        users: [
          {
            name: file,
            user: { 'client-certificate-data': data(certificate), 'client-key-data': data(key) },
          },
        ],
        contexts: [{ name: 'rig', context: { cluster: 'rig', user: file } }],
        'current-context': 'rig',
      }),
    );
  };
  user('admin', 'admin', ['system:masters']);
  user('kube-controller-manager', 'system:kube-controller-manager');
  user('kube-scheduler', 'system:kube-scheduler');
  user('kube-proxy', 'system:kube-proxy');
  for (const node of nodeNames) user(`kubelet-${node}`, `system:node:${node}`, ['system:nodes']);
  return { directory, kubeconfig: join(directory, 'admin.conf') };
}

/**
 * Starts etcd and kube-apiserver, which is not ready yet, at the address of the machine `cp`.
 *
 * @param begin starts a program with its words.
 */
export function startApiServer(
  directory: string,
  begin: (name: ProgramName, words: readonly [string, ...string[]]) => void,
): Credentials {
  const credentials = writeCredentials(join(directory, 'pki'));
  const pki = credentials.directory;
  begin('etcd', [
    program('etcd'),
    ...[`--data-dir=${join(directory, 'etcd')}`, '--unsafe-no-fsync', '--log-level=warn'],
    ...['--listen-client-urls=http://127.0.0.1:2379', '--advertise-client-urls=http://127.0.0.1:2379'],
    ...['--listen-peer-urls=http://127.0.0.1:2380'],
  ]);
  begin('kube-apiserver', [
    program('kube-apiserver'),
    ...['--etcd-servers=http://127.0.0.1:2379', `--advertise-address=${machines.cp.ipv4}`],
    ...['--bind-address=0.0.0.0', '--secure-port=6443', serviceRanges, '--allow-privileged'],
    ...['--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction'],
    ...[`--client-ca-file=${pki}/ca.crt`, `--tls-cert-file=${pki}/apiserver.crt`],
    `--tls-private-key-file=${pki}/apiserver.key`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    ...[`--service-account-key-file=${pki}/sa.pub`, `--service-account-signing-key-file=${pki}/sa.key`],
    ...[`--kubelet-client-certificate=${pki}/admin.crt`, `--kubelet-client-key=${pki}/admin.key`],
    '--kubelet-preferred-address-types=InternalIP',
    ...[`--requestheader-client-ca-file=${pki}/ca.crt`, '--requestheader-allowed-names=front-proxy'],
    ...[
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      '--requestheader-group-headers=X-Remote-Group',
    ],
    '--requestheader-username-headers=X-Remote-User',
    ...[`--proxy-client-cert-file=${pki}/front-proxy.crt`, `--proxy-client-key-file=${pki}/front-proxy.key`],
    // No Service proxy is beside it: webhooks and aggregated APIs go to endpoints.
    '--enable-aggregator-routing=true',
  ]);
  return credentials;
}

/**
 * etcd, kube-apiserver, kube-controller-manager and kube-scheduler on the machine `cp`.
 *
 * @param without controllers that kube-controller-manager does not run: ours do their work.
 */
export async function startControlPlane(
  directory: string,
  logs: string,
  without: readonly string[],
): Promise<string> {
  const begin = (name: ProgramName, words: readonly string[]): void => {
    start(logs, name, [...onMachine('cp'), ...words]);
  };
  const { directory: pki, kubeconfig } = startApiServer(directory, begin);
  await until('kube-apiserver', 120, () => kubectl(kubeconfig, ['get', '--raw=/readyz']).includes('ok'));
  const identity = (name: string): readonly string[] =>
    ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
      (flag) => `--${flag}=${pki}/${name}.conf`,
    );
  begin('kube-controller-manager', [
    program('kube-controller-manager'),
    ...identity('kube-controller-manager'),
    ...[`--root-ca-file=${pki}/ca.crt`, `--service-account-private-key-file=${pki}/sa.key`],
    ...[`--cluster-signing-cert-file=${pki}/ca.crt`, `--cluster-signing-key-file=${pki}/ca.key`],
    ...['--use-service-account-credentials', '--allocate-node-cidrs=false', '--leader-elect=false'],
    ...[`--cluster-cidr=${ranges.pods.join(',')}`, serviceRanges],
    `--controllers=${['*', ...without.map((name) => `-${name}`)].join(',')}`,
  ]);
  begin('kube-scheduler', [program('kube-scheduler'), ...identity('kube-scheduler'), '--leader-elect=false']);
  return kubeconfig;
}

/** kubectl as the administrator, on the machine `cp`. */
export function kubectl(kubeconfig: string, words: readonly string[], input = ''): string {
  const [nsenter, ...rest] = onMachine('cp');
  return run(nsenter, [...rest, program('kubectl'), `--kubeconfig=${kubeconfig}`, ...words], input);
}
