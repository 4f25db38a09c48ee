import { compareText } from '../objects/formats/go-text.ts';
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { type KeyPair, plainHost, wildcardOf, terminationOf } from '../network/http/rules.ts';
import type { ObjectKey } from '../objects/meta.ts';
import { errorMessage } from '../objects/status.ts';
import type { RouteRefusal } from '../network/http/route-claims.ts';
import type { Route } from '../objects/types/route.generated.ts';
import { readBundle } from '../tls/x509.ts';

/** A certificate that an object offers for some hosts. */
export interface OfferedCertificate {
  /** Hosts of rules; "" for the names of the certificate itself. */
  readonly hosts: readonly string[];
  readonly pair: KeyPair;
}

interface Offer {
  readonly source: string;
  /** The older of two for one host counts. */
  readonly created: string;
  readonly pair: KeyPair;
  context?: SecureContext;
}

/** Signatures that OpenSSL's default level 2 refuses in a chain, and the router of OpenShift in a certificate. */
const weakDigest = /md5|sha1(?!\d)/i;

/** Kinds of keys that TLS 1.2 and 1.3 sign a handshake with (RFC 8446, 4.2.3); of `ec` these curves alone. */
const usableKeys = new Set(['rsa', 'rsa-pss', 'ec', 'ed25519', 'ed448']);
const usableCurves = new Set([
  ...['prime256v1', 'secp384r1', 'secp521r1', 'brainpoolP256r1', 'brainpoolP384r1', 'brainpoolP512r1'],
]);

/** Why a certificate cannot be served; undefined for one that can. One that has expired can: clients decide. */
export function keyPairProblem({ certificate, key }: KeyPair): string | undefined {
  let parsed: X509Certificate;
  try {
    parsed = new X509Certificate(certificate);
  } catch {
    return 'the certificate is no PEM of a certificate';
  }
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
    if (!parsed.checkPrivateKey(privateKey)) return 'the key is not that of the certificate';
  } catch {
    return 'the key is no PEM of a private key without a passphrase';
  }
  const { asymmetricKeyType = '', asymmetricKeyDetails: { namedCurve } = {} } = privateKey;
  const isUsable =
    usableKeys.has(asymmetricKeyType) && (namedCurve === undefined || usableCurves.has(namedCurve));
  if (!isUsable) return `TLS does not use keys of the kind ${namedCurve ?? asymmetricKeyType}`;
  if (weakDigest.test(parsed.signatureAlgorithm ?? '')) {
    return `the certificate is signed by ${parsed.signatureAlgorithm ?? ''}, which is weak`;
  }
  const broken = bundleProblem(certificate);
  if (broken !== undefined) return broken;
  try {
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    return `OpenSSL refuses it: ${errorMessage(error)}`;
  }
  return undefined;
}

/** Why not every certificate of a PEM can be read: OpenSSL passes over those of authorities that it cannot. */
export function bundleProblem(pem: string): string | undefined {
  const blocks = pem
    .split(/(?=-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----)/)
    .filter((block) => block.startsWith('-----BEGIN'));
  if (blocks.length === 0) return 'it is no PEM of a certificate';
  const broken = blocks.findIndex((block) => !isCertificate(block));
  return broken === -1 ? undefined : `certificate ${broken + 1} of ${blocks.length} cannot be read`;
}

/** The certificate of a Route, with those of authorities behind it. */
export function inlinePair(route: Pick<Route, 'spec'> | undefined): KeyPair | undefined {
  const { certificate = '', key = '', caCertificate = '' } = route?.spec.tls ?? {};
  if (certificate === '' || key === '') return undefined;
  return { certificate: caCertificate === '' ? certificate : `${certificate}\n${caCertificate}`, key };
}

/** The certificates for TLS that ends here, by server name. A new one is used by the next handshake. */
export class Certificates {
  readonly #hosts = new Map<string, Offer[]>();
  readonly #ofSource = new Map<ObjectKey, readonly string[]>();
  /** For clients that name no host, or one without a certificate. */
  #fallback: Offer | undefined;
  #tellDefault: ((pair: KeyPair | undefined) => void) | undefined;

  /** @param source the object's kind and key. @param offered none: takes all of the object away. */
  set(source: string, created: string, offered: readonly OfferedCertificate[]): void {
    for (const host of this.#ofSource.get(source) ?? []) {
      const rest = (this.#hosts.get(host) ?? []).filter((offer) => offer.source !== source);
      if (rest.length === 0) this.#hosts.delete(host);
      else this.#hosts.set(host, rest);
    }
    this.#ofSource.delete(source);
    const hosts = new Set<string>();
    for (const { hosts: names, pair } of offered) {
      const offer: Offer = { source, created, pair };
      for (const name of names) {
        const host = plainHost(name);
        hosts.add(host);
        const all = [...(this.#hosts.get(host) ?? []), offer];
        this.#hosts.set(
          host,
          all.sort((a, b) => compareText(a.created, b.created) || compareText(a.source, b.source)),
        );
      }
    }
    if (hosts.size > 0) this.#ofSource.set(source, [...hosts]);
  }

  /** The certificate for names that have none. */
  setDefault(pair: KeyPair | undefined): void {
    this.#fallback = pair === undefined ? undefined : { source: '', created: '', pair };
    this.#tellDefault?.(pair);
  }

  /** Gets each default certificate from now on. */
  onDefault(tell: (pair: KeyPair | undefined) => void): void {
    this.#tellDefault = tell;
    if (this.#fallback !== undefined) tell(this.#fallback.pair);
  }

  /** Undefined where there is none: the handshake is then refused. */
  contextFor(serverName: string): SecureContext | undefined {
    const host = plainHost(serverName);
    const offer =
      this.#hosts.get(host)?.[0] ?? this.#hosts.get(wildcardOf(host) ?? '')?.[0] ?? this.#fallback;
    if (offer === undefined) return undefined;
    offer.context ??= createSecureContext({ cert: offer.pair.certificate, key: offer.pair.key });
    return offer.context;
  }
}

/** Why the TLS of a Route cannot be served (`extended_validator.go` of the router of OpenShift). */
export function tlsProblem(route: Pick<Route, 'spec'>): RouteRefusal | undefined {
  const message = messageOf(route);
  return message === undefined ? undefined : { reason: 'ExtendedValidationFailed', message };
}

function messageOf(route: Pick<Route, 'spec'>): string | undefined {
  const { tls } = route.spec;
  if (tls === undefined) return undefined;
  const { certificate = '', key = '', caCertificate = '', destinationCACertificate = '' } = tls;
  const termination = terminationOf(route);
  if (termination === 'passthrough') {
    const given = [certificate, key, caCertificate, destinationCACertificate].some((pem) => pem !== '');
    return given ? 'a passthrough route has no certificates' : undefined;
  }
  if (termination === 'edge' && destinationCACertificate !== '') {
    return 'an edge route has no destinationCACertificate';
  }
  if ((certificate === '') !== (key === '')) return 'a certificate and its key come together';
  for (const [field, pem] of Object.entries({ caCertificate, destinationCACertificate })) {
    const problem = pem === '' ? undefined : bundleProblem(pem);
    if (problem !== undefined) return `${field}: ${problem}`;
  }
  const distrust = destinationCACertificate === '' ? undefined : readBundle(destinationCACertificate).fault;
  if (distrust !== undefined) return `destinationCACertificate: ${distrust}`;
  const pair = inlinePair(route);
  return pair === undefined ? undefined : keyPairProblem(pair);
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
