import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { isRecord } from '../objects/json.ts';
import { errorMessage } from '../objects/status.ts';
import { packageFolder, pageFolder } from '../paths.ts';

/** What a browser loads first. It holds nothing of a cluster, and needs no session. */
export interface StaticFiles {
  /** Answers a GET or HEAD; a path that is no file's is a view of the page, whose first file is `index.html`. */
  answer(request: IncomingMessage, response: ServerResponse, pathname: string): void;
}

interface StaticFile {
  readonly type: string;
  readonly body: Buffer;
  /** By the name of the encoding, best first. */
  readonly encoded: readonly (readonly [string, Buffer])[];
  readonly cache: string;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;
const index = 'index.html';

/**
 * Reads the files of a folder: an index, and others that have a hash in their names. One that is there compressed, by
 * gzip at least, may be missing as it is.
 *
 * @throws the system's error.
 */
export async function readStaticFiles(folder: string): Promise<StaticFiles> {
  const names = new Set(await readdir(folder));
  const files = new Map<string, StaticFile>();
  for (const name of new Set([...names].map((each) => each.replace(/\.(?:br|gz)$/, '')))) {
    const type = types[extname(name)];
    if (type === undefined) continue;
    const encoded = await Promise.all(
      encodings
        .filter(([, extension]) => names.has(`${name}${extension}`))
        .map(
          async ([encoding, extension]) =>
            [encoding, await readFile(join(folder, `${name}${extension}`))] as const,
        ),
    );
    const cache = name === index ? 'no-cache' : 'public, max-age=31536000, immutable';
    const zipped = encoded.find(([encoding]) => encoding === 'gzip')?.[1];
    const body =
      names.has(name) || zipped === undefined ? await readFile(join(folder, name)) : gunzipSync(zipped);
    files.set(name, { type, body, encoded, cache });
  }
  const first = files.get(index);
  if (first === undefined) throw new Error(`${folder} has no ${index}`);
  return {
    answer: (request, response, pathname) => {
      const name = pathname.slice(1);
      const isFile = name.includes('.') && !name.includes('/');
      const file = isFile ? files.get(name) : first;
      if (file === undefined) {
        response
          .writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' })
          .end('there is no such file\n');
        return;
      }
      const accepted = request.headers['accept-encoding'] ?? '';
      const [encoding, body] = file.encoded.find(([name]) => accepted.includes(name)) ?? ['', file.body];
      response.writeHead(200, {
        'Content-Type': file.type,
        'Content-Length': body.length,
        'Cache-Control': file.cache,
        Vary: 'Accept-Encoding',
        ...(encoding === '' ? {} : { 'Content-Encoding': encoding }),
      });
      response.end(request.method === 'HEAD' ? undefined : body);
    },
  };
}

/** The files cannot be had. */
export class NotBuiltError extends Error {
  override readonly name = 'NotBuiltError';
}

/**
 * The files of this package; in the source tree they are built first, unless they were before from the same sources.
 *
 * @throws {NotBuiltError} saying what to do.
 */
export async function staticFilesOfPackage(): Promise<StaticFiles> {
  try {
    return await readStaticFiles(pageFolder ?? (await built()));
  } catch (error) {
    const why = errorMessage(error);
    throw new NotBuiltError(`the page is not built: run npm ci && npm run build (${why})`, { cause: error });
  }
}

/** What the files are made of, below the folder of the package. */
const sources = [
  'src/page',
  'src/view',
  'src/objects',
  'docs/troubleshooting.md',
  'package.json',
  'hack/build-page.ts',
];

async function built(): Promise<string> {
  const cache = join(packageFolder, 'node_modules', '.cache', 'servicenet-page');
  const folder = join(cache, await hashOf(sources));
  const isThere = await readdir(folder).then(
    (names) => names.includes(index),
    () => false,
  );
  if (isThere) return folder;
  const builder: unknown = await import(pathToFileURL(join(packageFolder, 'hack', 'build-page.ts')).href);
  if (!isBuilder(builder)) throw new Error('hack/build-page.ts has no buildPage');
  await mkdir(cache, { recursive: true });
  // Whole or not at all: another process may build at the same time.
  const made = await mkdtemp(join(cache, 'building-'));
  try {
    await builder.buildPage(made);
    await rename(made, folder);
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    const others = await readdir(folder).catch((): string[] => []);
    if (!others.includes(index)) throw error;
  }
  return folder;
}

interface Builder {
  buildPage(folder: string): Promise<void>;
}

/** It is of this source tree, and not in the package. */
function isBuilder(value: unknown): value is Builder {
  return isRecord(value) && typeof value['buildPage'] === 'function';
}

async function hashOf(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of paths) {
    const whole = join(packageFolder, path);
    const names = extname(path) === '' ? await readdir(whole, { recursive: true }) : [''];
    for (const name of names.toSorted()) {
      const file = join(whole, name);
      if (extname(file) === '') continue;
      hash.update(`${file}\n`).update(await readFile(file));
    }
  }
  return hash.digest('hex').slice(0, 32);
}
