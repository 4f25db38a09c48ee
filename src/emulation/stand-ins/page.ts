import type { IncomingHttpHeaders } from 'node:http';

/** What the page of a Pod shows. */
export interface PageContent {
  readonly pod: string;
  readonly namespace: string;
  readonly node: string;
  readonly image: string;
  readonly addresses: readonly string[];
  readonly method: string;
  readonly path: string;
  /** The client's address and port. */
  readonly client: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Whether a client wants HTML rather than JSON (RFC 9110, 12.5.1): it names HTML, and does not like JSON better. Without a
 * name, as curl asks for anything, it does not.
 */
export function prefersHtml(accept = ''): boolean {
  const weights = new Map<string, number>();
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    weights.set(type, Number(weight));
  }
  const html = Math.max(weights.get('text/html') ?? 0, weights.get('application/xhtml+xml') ?? 0);
  return html > 0 && html >= (weights.get('application/json') ?? 0);
}

/** Headers that say how a request came, in the order in which they are shown. */
const wayHeaders = [
  ...['Host', 'Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Forwarded-Port'],
  ...['X-Real-IP', 'X-Request-ID', 'Via', 'User-Agent'],
];

/** The page of a Pod: its name in a colour of its own, and how the request came. It runs no script. */
export function podPage(content: PageContent): string {
  const { pod, namespace, node, image, addresses, method, path, client, headers } = content;
  const rows: (readonly [name: string, value: string])[] = [
    ['Namespace', namespace],
    ['Node', node],
    ['Addresses', addresses.join(', ')],
    ['Image', `${image} (a stand-in of servicenet answers)`],
    ['Request', `${method} ${path}`],
    ['Client', client],
  ];
  for (const name of wayHeaders) {
    const value = headers[name.toLowerCase()];
    if (value !== undefined) rows.push([name, String(value)]);
  }
  return [
    '<!DOCTYPE html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${inHtml(pod)}</title>`,
    `<style>${style}</style>`,
    '</head>',
    `<body style="background: ${colourOf(pod)}">`,
    `<h1>${inHtml(pod)}</h1>`,
    '<table>',
    ...rows.map(([name, value]) => `<tr><th>${inHtml(name)}</th><td>${inHtml(value)}</td></tr>`),
    '</table>',
    '<p><a href="">Reload</a></p>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

const style = [
  'body { color: #fff; font: 1.1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 60rem; padding: 0 1rem }',
  'h1 { font-size: clamp(2rem, 7vw, 5rem); line-height: 1.1; overflow-wrap: anywhere }',
  'th { padding-right: 1.5rem; text-align: left; vertical-align: top; white-space: nowrap }',
  'td { overflow-wrap: anywhere }',
  'a { border: 2px solid; border-radius: 0.4rem; color: inherit; padding: 0.4rem 1rem; text-decoration: none }',
].join('\n');

/** A colour of a name, dark enough for white text: the same on each machine. */
export function colourOf(name: string): string {
  // FNV-1a, with its bits mixed once more: names of Pods differ in their last letters alone.
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  const mixed = (hash ^ (hash >>> 13)) >>> 0;
  return `hsl(${mixed % 360}, ${55 + ((mixed >>> 9) % 30)}%, ${24 + ((mixed >>> 17) % 12)}%)`;
}

const entities: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
};

/** A text in HTML, between tags or in quotation marks. */
export function inHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');
}
