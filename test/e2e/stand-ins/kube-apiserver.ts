/**
 * Stands in for kube-apiserver: the embedded server with what its flags say. Certificates, keys, ports and ranges
 * come from there and from nowhere else, so that wrong ones lead to a server that does not answer.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { openStore } from '../../../src/apiserver/built-ins.ts';
import { ResourceTable } from '../../../src/apiserver/rest/served-resource.ts';
import { createApiServer } from '../../../src/apiserver/server.ts';
import { readServiceCidrs } from '../../../src/flags/shared.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { flagsOf, noteFlags } from './flags.ts';
import { createCertificateAuthority } from '../../../src/tls/certificates.ts';

const flags = flagsOf(process.argv.slice(2));
noteFlags('kube-apiserver', flags);

function flag(name: string): string {
  const value = flags.get(name);
  if (value === undefined) throw new Error(`--${name} is required`);
  return value;
}

const read = (name: string): string => readFileSync(flag(name), 'utf8');
const signingKey = createPrivateKey(read('service-account-signing-key-file'));
if (!createPublicKey(signingKey).equals(createPublicKey(read('service-account-key-file')))) {
  throw new Error('--service-account-key-file does not verify what --service-account-signing-key-file signs');
}
const health = await fetch(`${flag('etcd-servers')}/health`);
if (!health.ok) throw new Error('etcd is not well');
const authorizationMode = flag('authorization-mode');
if (authorizationMode !== 'RBAC') throw new Error(`--authorization-mode=${authorizationMode}`);

const log = createLog({ level: 'info', format: 'json' });
const server = await createApiServer({
  bindAddress: flag('bind-address'),
  port: Number(flag('secure-port')),
  serviceCidrs: readServiceCidrs(flag('service-cluster-ip-range')),
  nodePorts: { first: 30000, last: 32767 },
  tokens: [],
  tls: {
    certificate: read('tls-cert-file'),
    key: read('tls-private-key-file'),
    clientCa: read('client-ca-file'),
  },
  authorizationMode,
  serviceAccountKey: signingKey,
  frontProxyAuthority: createCertificateAuthority('front-proxy-ca', { now: new Date() }),
  advertiseAddress: '192.0.2.1',
  store: await openStore(new ResourceTable(), log, undefined),
  log,
});
process.stderr.write(`Serving securely on ${server.url}\n`);
process.once('SIGTERM', () => {
  void server.close();
});
