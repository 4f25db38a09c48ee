import fc from 'fast-check';

/**
 * Any code point but half of a surrogate pair, for strings of any text: fast-check's own unit `binary` first looks at all
 * 1.1 million of them, which takes each process of a test run a second.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10_f7_ff })
  .map((n) => String.fromCodePoint(n < 0xd8_00 ? n : n + 0x8_00));
