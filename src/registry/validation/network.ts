import {
  addressBits,
  formatAddress,
  parseAddress,
  parseCidr,
  type ParsedAddress,
  type ParsedCidr,
  type IPFamily,
} from '../../objects/address.ts';
import { internalFault, invalid, renderValue, type FieldError, required } from './field-errors.ts';
import { isDNS1123Subdomain, isValidPortName } from '../../objects/names.ts';
import type { WebhookClientConfig } from '../../objects/types/admissionregistration.generated.ts';

/**
 * Ports, IP addresses and CIDRs in fields of any kind: apimachinery `util/validation/ip.go` with the 1.36 gate
 * StrictIPCIDRValidation on, and `apis/core/validation`.
 */

const portRange = 'must be between 1 and 65535, inclusive';
const notAnAddress = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const notACidr = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

/** The errors of a port number; empty when it is 1 to 65535. */
export function isValidPortNumber(port: number): string[] {
  return port >= 1 && port <= 65535 ? [] : [portRange];
}

/** A port given by number or by name (`targetPort`, NetworkPolicy `port`). */
export function validatePortNumberOrName(port: number | string, path: string): FieldError[] {
  const messages = typeof port === 'number' ? isValidPortNumber(port) : isValidPortName(port);
  return messages.map((message) => invalid(path, port, message));
}

/**
 * An IP field that predates strict validation (`IsValidIPForLegacyField`): any spelling of the address without leading
 * zeros. Values in `exempt` (those of the stored object) are accepted.
 */
export function validateLegacyAddress(
  text: string,
  path: string,
  exempt: readonly string[] = [],
): FieldError[] {
  if (exempt.includes(text)) return [];
  const parsed = parseAddress(text);
  return addressFaults(parsed).map((message) => invalid(path, text, message));
}

/** The errors of an address in strict validation (`IsValidIP`): it must be in canonical form. */
export function isCanonicalAddress(text: string): string[] {
  const parsed = parseAddress(text);
  const faults = addressFaults(parsed);
  if (faults.length === 0 && parsed !== undefined && parsed.canonical !== text) {
    faults.push(`must be in canonical form (${renderValue(parsed.canonical)})`);
  }
  return faults;
}

/** An IP field with strict validation; see {@link isCanonicalAddress}. */
export function validateCanonicalAddress(text: string, path: string): FieldError[] {
  return isCanonicalAddress(text).map((message) => invalid(path, text, message));
}

function addressFaults(parsed: ParsedAddress | undefined): string[] {
  if (parsed === undefined) return [notAnAddress];
  if (parsed.leadingZeros) return ['must not have leading 0s'];
  return parsed.ipv4Mapped ? ['must not be an IPv4-mapped IPv6 address'] : [];
}

/** A CIDR field that predates strict validation (`IsValidCIDRForLegacyField`); see {@link validateLegacyAddress}. */
export function validateLegacyCidr(text: string, path: string, exempt: readonly string[] = []): FieldError[] {
  if (exempt.includes(text)) return [];
  return cidrFaults(parseCidr(text)).map((message) => invalid(path, text, message));
}

/** A CIDR field with strict validation (`IsValidCIDR`): only the canonical form. */
export function validateCanonicalCidr(text: string, path: string): FieldError[] {
  const parsed = parseCidr(text);
  const faults = cidrFaults(parsed);
  if (faults.length === 0 && parsed !== undefined && parsed.canonical !== text) {
    faults.push(`must be in canonical form (${renderValue(parsed.canonical)})`);
  }
  return faults.map((message) => invalid(path, text, message));
}

function cidrFaults(parsed: ParsedCidr | undefined): string[] {
  if (parsed === undefined) return [notACidr];
  if (parsed.leadingZeros) return ['must not have leading 0s in IP or prefix length'];
  if (parsed.ipv4Mapped) return ['must not have an IPv4-mapped IPv6 address'];
  return parsed.hostBitsSet ? ['must not have bits set beyond the prefix length'] : [];
}

/**
 * A list of at most one address of each family.
 *
 * @param shown the list as errors print it.
 */
export function validateAddressPair(texts: readonly string[], path: string, shown: unknown): FieldError[] {
  const families = texts.map((text) => parseAddress(text)?.family);
  const bad = families.indexOf(undefined);
  const errors =
    texts.length < 2 || bad === -1
      ? []
      : [
          internalFault(
            path,
            `failed to check for dual stack with error:invalid IP[${bad}]: ${texts[bad] ?? ''}`,
          ),
        ];
  return [...errors, ...validatePair(families, 'IP', path, shown)];
}

/** A list of at most one CIDR of each family; see {@link validateAddressPair}. */
export function validateCidrPair(texts: readonly string[], path: string): FieldError[] {
  const families = texts.map((text) => parseCidr(text)?.family);
  const bad = families.indexOf(undefined);
  const why = `invalid CIDR[${bad}]: <nil> (invalid CIDR address: ${texts[bad] ?? ''})`;
  const errors =
    texts.length < 2 || bad === -1
      ? []
      : [internalFault(path, `invalid PodCIDRs. failed to check with dual stack with error:${why}`)];
  return [...errors, ...validatePair(families, 'CIDR', path, texts)];
}

function validatePair(
  families: readonly (IPFamily | undefined)[],
  what: string,
  path: string,
  shown: unknown,
): FieldError[] {
  if (families.length < 2) return [];
  if (families.length === 2 && families.includes('IPv4') && families.includes('IPv6')) return [];
  return [invalid(path, shown, `may specify no more than one ${what} for each IP family`)];
}

