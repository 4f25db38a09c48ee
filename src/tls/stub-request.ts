import { generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import * as der from './der.ts';

interface KeyType {
  readonly generate: () => Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }>;
  /** Null: Ed25519 has its own. */
  readonly digest: string | null;
  /** The OID of the signature algorithm, and its parameters. */
  readonly algorithm: readonly [oid: string, ...parameters: Buffer[]];
}

const generate = promisify(generateKeyPair);

const rsa = (modulusLength: number): KeyType => ({
  generate: () => generate('rsa', { modulusLength }),
  digest: 'sha256',
  algorithm: ['1.2.840.113549.1.1.11', der.nothing],
});

const ecdsa = (namedCurve: string, digest: string, algorithm: string): KeyType => ({
  generate: () => generate('ec', { namedCurve }),
  ...{ digest, algorithm: [algorithm] },
});

/** By the `keyType` of a PodCertificateProjection. */
const keyTypes: ReadonlyMap<string, KeyType> = new Map([
  ['RSA3072', rsa(3072)],
  ['RSA4096', rsa(4096)],
  ['ECDSAP256', ecdsa('prime256v1', 'sha256', '1.2.840.10045.4.3.2')],
  ['ECDSAP384', ecdsa('secp384r1', 'sha384', '1.2.840.10045.4.3.3')],
  ['ECDSAP521', ecdsa('secp521r1', 'sha512', '1.2.840.10045.4.3.4')],
  ['ED25519', { generate: () => generate('ed25519'), digest: null, algorithm: ['1.3.101.112'] }],
]);

/** A new key, and a request for its certificate without a name: a proof of possession (KEP-4317). */
export interface StubRequest {
  /** PKCS#8, PEM. */
  readonly key: string;
  /** PKCS#10 (RFC 2986), DER. */
  readonly request: Buffer;
}

/** @throws {Error} for a type of keys that is not known. */
export async function createStubRequest(keyType: string): Promise<StubRequest> {
  const type = keyTypes.get(keyType);
  if (type === undefined) throw new Error(`unknown key type "${keyType}"`);
  const { privateKey, publicKey } = await type.generate();
  const content = der.sequence(
    der.integer(Buffer.from([0])),
    // No name, and no attributes.
    der.sequence(),
    publicKey.export({ type: 'spki', format: 'der' }),
    der.explicit(0),
  );
  const [oid, ...parameters] = type.algorithm;
  const algorithm = der.sequence(der.oid(oid), ...parameters);
  const signature = der.bitString(sign(type.digest, content, privateKey));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    request: der.sequence(content, algorithm, signature),
  };
}
