const offsetBasis = [0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e] as const;
/** The prime of 128 bits is 2^88 + this. */
const primeLow = 0x13b;
const utf8 = new TextEncoder();

/**
 * The FNV-1a hash of a text's UTF-8 bytes, 128 bits as 32 hexadecimal digits (Go's `hash/fnv`, `New128a`). The hash is
 * kept in four words of 32 bits, lowest first, so that all intermediate results stay within 53 bits.
 */
export function fnv128a(text: string): string {
  let a: number = offsetBasis[0];
  let b: number = offsetBasis[1];
  let c: number = offsetBasis[2];
  let d: number = offsetBasis[3];
  for (const byte of utf8.encode(text)) {
    a = (a ^ byte) >>> 0;
    const low = a * primeLow;
    const second = b * primeLow + Math.floor(low / 0x1_0000_0000);
    // Shifting by 88 bits moves the lowest 40 into the upper two words.
    const third = c * primeLow + Math.floor(second / 0x1_0000_0000) + ((a << 24) >>> 0);
    const fourth = d * primeLow + Math.floor(third / 0x1_0000_0000) + (((a >>> 8) | ((b << 24) >>> 0)) >>> 0);
    a = low >>> 0;
    b = second >>> 0;
    c = third >>> 0;
    d = fourth >>> 0;
  }
  return [d, c, b, a].map((word) => word.toString(16).padStart(8, '0')).join('');
}
