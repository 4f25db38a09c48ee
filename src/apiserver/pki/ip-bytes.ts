import ipaddr from 'ipaddr.js';

/** The 4 or 16 bytes of an address that `net.isIP` accepts. */
export function ipBytes(address: string): Buffer {
  return Buffer.from(ipaddr.parse(address).toByteArray());
}
