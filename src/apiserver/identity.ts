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
import { isRecord, type JsonRecord } from '../objects/json.ts';
import { type CertificateAuthority, createCertificateAuthority } from './pki/certificates.ts';

/** What clients know a server by, and what it knows its own tokens by. */
export interface Identity {
  readonly authority: CertificateAuthority;
  /** The administrator's bearer token. */
  readonly adminToken: string;
  /** EC P-256: signs the tokens of service accounts. */
  readonly serviceAccountKey: KeyObject;
}

const commonName = 'servicenet-ca';
/** In the data directory, beside the logs of the store. */
const fileName = 'identity.json';

/** An identity for one run. */
export function newIdentity(now: Date): Identity {
  return {
    authority: createCertificateAuthority(commonName, { now }),
    adminToken: randomBytes(24).toString('base64url'),
    serviceAccountKey: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey,
  };
}

/**
 * The identity that a data directory keeps, so that kubeconfigs and tokens outlive a restart; made when there is
 * none. The caller holds the lock of the directory.
 *
 * @throws {Error} naming the file when it does not hold an identity.
 */
export function keptIdentity(directory: string, now: Date): Identity {
  const file = path.join(directory, fileName);
  const text = readIfThere(file);
  if (text !== undefined) {
    const identity = parseIdentity(text);
    if (identity !== undefined) return identity;
    throw new Error(
      `${file} does not hold the keys of a server, or not as they were written. Restore it from a backup, or remove it to make new ones: ` +
        'then the kubeconfigs and tokens that were given out are worth nothing.',
    );
  }
  const identity = newIdentity(now);
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

function format({ authority, adminToken, serviceAccountKey }: Identity): string {
  const members = {
    caCertificate: authority.certificate,
    caKey: pem(authority.key),
    adminToken,
    serviceAccountKey: pem(serviceAccountKey),
  };
  return `${JSON.stringify({ ...members, checksum: checksumOf(members) }, undefined, 2)}\n`;
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function parseIdentity(text: string): Identity | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isRecord(parsed)) return undefined;
    const { checksum, ...members } = parsed;
    const { caCertificate, caKey, adminToken, serviceAccountKey, ...others } = members;
    // Files of earlier versions have none. Its own name may be what was damaged.
    if (Object.keys(others).length > 0 || (checksum !== undefined && checksum !== checksumOf(members)))
      return undefined;
    if (typeof caCertificate !== 'string' || typeof caKey !== 'string') return undefined;
    if (typeof adminToken !== 'string' || adminToken === '' || typeof serviceAccountKey !== 'string')
      return undefined;
    const authority = { certificate: caCertificate, commonName, key: createPrivateKey(caKey) };
    const signer = createPrivateKey(serviceAccountKey);
    const certificate = new X509Certificate(caCertificate);
    if (!certificate.checkPrivateKey(authority.key) || !certificate.verify(certificate.publicKey))
      return undefined;
    if (!signs(signer)) return undefined;
    return { authority, adminToken, serviceAccountKey: signer };
  } catch {
    return undefined;
  }
}

/** SHA-256 of the file's content, to notice damage on the disk at the start. */
function checksumOf(members: JsonRecord): string {
  return createHash('sha256').update(JSON.stringify(members)).digest('hex');
}

/** Whether the two halves of a key belong together. */
function signs(key: KeyObject): boolean {
  const text = Buffer.from('servicenet');
  return (
    key.asymmetricKeyType === 'ec' && verify('sha256', text, createPublicKey(key), sign('sha256', text, key))
  );
}

/** All of the file or none of it is there after a crash; only its owner may read it. */
function writeDurably(directory: string, file: string, text: string): void {
  const unfinished = `${file}.tmp`;
  fs.rmSync(unfinished, { force: true });
  fs.writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx', flush: true });
  fs.renameSync(unfinished, file);
  const handle = fs.openSync(directory, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
