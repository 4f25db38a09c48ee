/** Test images of Kubernetes that are servers of their own (test/images), as programs of ours. */
import type { ContainerProgram, ProgramContainer } from '../../emulation/program.ts';
import { accessLine } from '../../host/access-log.ts';
import { httpServer } from '../../host/http-server.ts';
import { withResolver } from '../agnhost/clients.ts';
import { AgnhostArguments, type AgnhostContainer, AgnhostRun } from '../agnhost/context.ts';
import { fileAnswer } from '../agnhost/servers.ts';
import { sampleApiServer } from './sample-apiserver.ts';

/** Port of web servers. */
const port = 80;

/**
 * Starts the program of an image in this process.
 *
 * @param argv the name of the image, and its arguments.
 * @param pages the folder of a web server's pages; undefined for other servers.
 * @throws the system's error.
 */
export async function startTestImage(
  argv: readonly string[],
  container: ProgramContainer,
  pages?: string,
): Promise<ContainerProgram> {
  const [image = '', ...args] = argv;
  const run = new AgnhostRun(withResolver(container), new AgnhostArguments(args), argv);
  run.onTerm = () => run.end(0);
  if (image === 'sample-apiserver') await sampleApiServer(run);
  else {
    await serveWeb(run, (pathname) =>
      pages === undefined ? pictureAnswer(image, pathname) : pageAnswer(run.container, pages, pathname),
    );
  }
  return run.asProgram();
}

async function serveWeb(run: AgnhostRun, answerTo: (pathname: string) => Promise<Answer>): Promise<void> {
  await run.listen(port, () =>
    httpServer(async (request, response, { pathname }) => {
      request.resume();
      const { status, type, body } = await answerTo(pathname);
      const { method, url, httpVersion, headers, socket } = request;
      const sent = { method, url, httpVersion, headers, client: socket.remoteAddress ?? '-' };
      const bytes = method === 'HEAD' ? 0 : Buffer.byteLength(body);
      run.print(accessLine('combined', sent, { status, bytes, atMs: Date.now() }).trimEnd());
      response.writeHead(status, { 'Content-Type': type }).end(body);
    }),
  );
}

type Answer = Awaited<ReturnType<typeof fileAnswer>>;

/** A page of the server: `/` is its index. */
async function pageAnswer(container: AgnhostContainer, root: string, pathname: string): Promise<Answer> {
  return await fileAnswer(container, `${root}${pathname.endsWith('/') ? `${pathname}index.html` : pathname}`);
}

/** The answer for update demos: the picture of this image. */
function pictureAnswer(image: string, pathname: string): Promise<Answer> {
  const body = JSON.stringify({ image: `${image}.jpg` });
  return Promise.resolve(
    pathname === '/data.json'
      ? { status: 200, type: 'application/json', body: `${body}\n` }
      : { status: 404, type: 'text/plain; charset=utf-8', body: '404 page not found\n' },
  );
}
