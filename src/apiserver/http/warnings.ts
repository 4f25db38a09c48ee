/** Warnings longer than this altogether, in characters, are cut, and those behind it dropped (apiserver `endpoints/filters/warning.go`). */
const maxTotal = 4096;
const maxEachWhenCut = 256;

/**
 * The `Warning` header values of an answer: `299 - "…"` with Go's quoting (apimachinery `util/net/http.go`,
 * NewWarningHeader). Repeated texts are dropped, control characters too, since they could end the header.
 */
export function warningHeaders(texts: readonly string[]): string[] {
  return bounded([...new Set(texts)]).map((text) => {
    // no-control-regex: the control characters are intended here
    const clean = text.replaceAll(/\p{Cc}/gu, '').replaceAll(/["\\]/g, '\\$&');
    return latin1(`299 - "${clean}"`);
  });
}

/**
 * The first text that does not fit turns cutting on, for earlier ones as well; from then on texts are added until the
 * limit is reached.
 */
function bounded(texts: readonly string[]): readonly string[] {
  let total = 0;
  const overflow = texts.findIndex((text) => (total += lengthOf(text)) > maxTotal);
  if (overflow < 0) return texts;
  const kept: string[] = [];
  let written = 0;
  for (const [i, text] of texts.entries()) {
    if (i > overflow && written >= maxTotal) break;
    const short = Array.from(text.slice(0, 2 * maxEachWhenCut))
      .slice(0, maxEachWhenCut)
      .join('');
    kept.push(short);
    written += lengthOf(short);
  }
  return kept;
}

/** Go counts characters. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _character of text) length++;
  return length;
}

/** UTF-8 bytes as a header value: Node writes headers one byte per character. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
