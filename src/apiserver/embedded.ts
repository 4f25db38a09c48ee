import { networkInterfaces } from 'node:os';
import { formatAddress } from '../objects/address.ts';
import type { StaticToken } from './authentication/authenticator.ts';
import { fileProblem } from './storage/disk/files.ts';
import { type ServerIdentity, identityFile, loadIdentity, createIdentity } from './pki/identity.ts';
import { kubeconfig } from './pki/identity.ts';
import { openStore, type Store } from './built-ins.ts';
import { type CertificatePair, issueClientCertificate, issueServerCertificate } from '../tls/certificates.ts';
import { ResourceTable } from './rest/served-resource.ts';
import { MissingLogError, UnusableDirectoryError } from './storage/disk/directory-lock.ts';
import { type ApiServer, type ApiServerOptions, createApiServer } from './server.ts';
import { holdsStore } from './storage/disk/files.ts';

/** Options of the caller; identity and certificates are made here. */
export type EmbeddedOptions = Omit<
  ApiServerOptions,
  | 'tls'
  | 'tokens'
  | 'advertiseAddress'
  | 'serviceAccountKey'
  | 'frontProxyAuthority'
  | 'store'
  | 'kubeletClient'
> & {
  /** Keeps the objects, the authority and the administrator's token in this directory; absent: nothing is kept. */
  readonly dataDirectory?: string;
  /** The administrator's bearer token; default: a random one, or the one that the data directory keeps. */
  readonly adminToken?: string;
  /** Further tokens (`--token-auth-file`). */
  readonly tokens?: readonly StaticToken[];
  /** DNS names and addresses that the server certificate is also good for. */
  readonly extraHosts?: readonly string[];
  /** Where Pods reach the server; default: an address of this machine. */
  readonly advertiseAddress?: string;
};

/** A running server and what a client needs to talk to it as its administrator. */
export interface Embedded extends ApiServer {
  readonly token: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  /** A kubeconfig (YAML) with the CA and the token. */
  readonly kubeconfig: string;
  /** A certificate for the administrator, for clients that prefer one. */
  readonly clientCertificate: CertificatePair;
  /** What kubelets of this cluster serve with. */
  issueKubeletCertificate(addresses: readonly string[]): CertificatePair;
}

/** The server's name in the client certificate for kubelets, as in kubeadm. */
export const kubeletClientName = 'kube-apiserver-kubelet-client';

const adminGroups = ['system:masters'];
const localHosts = [
  'localhost',
  '127.0.0.1',
  '::1',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

/**
 * Starts an API server with an authority, a server certificate and an administrator of its own.
 *
 * @throws {StorageLockedError} when another process uses the data directory.
 * @throws {DamagedStorageError} when a file of the data directory does not hold what was written to it.
 * @throws {MissingLogError} when the data directory has an identity, and no log beside it.
 * @throws {UnusableDirectoryError} when the data directory cannot be made, read or written.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { dataDirectory } = options;
  try {
    return await startOn(dataDirectory, options);
  } catch (error) {
    if (dataDirectory === undefined) throw error;
    const problem = fileProblem(error, dataDirectory);
    if (problem === undefined) throw error;
    throw new UnusableDirectoryError(dataDirectory, problem, error);
  }
}

async function startOn(dataDirectory: string | undefined, options: EmbeddedOptions): Promise<Embedded> {
  if (dataDirectory !== undefined) refuseLostStore(dataDirectory);
  const store = await openStore(new ResourceTable(), options.log, dataDirectory);
  try {
    const now = new Date();
    const identity = dataDirectory === undefined ? createIdentity(now) : loadIdentity(dataDirectory, now);
    return await startWith(options, store, identity, now);
  } catch (error) {
    await store.storage.close();
    throw error;
  }
}

/**
 * An identity is written only after the log: an identity without a log means that stored objects are lost.
 *
 * @throws {MissingLogError}
 */
function refuseLostStore(directory: string): void {
  const identity = identityFile(directory);
  if (identity === undefined) return;
  if (!holdsStore(directory)) throw new MissingLogError(directory, identity);
}

async function startWith(
  options: EmbeddedOptions,
  store: Store,
  identity: ServerIdentity,
  now: Date,
): Promise<Embedded> {
  const { adminToken: token = identity.adminToken, tokens = [], extraHosts = [], ...rest } = options;
  const { authority } = identity;
  const services = options.serviceCidrs.map(({ usable }) => formatAddress(usable.family, usable.first));
  const hosts = [...new Set([...localHosts, ...services, options.bindAddress, ...extraHosts])];
  const tls = issueServerCertificate(authority, 'servicenet', hosts.filter(isConcrete), { now });
  const clientCertificate = issueClientCertificate(authority, 'kubernetes-admin', adminGroups, { now });
  const admin: StaticToken = {
    token,
    user: { name: 'kubernetes-admin', uid: '', groups: adminGroups, extra: {} },
  };
  const server = await createApiServer({
    ...rest,
    store,
    serviceAccountKey: identity.serviceAccountKey,
    frontProxyAuthority: identity.frontProxyAuthority,
    tokens: [admin, ...tokens],
    tls: { ...tls, clientCa: authority.certificate },
    advertiseAddress: options.advertiseAddress ?? advertisedAddress(options.bindAddress),
    ...(options.dialPod === undefined
      ? {}
      : { kubeletClient: issueClientCertificate(authority, kubeletClientName, adminGroups, { now }) }),
  });
  return {
    ...server,
    token,
    ca: authority.certificate,
    clientCertificate,
    issueKubeletCertificate: (addresses) => issueServerCertificate(authority, 'kubelet', addresses, { now }),
    kubeconfig: kubeconfig({ url: server.url, ca: authority.certificate, token }),
  };
}

/** An unspecified address names no host. */
function isConcrete(host: string): boolean {
  return host !== '0.0.0.0' && host !== '::';
}

/**
 * The server's address for Pods: the one it listens on, or the machine's first one if that is unspecified or
 * loopback.
 */
function advertisedAddress(bindAddress: string): string {
  const local = bindAddress.startsWith('127.') || bindAddress === '::1' || !isConcrete(bindAddress);
  if (!local) return bindAddress;
  for (const addresses of Object.values(networkInterfaces())) {
    const found = addresses?.find(({ family, internal }) => family === 'IPv4' && !internal);
    if (found !== undefined) return found.address;
  }
  return isConcrete(bindAddress) ? bindAddress : '127.0.0.1';
}
