import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Documents,
  documentsOf,
  fileAnswer,
  type WebServer,
} from '../../../../src/emulation/stand-ins/document-root.ts';
import type { Container } from '../../../../src/objects/types/core.generated.ts';

const nginx: WebServer = { name: 'nginx', root: '/usr/share/nginx/html' };
const httpd: WebServer = { name: 'httpd', root: '/usr/local/apache2/htdocs' };
const caddy: WebServer = { name: 'caddy', root: '/usr/share/caddy' };

/** Reads from a table of paths: a text, an error's code, or `folder`. */
function reading(files: Record<string, string>, asked: string[] = []) {
  return (path: string): Promise<Buffer> => {
    asked.push(path);
    const found = files[path] ?? 'ENOENT';
    const code = found === 'folder' ? 'EISDIR' : found;
    if (/^E[A-Z]+$/.test(code)) return Promise.reject(Object.assign(new Error(code), { code }));
    return Promise.resolve(Buffer.from(found));
  };
}

function ask(server: WebServer, files: Record<string, string>, pathname: string, method = 'GET') {
  const documents = { ...server, isWhole: true };
  return fileAnswer(documents, { method, pathname, search: '', host: 'shop.example' }, reading(files));
}

const pages = (root: string) => ({
  [root]: 'folder',
  [`${root}/index.html`]: 'first',
  [`${root}/style.css`]: 'p {}',
  [`${root}/app.js`]: 'x',
  [`${root}/LICENSE`]: 'free',
  [`${root}/docs`]: 'folder',
  [`${root}/docs/index.html`]: 'more',
  [`${root}/empty`]: 'folder',
  [`${root}/out`]: 'EACCES',
  [`${root}/huge`]: 'EFBIG',
  [`${root}/a b.txt`]: 'blank',
});

describe('the documents of a web server', () => {
  it.for([
    ['/', 200, 'text/html', 'first'],
    ['/index.html', 200, 'text/html', 'first'],
    ['/style.css', 200, 'text/css', 'p {}'],
    ['/app.js', 200, 'application/javascript', 'x'],
    ['/LICENSE', 200, 'application/octet-stream', 'free'],
    ['/docs/', 200, 'text/html', 'more'],
    ['/docs/../style.css', 200, 'text/css', 'p {}'],
    ['//style.css', 200, 'text/css', 'p {}'],
    ['/a%20b.txt', 200, 'text/plain', 'blank'],
    ['/docs', 301, 'text/html', /./],
    ['/nosuch', 404, 'text/html', /404 Not Found[^]*nginx/],
    ['/nosuch/', 404, 'text/html', /./],
    ['/style.css/', 404, 'text/html', /./],
    ['/empty/', 403, 'text/html', /403 Forbidden[^]*nginx/],
    ['/out', 403, 'text/html', /./],
    ['/huge', 500, 'text/html', /./],
    ['/../etc/passwd', 400, 'text/html', /./],
    ['/%2e%2e/%2e%2e/etc/passwd', 400, 'text/html', /./],
    ['/a%00b', 400, 'text/html', /./],
  ] as const)('of nginx: %s is %i %s', async ([path, status, type, body]) => {
    const answer = await ask(nginx, pages(nginx.root), path);
    expect(answer).toMatchObject({ status, headers: { Server: 'nginx', 'Content-Type': type } });
    if (typeof body === 'string') expect(answer?.body.toString()).toBe(body);
    else expect(answer?.body.toString()).toMatch(body);
  });

  it('are moved to the path of a folder, with the name that the client used', async () => {
    const at = async (server: WebServer) =>
      (await ask(server, pages(server.root), '/docs'))?.headers['Location'];
    expect([await at(nginx), await at(httpd), await at(caddy)]).toEqual([
      ...['http://shop.example/docs/', 'http://shop.example/docs/', '/docs/'],
    ]);
  });

  it.for([
    [nginx, 'PUT', '/', 405],
    [nginx, 'POST', '/', 405],
    [nginx, 'POST', '/nosuch', 404],
    [nginx, 'HEAD', '/', 200],
    [httpd, 'POST', '/', 200],
    [httpd, 'DELETE', '/', 405],
    [httpd, 'GET', '/nosuch', 404],
    [httpd, 'GET', '/empty/', 403],
    [caddy, 'POST', '/', 405],
    [caddy, 'GET', '/empty/', 404],
  ] as const)('of %s by %s %s: %i', async ([server, method, path, status]) => {
    expect(await ask(server, pages(server.root), path, method)).toMatchObject({ status });
  });

  it('of a volume below the root leave the first page to the image', async () => {
    const documents: Documents = { ...nginx, isWhole: false };
    const at = async (pathname: string) =>
      await fileAnswer(
        documents,
        { method: 'GET', pathname, search: '', host: '' },
        reading({ [`${nginx.root}/img/a.png`]: 'png' }),
      );
    expect(await at('/')).toBeUndefined();
    expect(await at('/img/a.png')).toMatchObject({ status: 200, headers: { 'Content-Type': 'image/png' } });
    expect(await at('/other')).toMatchObject({ status: 404 });
  });

  it('are asked for below the root alone, whatever the path is', async () => {
    const part = fc.constantFrom(
      '..',
      '.',
      '',
      'a',
      '%2e%2e',
      '%2E.',
      '%2f',
      '%5c',
      '..%2f..',
      'b%20',
      'index.html',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part), async (parts) => {
        const asked: string[] = [];
        const request = { method: 'GET', pathname: `/${parts.join('/')}`, search: '', host: 'a' };
        await fileAnswer({ ...nginx, isWhole: true }, request, reading(pages(nginx.root), asked));
        for (const path of asked) {
          expect(path === nginx.root || path.startsWith(`${nginx.root}/`)).toBe(true);
          expect(path.split('/')).not.toContain('..');
        }
      }),
    );
  });
});

describe('the volumes of documents', () => {
  const isOfMachine = (volume: string): boolean => volume === 'machine';
  const at = (name: string, mountPath: string, subPath?: string): Container => ({
    name: 'main',
    volumeMounts: [{ name, mountPath, ...(subPath === undefined ? {} : { subPath }) }],
  });

  it.for([
    ['page', '/usr/share/nginx/html', true],
    ['page', '/usr/share/nginx/html/', true],
    ['page', '/usr/share/nginx', true],
    ['page', '/', true],
    ['page', '/usr/share/nginx/html/img', false],
    ['page', '/usr/share/nginx/html/index.html', false],
    ['page', '/usr/share/nginx/htmlx', undefined],
    ['page', '/etc/nginx/conf.d', undefined],
    ['machine', '/usr/share/nginx/html', undefined],
  ] as const)('%s at %s: %s', ([name, path, isWhole]) => {
    expect(documentsOf(nginx, at(name, path), isOfMachine)?.isWhole).toBe(isWhole);
  });

  it('are none of other servers', () => {
    expect(documentsOf(undefined, at('page', '/usr/share/nginx/html'), isOfMachine)).toBeUndefined();
    expect(documentsOf(httpd, at('page', '/usr/share/nginx/html'), isOfMachine)).toBeUndefined();
  });
});
