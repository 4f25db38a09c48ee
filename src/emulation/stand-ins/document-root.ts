import type { Container } from '../../objects/types/core.generated.ts';
import { headerValue } from '../../host/http-server.ts';
import { inHtml } from './page.ts';

/** A web server whose image is known, and where it has its documents. */
export interface WebServer {
  readonly name: 'nginx' | 'httpd' | 'caddy';
  readonly root: string;
}

/** The documents of a web server that come from volumes. */
export interface Documents extends WebServer {
  /** A volume has the whole folder; otherwise the image has the first page, which is ours. */
  readonly isWhole: boolean;
}

/**
 * The documents that volumes give a container; undefined: none.
 *
 * @param isOfMachine true for a volume that shows a folder of the machine: nothing of it is served.
 */
export function documentsOf(
  server: WebServer | undefined,
  { volumeMounts = [] }: Container,
  isOfMachine: (volume: string) => boolean,
): Documents | undefined {
  if (server === undefined) return undefined;
  const { root } = server;
  const places = volumeMounts
    .filter(({ name }) => !isOfMachine(name))
    .map(({ mountPath }) => (mountPath === '/' ? '/' : mountPath.replace(/\/$/, '')));
  const isWhole = places.some((at) => at === root || at === '/' || root.startsWith(`${at}/`));
  return isWhole || places.some((at) => at.startsWith(`${root}/`)) ? { ...server, isWhole } : undefined;
}

/** The answer of a web server. */
export interface FileAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A request for a document. */
export interface FileRequest {
  readonly method: string;
  /** The path of the target, as it was sent. */
  readonly pathname: string;
  /** With its question mark. */
  readonly search: string;
  readonly host: string;
}

/**
 * What the server of an image answers with the files of its volumes.
 *
 * @param read the file at a path of the container. @throws the system's error: EISDIR for a folder, EACCES for what leads out.
 * @returns undefined: the image itself has it.
 * @throws {URIError} for a path that is no text.
 */
export async function fileAnswer(
  documents: Documents,
  request: FileRequest,
  read: (path: string) => Promise<Buffer>,
): Promise<FileAnswer | undefined> {
  const { name, root, isWhole } = documents;
  const { method } = request;
  const path = pathOf(request.pathname);
  if (path === undefined) return refusal(name, 400);
  if (!(method === 'GET' || method === 'HEAD' || (method === 'POST' && name !== 'caddy'))) {
    return refusal(name, 405);
  }
  const found = await lookUp(`${root}${path}`, read);
  if (found === 'folder' && !path.endsWith('/')) return moved(name, `${path}/`, request);
  const isFirst = path === '/' || path === '/index.html';
  if (found === 'missing' && isFirst && !isWhole) return undefined;
  if (typeof found === 'string') return refusal(name, statusOf(name, found));
  // What nginx finds it does not serve by POST; httpd does.
  if (method === 'POST' && name === 'nginx') return refusal(name, 405);
  const file = path.endsWith('/') ? 'index.html' : path;
  return { status: 200, headers: { ...identityOf(name), ...contentType(name, file) }, body: found };
}

type NotFound = 'missing' | 'folder' | 'forbidden' | 'failed';

/** The content of a file, or of the first page of a folder. */
async function lookUp(path: string, read: (path: string) => Promise<Buffer>): Promise<Buffer | NotFound> {
  if (!path.endsWith('/')) return await contentOf(path, read);
  const index = await contentOf(`${path}index.html`, read);
  if (index !== 'missing') return index === 'folder' ? 'forbidden' : index;
  const folder = await contentOf(path.slice(0, -1), read);
  return Buffer.isBuffer(folder) ? 'missing' : folder;
}

async function contentOf(path: string, read: (path: string) => Promise<Buffer>): Promise<Buffer | NotFound> {
  try {
    return await read(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'EISDIR') return 'folder';
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(code)) return 'missing';
    return ['EACCES', 'EPERM', 'ELOOP'].includes(code) ? 'forbidden' : 'failed';
  }
}