/** Addresses that are not allowed as endpoints or external IPs (`ValidateEndpointIP`). */
export function validateEndpointAddress(text: string, path: string): FieldError[] {
  const parsed = parseAddress(text);
  if (parsed === undefined) return [invalid(path, text, 'must be a valid IP address')];
  const { family, value } = parsed;
  const v4 = family === 'IPv4';
  let fault = '';
  if (value === 0n) fault = `may not be unspecified (${text})`;
  else if (v4 ? value >> 24n === 127n : value === 1n) {
    fault = 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  } else if (v4 ? value >> 16n === 0xa9fen : value >> 118n === 0x3fan) {
    fault = 'may not be in the link-local range (169.254.0.0/16, fe80::/10)';
  } else if (v4 ? value >> 8n === 0xe00000n : (value >> 112n) % 0x10n === 2n && value >> 120n === 0xffn) {
    fault = 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)';
  }
  return fault === '' ? [] : [invalid(path, text, fault)];
}

/** Warnings for an address in an unusual spelling (`GetWarningsForIP`); none for an invalid address. */
export function warningsForAddress(text: string, path: string): string[] {
  const parsed = parseAddress(text);
  if (parsed === undefined) return [];
  const { canonical } = parsed;
  const quoted = renderValue(text);
  if (parsed.leadingZeros || parsed.ipv4Mapped) {
    return [`${path}: non-standard IP address ${quoted} is invalid: use ${renderValue(canonical)}`];
  }
  if (parsed.family === 'IPv4' || canonical === text) return [];
  const form = `should be in RFC 5952 canonical format (${renderValue(canonical)})`;
  return [`${path}: IPv6 address ${quoted} ${form}`];
}

/** Warnings for a CIDR in an unusual spelling (`GetWarningsForCIDR`); none for an invalid CIDR. */
export function warningsForCidr(text: string, path: string): string[] {
  const parsed = parseCidr(text);
  if (parsed === undefined) return [];
  const { canonical, family } = parsed;
  const quoted = renderValue(text);
  const warnings: string[] = [];
  if (parsed.hostBitsSet) {
    const address = parseAddress(text.slice(0, text.indexOf('/')));
    const single = address === undefined ? '' : formatAddress(family, address.value);
    const choice = `${renderValue(canonical)} or ${renderValue(`${single}/${addressBits(family)}`)}?`;
    warnings.push(`${path}: CIDR value ${quoted} is ambiguous in this context (should be ${choice})`);
  }
  if (parsed.leadingZeros || parsed.ipv4Mapped) {
    warnings.push(`${path}: non-standard CIDR value ${quoted} is invalid: use ${renderValue(canonical)}`);
  }
  if (warnings.length === 0 && family === 'IPv6' && canonical !== text) {
    const form = `should be in RFC 5952 canonical format (${renderValue(canonical)})`;
    warnings.push(`${path}: IPv6 CIDR value ${quoted} ${form}`);
  }
  return warnings;
}

/** Either a URL or a Service (`webhook.ValidateWebhookURL`, `ValidateWebhookService`). */
export function validateClientConfig(config: WebhookClientConfig, path: string): FieldError[] {
  const { url, service } = config;
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  if (url !== undefined) return validateUrl(url, `${path}.url`);
  const { namespace = '', name = '', port = 443, path: servicePath } = service ?? {};
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.service.name`, 'service name is required'));
  if (namespace === '') errors.push(required(`${path}.service.namespace`, 'service namespace is required'));
  for (const message of isValidPortNumber(port)) {
    errors.push(invalid(`${path}.service.port`, port, `port is not valid: ${message}`));
  }
  for (const detail of faultsOfServicePath(servicePath)) {
    errors.push(invalid(`${path}.service.path`, servicePath, detail));
  }
  return errors;
}

/** An empty path is the root, as none is. */
function faultsOfServicePath(path = ''): readonly string[] {
  if (path === '' || path === '/') return [];
  if (path === '//') return ['segment[0] may not be empty'];
  const start = path.startsWith('/') ? [] : ["must start with a '/'"];
  const segments = path.slice(1).replace(/\/$/, '').split('/');
  const wrong = segments.flatMap((segment, i) =>
    segment === ''
      ? [`segment[${i}] may not be empty`]
      : isDNS1123Subdomain(segment).map((fault) => `segment[${i}]: ${fault}`),
  );
  return [...start, ...wrong];
}

function validateUrl(url: string, path: string): FieldError[] {
  const form = '; desired format: https://host[/path]';
  if (isRelative(url)) {
    return [
      invalid(path, '', `'https' is the only allowed URL scheme${form}`),
      invalid(path, '', `host must be specified${form}`),
    ];
  }
  if (!URL.canParse(url)) {
    return [
      required(path, `url must be a valid URL: parse ${JSON.stringify(url)}: invalid URI for request${form}`),
    ];
  }
  const { protocol, host, username, password, hash, search } = new URL(url);
  const errors: FieldError[] = [];
  const wrong = (value: string, detail: string) => errors.push(invalid(path, value, detail));
  if (protocol !== 'https:') wrong(protocol.slice(0, -1), `'https' is the only allowed URL scheme${form}`);
  if (host === '') wrong(host, `host must be specified${form}`);
  if (username !== '' || password !== '') wrong(username, 'user information is not permitted in the URL');
  if (hash !== '') wrong(hash.slice(1), 'fragments are not permitted in the URL');
  if (search !== '') wrong(search.slice(1), 'query parameters are not permitted in the URL');
  return errors;
}

/** A URL without a scheme and a host, which Go's `url.Parse` takes. */
function isRelative(url: string): boolean {
  return /^(?!\/\/)[\w./~-]*$/.test(url);
}
