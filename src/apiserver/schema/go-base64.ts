/** Base64 as Go's base64.StdEncoding reads it, its error texts included. */

/** A text that is no base64; the message is Go's CorruptInputError. */
class Base64Error extends Error {
  override readonly name = 'Base64Error';
  constructor(offset: number) {
    super(`illegal base64 data at input byte ${offset}`);
  }
}

const clean = /^[A-Za-z0-9+/]*={0,2}$/;

/** The same bytes in canonical spelling: no line breaks, no stray bits. @throws {Base64Error} */
export function canonicalBase64(text: string): string {
  if (text.length % 4 !== 0 || !clean.test(text)) checkQuanta(text);
  else if (!text.endsWith('=')) return text;
  return Buffer.from(text, 'base64').toString('base64');
}

function isBreak(character: string): boolean {
  return character === '\n' || character === '\r';
}

/** Walks groups of four as decodeQuantum does, to find the offset that Go complains about. */
function checkQuanta(text: string): void {
  let at = 0;
  for (;;) {
    for (let n = 0; n < 4;) {
      if (at >= text.length) {
        if (n === 0) return;
        throw new Base64Error(at - n);
      }
      const character = text.charAt(at++);
      if (/[A-Za-z0-9+/]/.test(character)) {
        n++;
      } else if (!isBreak(character)) {
        if (character !== '=' || n < 2) throw new Base64Error(at - 1);
        if (n === 2) {
          while (isBreak(text.charAt(at))) at++;
          if (at >= text.length) throw new Base64Error(text.length);
          if (text.charAt(at++) !== '=') throw new Base64Error(at - 1);
        }
        while (isBreak(text.charAt(at))) at++;
        if (at < text.length) throw new Base64Error(at);
        return;
      }
    }
  }
}
