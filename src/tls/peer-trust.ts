import { X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, type PeerCertificate, TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { constraintFault } from './name-constraints.ts';
import { certificateParts, type CertificateParts, readBundle } from './x509.ts';

/**
 * Whom a TLS client trusts, by Go's rules (`crypto/x509/verify.go`), which every client of Kubernetes follows: each
 * certificate of a bundle is an anchor, be it a root, an intermediate one or the server's own. They are applied here:
 * OpenSSL sees no chain where names are equal or empty. It decides about the authorities of the system, and for
 * connections whose user cannot ask.
 */

/** A TLS peer that is not trusted. The message is Go's, the code one of Node.js or OpenSSL. */
export class UntrustedPeer extends Error {
  override readonly name = 'UntrustedPeer';
  readonly code: string;

  constructor(code: string, message: string) {
    super(`tls: failed to verify certificate: x509: ${message}`);
    this.code = code;
  }
}

const wrongName = 'ERR_TLS_CERT_ALTNAME_INVALID';
const malformed = (): UntrustedPeer => new UntrustedPeer('ERR_TLS_CERT_MALFORMED', 'malformed certificate');

/** The options of `tls.connect` that a {@link PeerTrust} sets. */
export type TrustOptions = Pick<
  ConnectionOptions,
  'ca' | 'allowPartialTrustChain' | 'checkServerIdentity' | 'rejectUnauthorized'
>;

/** A name that a certificate may have to have. */
interface PeerName {
  readonly type: 'Hostname' | 'URI';
  readonly value: string;
}

type Connected = [null, Socket | TLSSocket] | [Error, null];
/** A connector of undici. */
type Connector<Options> = (options: Options, callback: (...connected: Connected) => void) => void;

/** The authorities that a client trusts. */
export class PeerTrust {
  /** Undefined for the authorities of the system. */
  readonly #anchors: readonly X509Certificate[] | undefined;

  /** @param pem undefined or "" for the authorities of the system. @throws {Error} where no certificate is in it. */
  constructor(pem: string | undefined) {
    if (pem === undefined || pem === '') return;
    const { certificates, fault } = readBundle(pem);
    if (fault !== undefined) throw new Error(fault);
    this.#anchors = certificates;
  }

  /** For connections where nothing can ask {@link fault}: OpenSSL alone builds the chain. */
  get strictOptions(): TrustOptions {
    return {
      ...(this.#anchors && { ca: this.#anchors.map(String) }),
      allowPartialTrustChain: true,
      checkServerIdentity: (host: string, { raw }: PeerCertificate) => {
        const [leaf] = candidates([new X509Certificate(raw)]);
        return leaf === undefined ? malformed() : hostFault(host, leaf.parts);
      },
    };
  }

  /** For connections whose user asks {@link fault} after the handshake, before it sends or reads anything. */
  get options(): TrustOptions {
    return { ...this.strictOptions, rejectUnauthorized: false, checkServerIdentity: () => undefined };
  }

  /**
   * Why the peer of a connection is not trusted; undefined where it is. Connections must not resume sessions: a resumed
   * one does not show the whole chain.
   *
   * @param host the name or the address that its certificate must be for; undefined: for any.
   */
  fault(socket: TLSSocket, host: string | undefined, nowMs: number): UntrustedPeer | undefined {
    return this.namesFault(socket, host === undefined ? [] : [{ type: 'Hostname', value: host }], nowMs);
  }

  /**
   * As {@link fault}, for a peer whose certificate must have one of several names (BackendTLSPolicy of Gateway API).
   *
   * @param names none: any name will do; a URI is compared as it is written.
   */
  namesFault(socket: TLSSocket, names: readonly PeerName[], nowMs: number): UntrustedPeer | undefined {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined)
      return new UntrustedPeer('ERR_TLS_CERT_MISSING', 'the server has sent no certificate');
    const [leaf] = candidates([certificate]);
    if (leaf === undefined) return malformed();
    // OpenSSL passes over some constraints of names, and knows the authorities of the system.
    if (this.#anchors !== undefined || !socket.authorized) {
      const sent = candidates(chainOf(certificate).slice(1));
      const why = chainFault(leaf, sent, candidates(this.#anchors ?? []), nowMs);
      const code = socket.authorized ? 'CERT_UNTRUSTED' : String(socket.authorizationError);
      if (why !== undefined) return new UntrustedPeer(code, why);
    }
    const faults = names.map((name) => nameFault(name, leaf.parts));
    return faults.includes(undefined) ? undefined : faults[0];
  }

  /**
   * A connector that hands over no connection to an untrusted peer.
   *
   * @param connect has {@link options} and caches no sessions.
   */
  connector<Options extends { readonly hostname: string; readonly servername?: string }>(
    connect: Connector<Options>,
    nowMs: () => number,
  ): Connector<Options> {
    return (options, callback) => {
      connect(options, (error, socket) => {
        if (error !== null) {
          callback(error, null);
          return;
        }
        const { hostname, servername } = options;
        // undici gives null where there is none, and "" for an address.
        const named = servername ?? '';
        const host = named === '' ? hostname : named;
        const fault = socket instanceof TLSSocket ? this.fault(socket, host, nowMs()) : undefined;
        if (fault === undefined) {
          callback(null, socket);
          return;
        }
        socket.destroy();
        callback(fault, null);
      });
    };
  }
}

/** The certificates that a peer has sent, its own first, in the order of who issued whom. */
function chainOf(leaf: X509Certificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const seen = new Set<string>();
  for (let next: X509Certificate | undefined = leaf; next !== undefined; next = next.issuerCertificate) {
    if (seen.has(next.fingerprint256)) break;
    seen.add(next.fingerprint256);
    chain.push(next);
  }
  return chain;
}

interface Candidate {
  readonly certificate: X509Certificate;
  readonly parts: CertificateParts;
}

/** `maxChainSignatureChecks`. */
const maxSignatureChecks = 100;
const serverAuth = '1.3.6.1.5.5.7.3.1';
const anyUsage = '2.5.29.37.0';
const unknownAuthority = 'certificate signed by unknown authority';

/**
 * Why no chain leads from a server's certificate to an anchor; undefined where one does (`Certificate.Verify`).
 *
 * @param leaf the server's certificate.
 * @param intermediates the others that it has sent.
 */
function chainFault(
  leaf: Candidate,
  intermediates: readonly Candidate[],
  roots: readonly Candidate[],
  nowMs: number,
): string | undefined {
  let checks = 0;
  let hint: string | undefined;

  const complete = (chain: readonly Candidate[]): boolean => {
    const parts = chain.map((one) => one.parts);
    const why = parts.every(mayServe)
      ? constraintFault(parts)
      : 'certificate specifies an incompatible key usage';
    hint ??= why;
    return why === undefined;
  };
  const extend = (chain: readonly Candidate[], child: Candidate): boolean => {
    for (const parent of [...roots, ...intermediates]) {
      if (parent.parts.subject !== child.parts.issuer) continue;
      if (chain.some(({ certificate }) => certificate.raw.equals(parent.certificate.raw))) continue;
      if (++checks > maxSignatureChecks) return false;
      const root = roots.includes(parent);
      if (!hasSigned(parent, child)) continue;
      const why = validityFault(parent, nowMs) ?? parentFault(parent, root, chain.length - 1);
      if (why !== undefined) {
        hint ??= why;
        continue;
      }
      const longer = [...chain, parent];
      if (root ? complete(longer) : extend(longer, parent)) return true;
    }
    return false;
  };

  const own = validityFault(leaf, nowMs);
  if (own !== undefined) return own;
  const isAnchor = roots.some(({ certificate: { raw } }) => raw.equals(leaf.certificate.raw));
  const trusted = isAnchor ? complete([leaf]) : extend([leaf], leaf);
  return trusted ? undefined : (hint ?? unknownAuthority);
}

/** Of those that Go can read. */
function candidates(certificates: readonly X509Certificate[]): Candidate[] {
  return certificates.flatMap((certificate) => {
    try {
      return [{ certificate, parts: certificateParts(certificate.raw) }];
    } catch {
      return [];
    }
  });
}

function hasSigned(parent: Candidate, child: Candidate): boolean {
  const { version, basicConstraints, maySign } = parent.parts;
  // `CheckSignatureFrom`: one of version 3 says that it is an authority.
  if ((version >= 3 || basicConstraints !== undefined) && basicConstraints?.isCA !== true) return false;
  return (
    maySign && child.parts.digest !== undefined && child.certificate.verify(parent.certificate.publicKey)
  );
}

/** Also of what the parts of a certificate say that must be understood. */
function validityFault({ certificate, parts }: Candidate, nowMs: number): string | undefined {
  if (parts.otherCritical.length > 0) return 'unhandled critical extension';
  const { validFromDate: from, validToDate: to } = certificate;
  const expired = 'certificate has expired or is not yet valid: current time';
  const now = new Date(nowMs);
  if (now < from) return `${expired} ${goTime(now)} is before ${goTime(from)}`;
  return now > to ? `${expired} ${goTime(now)} is after ${goTime(to)}` : undefined;
}

function goTime(date: Date): string {
  return date.toISOString().replace(/\.\d+/, '');
}

/** @param below how many intermediate certificates are between the authority and the server's. */
function parentFault({ parts }: Candidate, isRoot: boolean, below: number): string | undefined {
  const { basicConstraints } = parts;
  if (!isRoot && basicConstraints?.isCA !== true)
    return 'certificate is not authorized to sign other certificates';
  return below > (basicConstraints?.maxPathLength ?? Number.POSITIVE_INFINITY)
    ? 'too many intermediates for path length constraint'
    : undefined;
}

function mayServe({ extendedKeyUsage }: CertificateParts): boolean {
  return (
    extendedKeyUsage === undefined ||
    extendedKeyUsage.some((usage) => usage === serverAuth || usage === anyUsage)
  );
}

/** `maxNamesIncluded`. */
const maxNamesShown = 100;

function nameFault({ type, value }: PeerName, parts: CertificateParts): UntrustedPeer | undefined {
  if (type === 'Hostname') return hostFault(value, parts);
  const isNamed = parts.names?.uri.includes(value) ?? false;
  return isNamed ? undefined : new UntrustedPeer(wrongName, `certificate is not valid for ${value}`);
}

/** Why a certificate is not for a host; undefined where it is (`Certificate.VerifyHostname`). */
function hostFault(host: string, { names, commonName }: CertificateParts): UntrustedPeer | undefined {
  const address = /^\[.+\]$/.test(host) ? host.slice(1, -1) : host;
  const { dns = [], ip = [] } = names ?? {};
  const wrong = (message: string) => new UntrustedPeer(wrongName, message);
  if (names === undefined && sameLabels(lowerCase(commonName), lowerCase(host))) {
    return wrong('certificate relies on legacy Common Name field, use SANs instead');
  }
  if (isIP(address) !== 0) {
    const wanted = ipaddr.process(address).toNormalizedString();
    const valid = ip.map(addressText);
    if (valid.includes(wanted)) return undefined;
    if (valid.length === 0) {
      return wrong(`cannot validate certificate for ${address} because it doesn't contain any IP SANs`);
    }
    return wrong(
      valid.length >= maxNamesShown
        ? `certificate is valid for ${valid.length} IP SANs, but none matched ${address}`
        : `certificate is valid for ${valid.join(', ')}, not ${address}`,
    );
  }
  const name = lowerCase(host);
  if (dns.some((pattern) => matches(pattern, name))) return undefined;
  if (dns.length === 0) return wrong(`certificate is not valid for any names, but wanted to match ${host}`);
  return wrong(
    dns.length >= maxNamesShown
      ? `certificate is valid for ${dns.length} names, but none matched ${host}`
      : `certificate is valid for ${dns.join(', ')}, not ${host}`,
  );
}

function addressText(bytes: Buffer): string {
  return ipaddr.process(ipaddr.fromByteArray([...bytes]).toString()).toNormalizedString();
}

/** Go lowers ASCII alone. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** Whether a name of a certificate is that of a host, in lower case. */
function matches(pattern: string, host: string): boolean {
  const lower = lowerCase(pattern);
  if (isHostname(host.replace(/\.$/, ''), false) && isHostname(pattern, true)) return sameLabels(lower, host);
  return lower === host && host !== '' && host !== '.';
}

/** A `*` stands for a whole first label (`matchHostnames`). */
function sameLabels(pattern: string, host: string): boolean {
  const labels = pattern.split('.');
  const wanted = host.replace(/\.$/, '').split('.');
  return (
    pattern !== '' &&
    labels.length === wanted.length &&
    labels.every((label, index) => (index === 0 && label === '*') || label === wanted[index])
  );
}

/** `validHostname`: letters, digits, `_`, and `-` but as the first of a label. */
function isHostname(name: string, isPattern: boolean): boolean {
  const isWildcard = (label: string, index: number) => isPattern && index === 0 && label === '*';
  return (
    name !== '*' &&
    name
      .split('.')
      .every((label, index) => isWildcard(label, index) || /^[A-Za-z0-9_][A-Za-z0-9_-]*$/.test(label))
  );
}
