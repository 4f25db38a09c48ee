/** Hardware addresses of Pods' further interfaces. */

/** 48 bits; Infiniband's are longer, which no interface of a Pod has here. */
const forms =
  /^(?:[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2})$/i;

/** Reads an address in one of the forms of Go's `net.ParseMAC`. @returns lower case with colons; undefined for no address. */
export function parseMac(text: string): string | undefined {
  if (!forms.test(text)) return undefined;
  return withColons(text.toLowerCase().replaceAll(/[^0-9a-f]/g, ''));
}

/**
 * The address of an interface that nothing else chooses one for: the same whenever it is asked for, so that a restart
 * changes none. Locally administered, unicast.
 *
 * @param uid of the Pod.
 */
export function macOf(uid: string, interfaceName: string): string {
  const hash = fnv1a(`${uid}/${interfaceName}`);
  const first = ((hash >> 40n) & 0xfcn) | 0x02n;
  const value = (first << 40n) | (hash & 0xff_ffff_ffffn);
  return withColons(value.toString(16).padStart(12, '0'));
}

/** FNV-1a, folded from 64 bits to 48: its last characters change the low bits alone. */
function fnv1a(text: string): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (let i = 0; i < text.length; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100_0000_01b3n);
  }
  return BigInt.asUintN(48, hash ^ (hash >> 16n));
}

function withColons(digits: string): string {
  return digits.match(/../g)?.join(':') ?? '';
}
