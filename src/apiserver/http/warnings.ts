/** Warnings longer than this altogether are cut one by one (apiserver `endpoints/filters/warning.go`). */
const maxTotal = 4096;
const maxEachWhenCut = 256;

/**
 * The `Warning` header values of an answer: `299 - "…"` with Go's quoting (apimachinery `util/net/http.go`,
 * NewWarningHeader). Repeated texts are dropped, control characters too, since they could end the header.
 */
export function warningHeaders(texts: readonly string[]): string[] {
  const unique = [...new Set(texts)];
  const total = unique.reduce((sum, text) => sum + text.length, 0);
  return unique.map((text) => {
    const short = total > maxTotal ? text.slice(0, maxEachWhenCut) : text;
    // eslint's no-control-regex is about typing slips; here the control characters are meant
    const clean = short.replaceAll(/\p{Cc}/gu, '').replaceAll(/["\\]/g, '\\$&');
    return latin1(`299 - "${clean}"`);
  });
}

/** UTF-8 bytes as a header value: Node writes headers one byte per character. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
