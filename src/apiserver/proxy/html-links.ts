/** Which attributes of which elements hold addresses (apimachinery `util/proxy/transport.go`, atomsToAttrs). */
const linkAttributes: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    a: 'href',
    applet: 'codebase',
    area: 'href',
    audio: 'src',
    base: 'href',
    blockquote: 'cite',
    body: 'background',
    button: 'formaction',
    command: 'icon',
    del: 'cite',
    embed: 'src',
    form: 'action',
    frame: 'longdesc src',
    head: 'profile',
    html: 'manifest',
    iframe: 'longdesc src',
    img: 'longdesc src usemap',
    input: 'src usemap formaction',
    ins: 'cite',
    link: 'href',
    object: 'classid codebase data usemap',
    q: 'cite',
    script: 'src',
    source: 'src',
    video: 'poster src',
  }).map(([element, attributes]) => [element, new Set(attributes.split(' '))]),
);

/** Elements whose content is always text, and how they end. */
const rawText: ReadonlyMap<string, RegExp> = new Map(
  ['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noscript'].map((name) => [
    name,
    new RegExp(`</${name}`, 'gi'),
  ]),
);

/** Rewrites every link of a page and leaves all other bytes as they are, in one pass over the text. */
export function rewriteLinks(html: string, rewrite: (link: string) => string): string {
  let result = '';
  let copied = 0;
  let position = 0;
  for (;;) {
    const start = html.indexOf('<', position);
    if (start === -1) return result + html.slice(copied);
    if (html.startsWith('<!--', start)) {
      position = after(html, '-->', start + 4);
      continue;
    }
    const name = wordAt(html, start + 1);
    if (name === '') {
      position = start + 1;
      continue;
    }
    const tag = readTag(html, start + 1 + name.length);
    const links = linkAttributes.get(name.toLowerCase());
    for (const attribute of tag.attributes) {
      if (links?.has(attribute.name) !== true) continue;
      const link = html.slice(attribute.from, attribute.to);
      result += html.slice(copied, attribute.from) + rewrite(link);
      copied = attribute.to;
    }
    position = tag.end;
    const ending = rawText.get(name.toLowerCase());
    if (ending !== undefined) {
      ending.lastIndex = position;
      position = ending.exec(html)?.index ?? html.length;
    }
  }
}

interface Attribute {
  /** In lower case. */
  readonly name: string;
  /** The range of its value, without quotes. */
  readonly from: number;
  readonly to: number;
}

/** The attributes of a tag from behind its name on, and the position behind the tag. */
function readTag(html: string, start: number): { attributes: Attribute[]; end: number } {
  const attributes: Attribute[] = [];
  let position = start;
  while (position < html.length) {
    const character = html[position] ?? '';
    if (character === '>') return { attributes, end: position + 1 };
    if (isSpace(character) || character === '/') {
      position++;
      continue;
    }
    const nameEnd = until(
      html,
      position + 1,
      (next) => isSpace(next) || next === '=' || next === '/' || next === '>',
    );
    const name = html.slice(position, nameEnd).toLowerCase();
    const equals = until(html, nameEnd, (next) => !isSpace(next));
    if (html[equals] !== '=') {
      position = nameEnd;
      continue;
    }
    const from = until(html, equals + 1, (next) => !isSpace(next));
    const quote = html[from];
    if (quote === '"' || quote === "'") {
      const to = html.indexOf(quote, from + 1);
      if (to === -1) return { attributes, end: html.length };
      attributes.push({ name, from: from + 1, to });
      position = to + 1;
    } else {
      const to = until(html, from, (next) => isSpace(next) || next === '>');
      attributes.push({ name, from, to });
      position = to;
    }
  }
  return { attributes, end: html.length };
}

/** The position behind a text, the end where there is none. */
function after(html: string, text: string, start: number): number {
  const index = html.indexOf(text, start);
  return index === -1 ? html.length : index + text.length;
}

/** The letters and digits from a position on; a tag name begins with a letter. */
function wordAt(html: string, start: number): string {
  if (!/[a-z]/i.test(html[start] ?? '')) return '';
  return html.slice(
    start,
    until(html, start, (next) => !/[a-z0-9]/i.test(next)),
  );
}

function until(html: string, start: number, stop: (character: string) => boolean): number {
  let position = start;
  while (position < html.length && !stop(html[position] ?? '')) position++;
  return position;
}

function isSpace(character: string): boolean {
  return (
    character === ' ' || character === '\n' || character === '\t' || character === '\r' || character === '\f'
  );
}
