import type { ContainerExit } from '../../../controllers/kubelet/container-runtime.ts';
import { createServer } from '../../../host/node-http.ts';
import { AgnhostArguments, type AgnhostPlace, AgnhostRun } from '../agnhost/context.ts';
import { fileAnswer } from '../agnhost/servers.ts';
import type { ContainerProgram } from '../program.ts';
import { sampleApiServer } from './sample-apiserver.ts';

/** Which test images there are, apart from their programs: commands that only read their names load no server. */

/** Images by what they are. */
export const testImages = ['httpd', 'nginx', 'nautilus', 'kitten', 'sample-apiserver'] as const;
export type TestImage = (typeof testImages)[number];

/** The folder of a web server's pages, which its container may change; undefined for others. */
export function webRootOf(image: TestImage): { readonly path: string; readonly index: string } | undefined {
  if (image === 'httpd') return { path: '/usr/local/apache2/htdocs', index: apachePage };
  return image === 'nginx' ? { path: '/usr/share/nginx/html', index: nginxPage } : undefined;
}

const apachePage = '<html><body><h1>It works!</h1></body></html>\n';
const nginxPage =
  '<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n';

/** Test images of Kubernetes that are servers of their own (test/images), as programs of ours. */

/** Port of web servers. */
const port = 80;

/**
 * Starts the program of an image in this process.
 *
 * @param words its arguments.
 * @throws the system's error.
 */
export async function startTestImage(
  image: TestImage,
  words: readonly string[],
  place: AgnhostPlace,
): Promise<ContainerProgram> {
  const run = new AgnhostRun(place, new AgnhostArguments(words), [image, ...words]);
  run.onTerm = () => run.end(0);
  if (image === 'sample-apiserver') await sampleApiServer(run);
  else await serveWeb(image, run);
  return {
    ended: run.ended.then((exitCode): ContainerExit => ({ exitCode })),
    signal: (name) => {
      if (name === 'SIGKILL') run.end(137);
      else run.onTerm();
    },
  };
}

async function serveWeb(image: TestImage, run: AgnhostRun): Promise<void> {
  const root = webRootOf(image);
  await run.listen(port, () =>
    createServer((request, response) => {
      request.resume();
      const path = request.url ?? '/';
      const answer = root === undefined ? pictureAnswer(image, path) : pageAnswer(run.place, root.path, path);
      void answer.then(({ status, type, body }) => {
        const line = `"${request.method ?? ''} ${path} HTTP/1.1" ${status}`;
        run.print(`${request.socket.remoteAddress ?? '-'} - - ${line}`);
        response.writeHead(status, { 'Content-Type': type }).end(body);
      });
    }),
  );
}

type Answer = Awaited<ReturnType<typeof fileAnswer>>;

/** A page of the server: `/` is its index. */
async function pageAnswer(place: AgnhostPlace, root: string, url: string): Promise<Answer> {
  const { pathname } = new URL(url, 'http://page');
  return await fileAnswer(place, `${root}${pathname.endsWith('/') ? `${pathname}index.html` : pathname}`);
}

/** The answer for update demos: the picture of this image. */
function pictureAnswer(image: TestImage, url: string): Promise<Answer> {
  const { pathname } = new URL(url, 'http://picture');
  const body = JSON.stringify({ image: `${image}.jpg` });
  return Promise.resolve(
    pathname === '/data.json'
      ? { status: 200, type: 'application/json', body: `${body}\n` }
      : { status: 404, type: 'text/plain; charset=utf-8', body: '404 page not found\n' },
  );
}
