import { parseServiceCidr, type ServiceCidr } from '../allocation/address-range.ts';
import { WrongValue } from './errors.ts';
import { text } from './flags.ts';

const minAddresses = 8n;
const minIpv6Prefix = 64;

/** `--service-cluster-ip-range`: one CIDR, or two of different families, primary first. @throws {WrongValue} */
export function readServiceCidrs(value: unknown): readonly [ServiceCidr, ...ServiceCidr[]] {
  const [primary, secondary, ...more] = text(value)
    .split(',')
    .map((part) => serviceCidr(part.trim()));
  if (primary === undefined || more.length > 0) throw new WrongValue('must be one or two CIDRs');
  if (secondary === undefined) return [primary];
  if (secondary.range.family === primary.range.family) {
    throw new WrongValue('two CIDRs must be of different families');
  }
  return [primary, secondary];
}

function serviceCidr(given: string): ServiceCidr {
  const cidr = parseServiceCidr(given);
  if (cidr === undefined) {
    throw new WrongValue(`${JSON.stringify(given)} is not a CIDR such as 10.0.0.0/24 or fd00::/112`);
  }
  if (cidr.range.size < minAddresses) {
    throw new WrongValue(`${given} is too small: at least ${minAddresses} addresses are needed`);
  }
  if (cidr.range.family === 'IPv6' && Number(given.split('/')[1]) < minIpv6Prefix) {
    throw new WrongValue(`${given} is too large: an IPv6 range is at most a /${minIpv6Prefix}`);
  }
  return cidr;
}

/** `--service-node-port-range`: `first-last` or `first+count`, both ends included. @throws {WrongValue} */
export function nodePortRange(value: unknown): { readonly first: number; readonly last: number } {
  const given = text(value);
  const match = /^(\d{1,5})([-+])(\d{1,5})$/.exec(given.trim());
  const [, from = '', sign = '', to = ''] = match ?? [];
  const first = Number(from);
  const last = sign === '+' ? first + Number(to) : Number(to);
  if (match === null || first < 1 || last > 65535 || last < first) {
    throw new WrongValue(`${JSON.stringify(given)} is not a port range such as 30000-32767`);
  }
  return { first, last };
}
