import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { readStaticFiles } from '../../../src/page/static-files.ts';
import { ask } from '../../support/page.ts';

const script = 'console.log("page");';
const folder = mkdtempSync(join(tmpdir(), 'page-'));
let port = 0;
const server = createServer();
beforeAll(async () => {
  writeFileSync(join(folder, 'index.html'), '<!doctype html>');
  writeFileSync(join(folder, 'script-1.js.br'), brotliCompressSync(script));
  writeFileSync(join(folder, 'script-1.js.gz'), gzipSync(script));
  const files = await readStaticFiles(folder);
  server.on('request', (request, response) => files.answer(request, response, request.url ?? ''));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

test.each([
  ['', undefined],
  ['gzip', 'gzip'],
  ['gzip, br', 'br'],
])('a file that is there compressed alone is answered to who accepts %j', async (accepted, encoding) => {
  const headers = accepted === '' ? {} : { 'accept-encoding': accepted };
  const answer = await ask(port, 'GET', '/script-1.js', headers);
  expect([answer.status, answer.headers['content-encoding'], answer.headers['content-type']]).toEqual([
    200,
    encoding,
    'text/javascript; charset=utf-8',
  ]);
  if (encoding === undefined) expect(answer.text).toBe(script);
});

test.each(['/script-1.js.gz', '/other.js'])('%s is no file of the page', async (path) => {
  expect((await ask(port, 'GET', path)).status).toBe(404);
});

test('what is no file is a view', async () => {
  expect((await ask(port, 'GET', '/map')).text).toBe('<!doctype html>');
});