/** Of a folder without a first page, nginx and httpd say that it may not be listed, caddy that there is nothing. */
function statusOf(server: WebServer['name'], found: NotFound): number {
  if (found === 'missing') return 404;
  if (found === 'folder') return server === 'caddy' ? 404 : 403;
  return found === 'forbidden' ? 403 : 500;
}

/** Decoded and without `.`, `..` and empty names; undefined: it leads above the root, or holds what no file is named. */
function pathOf(pathname: string): string | undefined {
  const text = decodeURIComponent(pathname);
  if (!text.startsWith('/') || text.includes('\0')) return undefined;
  const names: string[] = [];
  const parts = text.split('/').slice(1);
  for (const part of parts) {
    if (part === '..' && names.pop() === undefined) return undefined;
    if (part !== '' && part !== '.' && part !== '..') names.push(part);
  }
  const isFolder = ['', '.', '..'].includes(parts.at(-1) ?? '');
  return names.length === 0 ? '/' : `/${names.join('/')}${isFolder ? '/' : ''}`;
}

function moved(server: WebServer['name'], path: string, { search, host }: FileRequest): FileAnswer {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  const isWhole = server !== 'caddy' && host !== '';
  const location = headerValue(`${isWhole ? `http://${host}` : ''}${encoded}${search}`);
  const answer = refusal(server, server === 'caddy' ? 308 : 301);
  return { ...answer, headers: { ...answer.headers, Location: location } };
}

const titles: Readonly<Record<number, string>> = {
  ...{ 301: 'Moved Permanently', 308: 'Permanent Redirect', 400: 'Bad Request', 403: 'Forbidden' },
  ...{ 404: 'Not Found', 405: 'Not Allowed', 500: 'Internal Server Error' },
};

/** A page of an error; caddy sends none. */
function refusal(server: WebServer['name'], status: number): FileAnswer {
  const title = titles[status] ?? '';
  const allow = server !== 'nginx' && status === 405 ? { Allow: 'GET, HEAD' } : {};
  const page =
    server === 'nginx'
      ? `<center><h1>${status} ${inHtml(title)}</h1></center>\n<hr><center>nginx</center>`
      : `<h1>${inHtml(title)}</h1>`;
  const text = `<html>\n<head><title>${status} ${inHtml(title)}</title></head>\n<body>\n${page}\n</body>\n</html>\n`;
  const isEmpty = server === 'caddy';
  const type = isEmpty ? {} : { 'Content-Type': 'text/html' };
  return {
    status,
    headers: { ...identityOf(server), ...type, ...allow },
    body: Buffer.from(isEmpty ? '' : text),
  };
}

const softwares = { nginx: 'nginx', httpd: 'Apache', caddy: 'Caddy' } as const;

function identityOf(server: WebServer['name']): Record<string, string> {
  return { Server: softwares[server] };
}

/** Of names' ends, as the servers' own tables have them. */
const types: Readonly<Record<string, string>> = {
  ...{ html: 'text/html', htm: 'text/html', css: 'text/css', txt: 'text/plain', md: 'text/markdown' },
  ...{
    xml: 'text/xml',
    json: 'application/json',
    svg: 'image/svg+xml',
    png: 'image/png',
    ico: 'image/x-icon',
  },
  ...{ jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', avif: 'image/avif' },
  ...{ js: 'application/javascript', mjs: 'application/javascript', wasm: 'application/wasm' },
  ...{ pdf: 'application/pdf', zip: 'application/zip', woff: 'font/woff', woff2: 'font/woff2' },
  ...{ mp3: 'audio/mpeg', mp4: 'video/mp4', webm: 'video/webm' },
};

/** nginx calls what it does not know bytes; the others say nothing. */
function contentType(server: WebServer['name'], path: string): Record<string, string> {
  const [, end = ''] = /\.([^./]+)$/.exec(path.toLowerCase()) ?? [];
  const known = Object.hasOwn(types, end) ? types[end] : undefined;
  if (known === undefined) return server === 'nginx' ? { 'Content-Type': 'application/octet-stream' } : {};
  const isScript = known === 'application/javascript' && server !== 'nginx';
  const type = isScript ? 'text/javascript' : known;
  return { 'Content-Type': server === 'caddy' && type.startsWith('text/') ? `${type}; charset=utf-8` : type };
}
