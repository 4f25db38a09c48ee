import { parseServiceCidr, type ServiceCidr } from '../allocation/address-range.ts';

/** A flag's value that cannot be used; the message names the flag and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

const minAddresses = 8n;
const minIpv6Prefix = 64;

/**
 * `--service-cluster-ip-range`: one CIDR, or two of different families, primary first.
 * @throws {ConfigError}
 */
export function serviceCidrs(text: string): readonly [ServiceCidr, ...ServiceCidr[]] {
  const flag = '--service-cluster-ip-range';
  const parts = text.split(',').map((part) => part.trim());
  const cidrs = parts.map((part) => {
    const cidr = parseServiceCidr(part);
    if (cidr === undefined)
      throw new ConfigError(
        `${flag}: ${JSON.stringify(part)} is not a CIDR such as 10.0.0.0/24 or fd00::/112`,
      );
    if (cidr.range.size < minAddresses) {
      throw new ConfigError(`${flag}: ${part} is too small: at least ${minAddresses} addresses are needed`);
    }
    if (cidr.range.family === 'IPv6' && Number(part.split('/')[1]) < minIpv6Prefix) {
      throw new ConfigError(`${flag}: ${part} is too large: an IPv6 range is at most a /${minIpv6Prefix}`);
    }
    return cidr;
  });
  const [primary, secondary, ...more] = cidrs;
  if (primary === undefined || more.length > 0) throw new ConfigError(`${flag}: must be one or two CIDRs`);
  if (secondary === undefined) return [primary];
  if (secondary.range.family === primary.range.family) {
    throw new ConfigError(`${flag}: two CIDRs must be of different families`);
  }
  return [primary, secondary];
}

/** `--service-node-port-range`: `first-last` or `first+count`, both ends included. @throws {ConfigError} */
export function nodePortRange(text: string): { readonly first: number; readonly last: number } {
  const flag = '--service-node-port-range';
  const match = /^(\d{1,5})([-+])(\d{1,5})$/.exec(text.trim());
  const [, from = '', sign = '', to = ''] = match ?? [];
  const first = Number(from);
  const last = sign === '+' ? first + Number(to) : Number(to);
  if (match === null || first < 1 || last > 65535 || last < first) {
    throw new ConfigError(`${flag}: ${JSON.stringify(text)} is not a port range such as 30000-32767`);
  }
  return { first, last };
}
