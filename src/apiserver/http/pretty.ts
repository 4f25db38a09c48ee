/**
 * Whether an answer shall be indented: `?pretty=true`, or a client that people read over the shoulder of
 * (apiserver `handlers/negotiation`, isPrettyPrint).
 */
export function wantsPretty(query: string, userAgent: string | undefined): boolean {
  // Without parsing the query: it may be refused for its length.
  const [, value = ''] = /(?:^|&)pretty=([^&]*)/.exec(query) ?? [];
  if (value !== '') return goTrue.has(value);
  if (userAgent === undefined) return false;
  return userAgent.startsWith('curl') || userAgent.startsWith('Wget') || userAgent.startsWith('Mozilla/5.0');
}

const goTrue: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);

const quote = 0x22;
const backslash = 0x5c;

/**
 * Indents valid JSON text by two spaces, changing no value: numbers stay as they are written, which a parser
 * would not promise.
 */
export function indentJson(text: string): string {
  let indented = '';
  let depth = 0;
  let runStart = 0;
  const newline = (): string => `\n${'  '.repeat(depth)}`;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case quote:
        for (i++; i < text.length && text.charCodeAt(i) !== quote; i++) {
          if (text.charCodeAt(i) === backslash) i++;
        }
        break;
      case 0x7b: // {
      case 0x5b: {
        // [
        const closed = text.charCodeAt(i + 1);
        if (closed === 0x7d || closed === 0x5d) {
          i++;
          break;
        }
        depth++;
        indented += text.slice(runStart, i + 1) + newline();
        runStart = i + 1;
        break;
      }
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
        indented += text.slice(runStart, i) + newline();
        runStart = i;
        break;
      case 0x2c: // ,
        indented += text.slice(runStart, i + 1) + newline();
        runStart = i + 1;
        break;
      case 0x3a: // :
        indented += `${text.slice(runStart, i + 1)} `;
        runStart = i + 1;
        break;
      case 0x20: // white space that is not in a string: the text may be indented already
      case 0x0a:
      case 0x0d:
      case 0x09:
        indented += text.slice(runStart, i);
        runStart = i + 1;
        break;
    }
  }
  return indented + text.slice(runStart).trimEnd();
}
