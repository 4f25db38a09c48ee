import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { CertificateParts, GeneralNames, NameConstraints } from './x509.ts';

/**
 * Whether the names of certificates are within the constraints of those above them, as Go checks
 * (`crypto/x509/constraints.go`; RFC 5280, 4.2.1.10): names of hosts, addresses, URIs and mailboxes.
 */

/**
 * Why a name is not allowed, in Go's words; undefined where all are.
 *
 * @param chain the server's certificate first, its anchor last.
 */
export function constraintFault(
  chain: readonly Pick<CertificateParts, 'names' | 'nameConstraints'>[],
): string | undefined {
  for (const [index, { names }] of chain.entries()) {
    if (names === undefined) continue;
    for (const { nameConstraints } of chain.slice(index + 1)) {
      const fault = nameConstraints && faultOf(names, nameConstraints);
      if (fault !== undefined)
        return `a root or intermediate certificate is not authorized to sign for this name: ${fault}`;
    }
  }
  return undefined;
}

/** A name that can be compared, or why it cannot. */
type Comparable<Value> = { readonly value: Value } | { readonly fault: string };

function faultOf({ ip, dns, uri, email }: GeneralNames, constraints: NameConstraints): string | undefined {
  const { permitted, excluded } = constraints;
  const check = <Name, Value, Constraint>(
    kind: string,
    names: readonly Name[],
    of: (names: GeneralNames) => readonly Constraint[],
    comparable: (name: Name) => Comparable<Value>,
    isWithin: (value: Value, constraint: Constraint, isExclusion: boolean) => boolean,
    text: (name: Name | Constraint) => string,
  ): string | undefined => {
    for (const name of names) {
      const read = comparable(name);
      if ('fault' in read) return read.fault;
      const { value } = read;
      const allowed = of(permitted);
      if (allowed.length > 0 && !allowed.some((one) => isWithin(value, one, false)))
        return `${kind} "${text(name)}" is not permitted by any constraint`;
      const refused = of(excluded).find((one) => isWithin(value, one, true));
      if (refused !== undefined)
        return `${kind} "${text(name)}" is excluded by constraint "${text(refused)}"`;
    }
    return undefined;
  };
  const asIs = (name: string): string => name;
  return (
    check(
      'IP address',
      ip,
      (names) => names.ip,
      (value) => ({ value }),
      isWithinRange,
      addressText,
    ) ??
    check('DNS name', dns, (names) => names.dns, hostOf, isWithinDomain, asIs) ??
    check('URI', uri, (names) => names.uri, hostOfUri, isWithinDomain, asIs) ??
    check('email address', email, (names) => names.email, mailboxOf, isWithinMailbox, asIs)
  );
}

/** @param range an address, then a mask of its length. */
function isWithinRange(address: Buffer, range: Buffer): boolean {
  const { length } = address;
  return (
    range.length === 2 * length &&
    address.every((octet, at) => ((octet ^ (range[at] ?? 0)) & (range[length + at] ?? 0)) === 0)
  );
}

/** An address, or one with its mask. */
function addressText(bytes: Buffer): string {
  const isRange = bytes.length === 8 || bytes.length === 32;
  const [address, mask] = isRange
    ? [bytes.subarray(0, bytes.length / 2), bytes.subarray(bytes.length / 2)]
    : [bytes, Buffer.alloc(0)];
  const text = ipaddr.fromByteArray([...address]).toString();
  return isRange ? `${text}/${ipaddr.fromByteArray([...mask]).prefixLengthFromSubnetMask() ?? '?'}` : text;
}

function hostOf(name: string): Comparable<string> {
  return isDomain(name) ? { value: name } : { fault: `cannot parse dnsName "${name}"` };
}

/** `domainNameValid`: printable ASCII, no empty label. */
function isDomain(name: string): boolean {
  return name === '' || /^[!--/-~]+(?:\.[!--/-~]+)*$/.test(name);
}

/** A domain holds itself and all below it; with a dot before it only what is below. */
function isWithinDomain(name: string, domain: string, isExclusion: boolean): boolean {
  const [lower, wanted] = [lowerCase(name), lowerCase(domain)];
  if (wanted === '' || lower === wanted) return true;
  if (lower.endsWith(wanted.startsWith('.') ? wanted : `.${wanted}`)) return true;
  // A wildcard could stand for the very name that is excluded.
  const parent = parentOf(wanted);
  return isExclusion && lower.startsWith('*') && parent !== '' && parentOf(lower) === parent;
}

/** From the first dot on. */
function parentOf(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 ? '' : name.slice(dot);
}

function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

function hostOfUri(uri: string): Comparable<string> {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(uri)?.[1] ?? '';
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '');
  if (host === '') return { fault: `URI with empty host ("${uri}") cannot be matched against constraints` };
  if (isIP(host) !== 0 || host.startsWith('['))
    return { fault: `URI with IP ("${uri}") cannot be matched against constraints` };
  return /[%:]/.test(host) || !isDomain(host)
    ? { fault: `cannot parse URI host "${host}"` }
    : { value: host };
}

interface Mailbox {
  readonly local: string;
  readonly domain: string;
}

/** Quoted local parts are not understood: such a name is refused. */
const mailbox = /^([\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*)@([^@]+)$/;

function mailboxOf(text: string): Comparable<Mailbox> {
  const [, local = '', domain = ''] = mailbox.exec(text) ?? [];
  return local === '' || !isDomain(domain)
    ? { fault: `cannot parse rfc822Name "${text}"` }
    : { value: { local, domain } };
}

/** @param constraint a mailbox, or the domain of many. */
function isWithinMailbox({ local, domain }: Mailbox, constraint: string, isExclusion: boolean): boolean {
  if (!constraint.includes('@')) return isWithinDomain(domain, constraint, isExclusion);
  const one = mailboxOf(constraint);
  // What is not understood excludes all.
  if ('fault' in one) return isExclusion;
  return one.value.local === local && lowerCase(one.value.domain) === lowerCase(domain);
}
