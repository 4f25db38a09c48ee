import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import type { StaticToken } from './authentication/static-tokens.ts';
import { kubeconfig } from './kubeconfig.ts';
import { createCertificateAuthority, issueClientCertificate, issueServerCertificate } from './pki/certificates.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from './server.ts';

/** What a caller decides; identity and certificates are made here. */
export type EmbeddedOptions = Omit<ApiServerOptions, 'tls' | 'tokens' | 'advertiseAddress'> & {
  /** The administrator's bearer token; default: a random one. */
  readonly adminToken?: string;
  /** Further tokens (`--token-auth-file`). */
  readonly tokens?: readonly StaticToken[];
  /** DNS names and addresses that the server certificate is also good for. */
  readonly extraHosts?: readonly string[];
};

/** A running server and what a client needs to talk to it as its administrator. */
export interface Embedded extends ApiServer {
  readonly token: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string;
  /** A kubeconfig (YAML) with the CA and the token. */
  readonly kubeconfig: string;
  /** A certificate for the administrator, for clients that prefer one. */
  readonly clientCertificate: { readonly certificate: string; readonly key: string };
}

const adminGroups = ['system:masters'];
const localHosts = ['localhost', '127.0.0.1', '::1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];

/** Starts an API server with an authority, a server certificate and an administrator of its own. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { adminToken, tokens = [], extraHosts = [], ...rest } = options;
  const validity = { now: new Date() };
  const authority = createCertificateAuthority('servicenet-ca', validity);
  const hosts = [...new Set([...localHosts, options.bindAddress, ...extraHosts])].filter(isConcrete);
  const tls = issueServerCertificate(authority, 'servicenet', hosts, validity);
  const clientCertificate = issueClientCertificate(authority, 'kubernetes-admin', adminGroups, validity);
  const token = adminToken ?? randomBytes(24).toString('base64url');
  const admin: StaticToken = {
    token,
    user: { name: 'kubernetes-admin', uid: '', groups: adminGroups, extra: {} },
  };
  const server = await startApiServer({
    ...rest,
    tokens: [admin, ...tokens],
    tls: { ...tls, clientCa: authority.certificate },
    advertiseAddress: advertisedAddress(options.bindAddress),
  });
  return {
    ...server,
    token,
    ca: authority.certificate,
    clientCertificate,
    kubeconfig: kubeconfig({ url: server.url, ca: authority.certificate, token }),
  };
}

/** An unspecified address is no name of anything. */
function isConcrete(host: string): boolean {
  return host !== '0.0.0.0' && host !== '::';
}

/** Where Pods would reach the server: the address it listens on, or the machine's first one if that is every or a loopback one. */
function advertisedAddress(bindAddress: string): string {
  const local = bindAddress.startsWith('127.') || bindAddress === '::1' || !isConcrete(bindAddress);
  if (!local) return bindAddress;
  for (const addresses of Object.values(networkInterfaces())) {
    const found = addresses?.find(({ family, internal }) => family === 'IPv4' && !internal);
    if (found !== undefined) return found.address;
  }
  return isConcrete(bindAddress) ? bindAddress : '127.0.0.1';
}
