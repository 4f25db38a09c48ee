import {
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import * as der from '../../src/tls/der.ts';

/** What a certificate of a test says: also what no authority of ours would issue. */
export interface CertificateTemplate {
  /** Common name; "" for an empty name. */
  readonly subject: string;
  /** Undefined: it signs itself. */
  readonly signer?: Issued;
  /** Instead of that of a new key. */
  readonly publicKey?: KeyObject;
  /** Instead of the signer's subject. */
  readonly issuer?: string;
  readonly names?: readonly string[] | undefined;
  /** Undefined: no basicConstraints. */
  readonly isCA?: boolean;
  readonly pathLength?: number;
  /** Bits of the first octet; 0x04 is keyCertSign. */
  readonly keyUsage?: number;
  readonly extendedKeyUsage?: readonly string[];
  readonly critical?: string;
  /** Gets a value that ends too early. */
  readonly malformed?: string;
  readonly constraints?: Constraints;
  /** An authorityKeyIdentifier of its own. */
  readonly authorityKeyId?: Buffer;
  readonly subjectKeyId?: Buffer;
  readonly from?: Date;
  readonly to?: Date;
  readonly version?: 1 | 3;
}

/** Names such as `dns:a.example`, `ip:10.0.0.0/8`, `uri:.example`, `email:a@example`; `directory` is one of another kind. */
export interface Constraints {
  readonly permitted?: readonly string[];
  readonly excluded?: readonly string[];
  /** Default true. */
  readonly critical?: boolean;
}

export interface Issued {
  readonly certificate: string;
  readonly key: string;
  readonly subject: string;
  readonly privateKey: KeyObject;
}

const dayMs = 86_400_000;
const name = (common: string): Buffer =>
  common === ''
    ? der.sequence()
    : der.sequence(der.setOfOne(der.sequence(der.oid('2.5.4.3'), der.utf8String(common))));
const extension = (oid: string, value: Buffer, critical = false): Buffer =>
  der.sequence(der.oid(oid), ...(critical ? [der.boolean(true)] : []), der.octetString(value));

const nameTags = { email: 1, dns: 2, uri: 6, ip: 7 } as const;

function generalName(host: string): Buffer {
  if (isIP(host) !== 0) return der.implicit(nameTags.ip, Buffer.from(ipaddr.parse(host).toByteArray()));
  const kind = host.includes('://') ? 'uri' : host.includes('@') ? 'email' : 'dns';
  return der.implicit(nameTags[kind], Buffer.from(host, 'latin1'));
}

/** A GeneralSubtree. */
function subtree(constraint: string): Buffer {
  const [, kind = '', value = ''] = /^(\w+):?(.*)$/.exec(constraint) ?? [];
  if (kind === 'directory') return der.sequence(der.explicit(4, name('somebody')));
  if (kind !== 'ip') {
    const tag = kind === 'dns' || kind === 'uri' || kind === 'email' ? nameTags[kind] : 8;
    return der.sequence(der.implicit(tag, Buffer.from(value, 'latin1')));
  }
  const [address = '', length = ''] = value.split('/');
  const parsed = ipaddr.parse(address);
  const mask =
    parsed.kind() === 'ipv4'
      ? ipaddr.IPv4.subnetMaskFromPrefixLength(Number(length))
      : ipaddr.IPv6.subnetMaskFromPrefixLength(Number(length));
  return der.sequence(
    der.implicit(nameTags.ip, Buffer.from([...parsed.toByteArray(), ...mask.toByteArray()])),
  );
}

function constraintsExtension({ permitted = [], excluded = [], critical = true }: Constraints): Buffer {
  const trees = [permitted, excluded].flatMap((list, tag) =>
    list.length === 0 ? [] : [der.explicit(tag, ...list.map(subtree))],
  );
  return extension('2.5.29.30', der.sequence(...trees), critical);
}

/** Issues a certificate with a new key (ECDSA P-256). */
export function issueCertificate(template: CertificateTemplate): Issued {
  const { subject, signer, names, isCA, pathLength, keyUsage, extendedKeyUsage, critical } = template;
  const { authorityKeyId, subjectKeyId, version = 3 } = template;
  const { from = new Date(Date.now() - dayMs), to = new Date(Date.now() + dayMs) } = template;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = der.sequence(der.oid('1.2.840.10045.4.3.2'));
  const constraints = [
    ...(isCA === true ? [der.boolean(true)] : []),
    ...(pathLength === undefined ? [] : [der.integer(Buffer.from([pathLength]))]),
  ];
  const extensions = [
    ...(isCA === undefined ? [] : [extension('2.5.29.19', der.sequence(...constraints), true)]),
    ...(keyUsage === undefined
      ? []
      : [extension('2.5.29.15', der.bitString(Buffer.from([keyUsage]), keyUsage === 0x04 ? 2 : 7), true)]),
    ...(extendedKeyUsage === undefined
      ? []
      : [extension('2.5.29.37', der.sequence(...extendedKeyUsage.map((oid) => der.oid(oid))))]),
    ...(names === undefined ? [] : [extension('2.5.29.17', der.sequence(...names.map(generalName)))]),
    ...(template.constraints === undefined ? [] : [constraintsExtension(template.constraints)]),
    ...(critical === undefined ? [] : [extension(critical, der.sequence(), true)]),
    ...(template.malformed === undefined ? [] : [extension(template.malformed, Buffer.from([0x30, 9, 1]))]),
    ...(authorityKeyId === undefined
      ? []
      : [extension('2.5.29.35', der.sequence(der.implicit(0, authorityKeyId)))]),
    ...(subjectKeyId === undefined ? [] : [extension('2.5.29.14', der.octetString(subjectKeyId))]),
  ];
  const signed = der.sequence(
    ...(version === 3 ? [der.explicit(0, der.integer(Buffer.from([2])))] : []),
    der.integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    name(template.issuer ?? signer?.subject ?? subject),
    der.sequence(der.time(from), der.time(to)),
    name(subject),
    (template.publicKey ?? publicKey).export({ type: 'spki', format: 'der' }),
    ...(version === 3 && extensions.length > 0 ? [der.explicit(3, der.sequence(...extensions))] : []),
  );
  const signature = sign('sha256', signed, signer?.privateKey ?? privateKey);
  const bytes = der.sequence(signed, algorithm, der.bitString(signature));
  return {
    certificate: new X509Certificate(bytes).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    subject,
    privateKey,
  };
}

/**
 * A PKCS#10 request in DER that asks for nothing, as a kubelet makes it.
 *
 * @param signer whose key signs: its own, in a sound one.
 */
export function stubRequest(key: KeyObject, signer = key): Buffer {
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  const content = der.sequence(
    der.integer(Buffer.from([0])),
    name(''),
    spki,
    der.implicit(0x20, Buffer.alloc(0)),
  );
  const { asymmetricKeyType: type } = signer;
  const oid =
    type === 'ed25519' ? '1.3.101.112' : type === 'rsa' ? '1.2.840.113549.1.1.11' : '1.2.840.10045.4.3.2';
  const signature = sign(type === 'ed25519' ? null : 'sha256', content, signer);
  return der.sequence(content, der.sequence(der.oid(oid)), der.bitString(signature));
}

/** A server, the bundle that its client has, the host that it asks for, and what Go's `x509.Verify` says. */
export interface TrustCase {
  readonly title: string;
  /** The server's certificate, then what it sends with it. */
  readonly chain: readonly Issued[];
  readonly bundle: string;
  /** Undefined: any. */
  readonly host: string | undefined;
  /** A part of Go's words; undefined: trusted. */
  readonly fault: string | undefined;
}

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';
const unknown = 'certificate signed by unknown authority';
const past = new Date('2020-01-01T00:00:00Z');

/** Chains and names as they occur, and as they must be refused. `npm run test:clients` asks Go about each. */
export function trustCases(): TrustCase[] {
  const ca = { isCA: true, keyUsage: 0x04 };
  const names = ['a.example', '127.0.0.1'];
  const root = issueCertificate({ subject: 'root', ...ca });
  const other = issueCertificate({ subject: 'root', ...ca });
  const middle = issueCertificate({ subject: 'middle', signer: root, ...ca });
  const lower = issueCertificate({ subject: 'lower', signer: middle, ...ca });
  const leaf = issueCertificate({ subject: 'leaf', signer: root, names });
  const deep = issueCertificate({ subject: 'deep', signer: lower, names });
  const self = issueCertificate({ subject: 'self', names });
  const nameless = issueCertificate({ subject: '', issuer: 'Ephemeral CA', ...ca });
  const namelessLeaf = issueCertificate({ subject: '', signer: nameless, names });
  const sameName = issueCertificate({ subject: 'root', signer: root, names });
  const identified = issueCertificate({ subject: 'identified', ...ca, subjectKeyId: Buffer.from('one') });
  const misled = issueCertificate({
    ...{ subject: 'leaf', signer: identified, names, authorityKeyId: Buffer.from('two') },
  });
  const plain = issueCertificate({ subject: 'plain' });
  const short = issueCertificate({ subject: 'short', ...ca, pathLength: 0 });
  const below = issueCertificate({ subject: 'below', signer: short, ...ca });
  const mute = issueCertificate({ subject: 'mute', isCA: true, keyUsage: 0x80 });
  const clients = issueCertificate({ subject: 'clients', ...ca, extendedKeyUsage: [clientAuth] });
  const old = issueCertificate({ subject: 'old', ...ca, from: past, to: new Date(past.getTime() + dayMs) });
  const first = issueCertificate({ subject: 'v1', version: 1 });
  const strict = issueCertificate({ subject: 'strict', ...ca, critical: '1.2.3.4' });
  const leafOf = (signer: Issued, more: Partial<CertificateTemplate> = {}): Issued =>
    issueCertificate({ subject: 'leaf', signer, names, ...more });
  const garbage = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

  const chain = (
    title: string,
    sent: readonly Issued[],
    bundle: readonly (Issued | string)[],
    fault?: string,
  ): TrustCase => ({
    ...{ title, chain: sent, host: '127.0.0.1', fault },
    bundle: bundle.map((one) => (typeof one === 'string' ? one : one.certificate)).join(''),
  });
  const named = (
    title: string,
    host: string,
    certificate: Partial<CertificateTemplate>,
    fault?: string,
  ): TrustCase => ({
    ...{ title, chain: [leafOf(root, certificate)], bundle: root.certificate, host, fault },
  });
  return [
    ...constraintCases(),
    chain('a root', [leaf], [root]),
    chain('the server itself, issued by a root', [leaf], [leaf]),
    chain('the server itself, signed by itself', [self], [self]),
    chain('an intermediate one', [deep], [lower]),
    chain('an intermediate one, with others sent', [deep, lower, middle], [middle]),
    chain('an intermediate one, and the root sent too', [deep, lower, middle, root], [lower]),
    chain('a root, over two that are sent', [deep, lower, middle], [root]),
    chain('a root, over two that are sent in another order', [deep, middle, lower], [root]),
    chain('a root, over one that is not sent', [deep, lower], [root], unknown),
    chain('one of several, among other text', [leaf], ['# ours\n', other, garbage, root]),
    chain('names that are empty', [namelessLeaf], [nameless]),
    chain('names that are empty, the authority sent too', [namelessLeaf, nameless], [nameless]),
    chain('names that are empty, the server itself', [namelessLeaf], [namelessLeaf]),
    chain(
      'names that are empty, of another key',
      [issueCertificate({ subject: '', names })],
      [nameless],
      unknown,
    ),
    chain('a server with the name of its authority', [sameName], [root]),
    chain('an authority with the name of another', [leaf], [other], unknown),
    chain('an authority with the name of another, and that other', [leaf], [other, root]),
    chain('a key identifier that is another one', [misled], [identified]),
    chain('another server itself', [leaf], [self], unknown),
    chain('a server whose name and key are new', [leafOf(root)], [leaf], unknown),
    chain('one that is no authority', [leafOf(plain)], [plain], unknown),
    chain('one that may not sign', [leafOf(mute)], [mute], unknown),
    chain('one of version 1', [leafOf(first)], [first]),
    chain('one that may only sign for servers directly', [leafOf(short)], [short]),
    chain(
      'one that may only sign for servers directly, two above',
      [leafOf(below), below],
      [short],
      'too many intermediates',
    ),
    chain('one that has expired', [leafOf(old)], [old], 'certificate has expired or is not yet valid'),
    chain(
      'a server that has expired',
      [leafOf(root, { from: past, to: past })],
      [root],
      'certificate has expired or is not yet valid',
    ),
    chain(
      'a server that is not valid yet',
      [leafOf(root, { from: new Date(Date.now() + dayMs / 2) })],
      [root],
      'certificate has expired or is not yet valid',
    ),
    chain('one for clients alone', [leafOf(clients)], [clients], 'incompatible key usage'),
    chain(
      'a server for clients alone',
      [leafOf(root, { extendedKeyUsage: [clientAuth] })],
      [root],
      'incompatible key usage',
    ),
    chain(
      'a server for clients alone, itself',
      [leafOf(root, { extendedKeyUsage: [clientAuth] })],
      [root],
      'incompatible key usage',
    ),
    chain(
      'a server for servers and clients',
      [leafOf(root, { extendedKeyUsage: [clientAuth, serverAuth] })],
      [root],
    ),
    chain('an extension that nobody knows', [leafOf(strict)], [strict], 'unhandled critical extension'),
    named('a name', 'a.example', {}),
    named('a name in other letters', 'A.Example', {}),
    named('a name with the dot of the root', 'a.example.', {}),
    named('another name', 'b.example', {}, 'certificate is valid for a.example, not b.example'),
    named('an address', '127.0.0.1', {}),
    named('another address', '127.0.0.2', {}, 'certificate is valid for 127.0.0.1, not 127.0.0.2'),
    named('an IPv6 address', '[::1]', { names: ['::1'] }),
    named(
      'an address as a name',
      '127.0.0.1',
      { names: ['a.example'] },
      "because it doesn't contain any IP SANs",
    ),
    named('a wildcard', 'x.a.example', { names: ['*.a.example'] }),
    named(
      'a wildcard for two labels',
      'x.y.a.example',
      { names: ['*.a.example'] },
      'is valid for *.a.example, not',
    ),
    named('a wildcard for none', 'a.example', { names: ['*.a.example'] }, 'is valid for *.a.example, not'),
    named(
      'a wildcard within a label',
      'xy.a.example',
      { names: ['x*.a.example'] },
      'is valid for x*.a.example, not',
    ),
    named('a wildcard alone', 'example', { names: ['*'] }, 'certificate is valid for *, not example'),
    named('a name with _', 'x_y.a.example', { names: ['x_y.a.example'] }),
    named('the common name', 'leaf', { names: undefined }, 'certificate relies on legacy Common Name field'),
    named('the common name, beside others', 'leaf', {}, 'certificate is valid for a.example, not leaf'),
    named(
      'no names',
      'x.example',
      { names: undefined },
      'certificate is not valid for any names, but wanted to match x.example',
    ),
    named(
      'the common name as an address',
      '127.0.0.1',
      { subject: '127.0.0.1', names: undefined },
      'certificate relies on legacy Common Name field',
    ),
  ];
}

const notPermitted = 'is not permitted by any constraint';

/** Authorities that may sign for some names alone; with an empty name, OpenSSL finds no chain to them. */
function constraintCases(): TrustCase[] {
  const given: readonly [constraints: Constraints, names: readonly string[] | undefined, fault?: string][] = [
    [{ permitted: ['dns:a.example'] }, ['a.example']],
    [{ permitted: ['dns:a.example'] }, ['X.A.example']],
    [{ permitted: ['dns:a.example', 'dns:b.example'] }, ['*.b.example', 'a.example']],
    [{ permitted: ['dns:a.example'] }, ['xa.example'], `DNS name "xa.example" ${notPermitted}`],
    [{ permitted: ['dns:a.example'] }, ['a.example', 'b.example'], `DNS name "b.example" ${notPermitted}`],
    [{ permitted: ['dns:.a.example'] }, ['x.a.example']],
    [{ permitted: ['dns:.a.example'] }, ['a.example'], notPermitted],
    [{ permitted: ['dns:'] }, ['a.example']],
    [{ permitted: ['dns:x.a.example'] }, ['*.a.example'], notPermitted],
    [{ permitted: ['dns:a.example'] }, ['10.1.2.3']],
    [{ permitted: ['dns:a.example'] }, undefined],
    [{ permitted: ['dns:a.example'] }, ['a.example.'], 'cannot parse dnsName "a.example."'],
    [{ permitted: ['ip:10.0.0.0/8'] }, ['a..example'], 'cannot parse dnsName'],
    [{ excluded: ['dns:a.example'] }, ['b.example']],
    [{ excluded: ['dns:a.example'] }, ['x.a.example'], 'is excluded by constraint "a.example"'],
    [{ excluded: ['dns:x.a.example'] }, ['*.a.example'], 'DNS name "*.a.example" is excluded by constraint'],
    [{ excluded: ['dns:x.a.example'] }, ['*.b.example']],
    [{ excluded: ['dns:example'] }, ['*.example'], 'is excluded by constraint'],
    [{ excluded: ['dns:'] }, ['a.example'], 'is excluded by constraint'],
    [{ permitted: ['dns:example'], excluded: ['dns:a.example'] }, ['b.example']],
    [{ permitted: ['dns:example'], excluded: ['dns:a.example'] }, ['a.example'], 'is excluded by'],
    [{ permitted: ['ip:10.0.0.0/8'] }, ['10.255.0.1']],
    [{ permitted: ['ip:10.0.0.0/8'] }, ['11.0.0.1'], `IP address "11.0.0.1" ${notPermitted}`],
    [{ permitted: ['ip:10.0.0.0/8'] }, ['fd00::1'], `IP address "fd00::1" ${notPermitted}`],
    [{ permitted: ['ip:10.0.0.128/25'] }, ['10.0.0.129']],
    [{ permitted: ['ip:10.0.0.128/25'] }, ['10.0.0.127'], notPermitted],
    [{ permitted: ['ip:0.0.0.0/0', 'ip:fd00::/8'] }, ['1.2.3.4', 'fdff::1']],
    [{ excluded: ['ip:10.0.0.0/8'] }, ['10.0.0.1'], '"10.0.0.1" is excluded by constraint "10.0.0.0/8"'],
    [{ excluded: ['ip:fd00::/8'] }, ['fd12::1'], '"fd12::1" is excluded by constraint "fd00::/8"'],
    [{ excluded: ['ip:fd00::/8'] }, ['10.0.0.1', 'fe80::1']],
    [{ permitted: ['uri:a.example'] }, ['spiffe://a.example/ns/x', 'https://me@x.a.example:8443/']],
    [
      { permitted: ['uri:a.example'] },
      ['spiffe://b.example/ns'],
      `URI "spiffe://b.example/ns" ${notPermitted}`,
    ],
    [{ permitted: ['uri:.a.example'] }, ['spiffe://a.example/'], notPermitted],
    [{ excluded: ['uri:a.example'] }, ['spiffe://a.example/'], 'is excluded by constraint "a.example"'],
    [{ excluded: ['uri:a.example'] }, ['https://[fd00::1]/'], 'URI with IP'],
    [{ excluded: ['uri:a.example'] }, ['https://10.0.0.1:80/'], 'URI with IP'],
    [{ excluded: ['dns:a.example'] }, ['spiffe:///x'], 'URI with empty host'],
    [{ permitted: ['email:a.example'] }, ['me@a.example', 'me@x.A.example']],
    [{ permitted: ['email:a.example'] }, ['me@b.example'], notPermitted],
    [{ permitted: ['email:me@a.example'] }, ['me@A.example']],
    [{ permitted: ['email:me@a.example'] }, ['you@a.example'], notPermitted],
    [{ excluded: ['email:me@a.example'] }, ['me@a.example'], 'is excluded by constraint "me@a.example"'],
    [{ excluded: ['email:.a.example'] }, ['me@a.example']],
    [{ excluded: ['email:a.example'] }, ['@a.example'], 'cannot parse rfc822Name "@a.example"'],
    [{ permitted: ['directory'] }, ['a.example'], 'unhandled critical extension'],
    [{ permitted: ['directory'], critical: false }, ['a.example']],
    [{ permitted: ['directory', 'dns:a.example'], critical: false }, ['b.example'], notPermitted],
  ];
  return given.flatMap(([constraints, names, fault]) =>
    ['', 'root'].map((subject) => {
      const root = issueCertificate({ subject, issuer: 'somebody', isCA: true, keyUsage: 0x04, constraints });
      return {
        title: `${subject === '' ? 'nameless' : 'named'}, ${JSON.stringify(constraints)}, ${String(names)}`,
        chain: [issueCertificate({ subject: '', signer: root, names })],
        bundle: root.certificate,
        host: undefined,
        fault,
      };
    }),
  );
}

/** An authority (CN=root, ECDSA P-256), valid until 2099. */
export const fixedAuthority = [
  '-----BEGIN CERTIFICATE-----',
  'MIIBLzCB16ADAgECAhABuV2alTxpgsoMqbqlqaSMMAoGCCqGSM49BAMCMA8xDTAL',
  'BgNVBAMMBHJvb3QwIBcNMjYwMTAxMDAwMDAwWhgPMjA5OTAxMDEwMDAwMDBaMA8x',
  'DTALBgNVBAMMBHJvb3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASamOYQKksK',
  'uehRpi5CxyHWFAcbk9u/Txb+1bAcqrqgR3aXuOE+9RlE226NW5lEW/YnYZeycGo6',
  'ZD1MgXBPjlOjoxMwETAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQC',
  'ID1Xbw+ZWdQlIDeAwx7SUTHxiSscWaqt+bX4qXrxAH7LAiBGFeeio+nDtuqAuPUG',
  'Rhw9YqlEUHUZAaaKtd2ewdjBSg==',
  '-----END CERTIFICATE-----',
].join('\n');

/** A PKCS#10 request that asks for nothing, signed with its key. */
export const fixedStubRequest =
  'MIG7MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJqY5hAqSwq56FGmLkLHIdYUBxuT279PFv7VsByquq' +
  'BHdpe44T71GUTbbo1bmURb9idhl7JwajpkPUyBcE+OU6OgADAKBggqhkjOPQQDAgNJADBGAiEA2+/H68hbXFKM0T3A' +
  'QA+iYQbRVwRowQojGNlzfsn8d84CIQCzK3xE8Aa+IHiNxwSTFy+i2nTQuvWJFWvZN94jKQDDzA==';
