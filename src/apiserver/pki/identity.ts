import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
  X509Certificate,
} from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../../tls/certificates.ts';

/** The secrets of a server. */
export interface ServerIdentity {
  /** The cluster's CA. */
  readonly authority: CertificateAuthority;
  /** The administrator's bearer token. */
  readonly adminToken: string;
  /** EC P-256; signs the tokens of ServiceAccounts. */
  readonly serviceAccountKey: KeyObject;
  /** The CA of the front proxy's client certificate, which extension API servers trust. */
  readonly frontProxyAuthority: CertificateAuthority;
}

const commonName = 'servicenet-ca';
const frontProxyCommonName = 'front-proxy-ca';
/** In the data directory. */
const fileName = 'identity.json';

/** A new identity. */
export function createIdentity(now: Date): ServerIdentity {
  return {
    authority: createCertificateAuthority(commonName, { now }),
    adminToken: randomBytes(24).toString('base64url'),
    serviceAccountKey: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey,
    frontProxyAuthority: createCertificateAuthority(frontProxyCommonName, { now }),
  };
}

/**
 * The identity in a data directory, so that kubeconfigs and tokens stay valid after a restart; created where there is
 * none. The caller holds the lock of the directory.
 *
 * @throws {Error} naming the file when it has no valid identity.
 */
export function loadIdentity(directory: string, now: Date): ServerIdentity {
  const file = path.join(directory, fileName);
  const text = readIfThere(file);
  if (text !== undefined) {
    const kept = parseIdentity(text);
    if (kept?.frontProxyAuthority !== undefined)
      return { ...kept, frontProxyAuthority: kept.frontProxyAuthority };
    if (kept !== undefined) {
      const frontProxyAuthority = createCertificateAuthority(frontProxyCommonName, { now });
      const completed = { ...kept, frontProxyAuthority };
      writeDurably(directory, file, format(completed));
      return completed;
    }
    throw new Error(
      `${file} does not hold the keys of a server, or not as they were written. Restore it from a backup, or remove it to make new ones, ` +
        'which invalidates the kubeconfigs and tokens that were given out.',
    );
  }
  const identity = createIdentity(now);
  writeDurably(directory, file, format(identity));
  return identity;
}

/** The file that holds the identity of a data directory; undefined when there is none. */
export function identityFile(directory: string): string | undefined {
  const file = path.join(directory, fileName);
  return fs.existsSync(file) ? file : undefined;
}

function readIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function format(identity: ServerIdentity): string {
  const { authority, adminToken, serviceAccountKey, frontProxyAuthority } = identity;
  const members = {
    caCertificate: authority.certificate,
    caKey: pem(authority.key),
    adminToken,
    serviceAccountKey: pem(serviceAccountKey),
    frontProxyCertificate: frontProxyAuthority.certificate,
    frontProxyKey: pem(frontProxyAuthority.key),
  };
  return `${JSON.stringify({ ...members, checksum: checksumOf(members) }, undefined, 2)}\n`;
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** The content of the file; files of earlier versions have no front proxy CA. */
type StoredIdentity = Omit<ServerIdentity, 'frontProxyAuthority'> & Partial<ServerIdentity>;

function parseIdentity(text: string): StoredIdentity | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isRecord(parsed)) return undefined;
    const { checksum, ...members } = parsed;
    const { caCertificate, caKey, adminToken, serviceAccountKey, ...more } = members;
    const { frontProxyCertificate, frontProxyKey, ...others } = more;
    // Files of earlier versions have no checksum. An unknown member may be a damaged name, even that of the checksum.
    if (Object.keys(others).length > 0 || (checksum !== undefined && checksum !== checksumOf(members)))
      return undefined;
    if (typeof adminToken !== 'string' || adminToken === '' || typeof serviceAccountKey !== 'string')
      return undefined;
    const authority = authorityOf(commonName, caCertificate, caKey);
    const signer = createPrivateKey(serviceAccountKey);
    if (authority === undefined || !isSigningKey(signer)) return undefined;
    const identity = { authority, adminToken, serviceAccountKey: signer };
    if (frontProxyCertificate === undefined && frontProxyKey === undefined) return identity;
    const frontProxyAuthority = authorityOf(frontProxyCommonName, frontProxyCertificate, frontProxyKey);
    return frontProxyAuthority === undefined ? undefined : { ...identity, frontProxyAuthority };
  } catch {
    return undefined;
  }
}

/** Undefined where the certificate is not that of the key. @throws {Error} where one of them cannot be parsed. */
function authorityOf(name: string, certificate: unknown, keyText: unknown): CertificateAuthority | undefined {
  if (typeof certificate !== 'string' || typeof keyText !== 'string') return undefined;
  const key = createPrivateKey(keyText);
  const parsed = new X509Certificate(certificate);
  const fits = parsed.checkPrivateKey(key) && parsed.verify(parsed.publicKey);
  return fits ? { certificate, commonName: name, key } : undefined;
}

/** SHA-256 of the members, to detect damage of the file. */
function checksumOf(members: JsonRecord): string {
  return createHash('sha256').update(JSON.stringify(members)).digest('hex');
}

/** True for an EC key whose public half verifies what the private half signs. */
function isSigningKey(key: KeyObject): boolean {
  const text = Buffer.from('servicenet');
  return (
    key.asymmetricKeyType === 'ec' && verify('sha256', text, createPublicKey(key), sign('sha256', text, key))
  );
}

/** Writes a file atomically and durably, for its owner only. */
function writeDurably(directory: string, file: string, text: string): void {
  const temporary = `${file}.tmp`;
  fs.rmSync(temporary, { force: true });
  fs.writeFileSync(temporary, text, { mode: 0o600, flag: 'wx', flush: true });
  fs.renameSync(temporary, file);
  const handle = fs.openSync(directory, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}

/** The names of the cluster, user and context in a kubeconfig that the server writes. */
const name = 'servicenet';

/** A kubeconfig (YAML) for one server, its CA and one bearer token. */
export function kubeconfig(access: {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}): string {
  // Every JSON string is a double-quoted YAML scalar.
  const quoted = (text: string): string => JSON.stringify(text);
  return `apiVersion: v1
kind: Config
clusters:
  - name: ${name}
    cluster:
      server: ${quoted(access.url)}
      certificate-authority-data: ${Buffer.from(access.ca).toString('base64')}
users:
  - name: ${name}
    user:
      token: ${quoted(access.token)}
contexts:
  - name: ${name}
    context:
      cluster: ${name}
      user: ${name}
      namespace: default
current-context: ${name}
`;
}
