import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isRecord } from '../objects/json.ts';
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
      `${file} does not hold the keys of a server. Restore it from a backup, or remove it to make new ones: ` +
        'then the kubeconfigs and tokens that were given out are worth nothing.',
    );
  }
  const identity = newIdentity(now);
  writeDurably(directory, file, format(identity));
  return identity;
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
  return `${JSON.stringify(members, undefined, 2)}\n`;
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function parseIdentity(text: string): Identity | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!isRecord(parsed)) return undefined;
    const { caCertificate, caKey, adminToken, serviceAccountKey } = parsed;
    if (typeof caCertificate !== 'string' || typeof caKey !== 'string') return undefined;
    if (typeof adminToken !== 'string' || adminToken === '' || typeof serviceAccountKey !== 'string')
      return undefined;
    return {
      authority: { certificate: caCertificate, commonName, key: createPrivateKey(caKey) },
      adminToken,
      serviceAccountKey: createPrivateKey(serviceAccountKey),
    };
  } catch {
    return undefined;
  }
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
