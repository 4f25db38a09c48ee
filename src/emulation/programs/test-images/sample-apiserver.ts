/**
 * Kubernetes' sample API server (staging/src/k8s.io/sample-apiserver): `wardle.example.com/v1alpha1` with its flunders and
 * fischers, in memory. Clients are not authenticated.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { StatusError } from '../../../objects/status.ts';
import { badRequest, plainError, resourceNotFound } from '../../../objects/status-errors.ts';
import type { AgnhostRun } from '../agnhost/context.ts';
import { FlunderStore, type FlunderSelection } from './flunder-store.ts';
import { discoveryDocument, groupVersion, type SampleResource, sampleResources } from './sample-discovery.ts';

/** Most bytes of a body. */
const maxBodyBytes = 3 * 1024 * 1024;

/** Serves by TLS with the files of `--tls-cert-file` and `--tls-private-key-file`. @throws the system's error. */
export async function sampleApiServer(run: AgnhostRun): Promise<void> {
  const { args, place } = run;
  const cert = await place.readFile(args.text('tls-cert-file'));
  const key = await place.readFile(args.text('tls-private-key-file'));
  const store = new FlunderStore();
  await run.listen(args.number('secure-port', 443), () =>
    createServer({ cert, key }, (request, response) => {
      handle(store, request, response).then(
        (status) => run.print(`${request.method ?? ''} ${request.url ?? ''} ${status}`),
        (error: unknown) => {
          place.write('stderr', `${String(error)}\n`);
          response.destroy();
        },
      );
    }),
  );
}

/** The object that a path of the group version names. */
interface Target extends FlunderSelection {
  readonly resource: SampleResource;
}

async function handle(
  store: FlunderStore,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number> {
  const url = new URL(request.url ?? '/', 'https://sample-apiserver');
  const body = await bodyOf(request);
  if (['/healthz', '/livez', '/readyz'].includes(url.pathname)) {
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end('ok');
    return 200;
  }
  const target = targetOf(url);
  if (target !== undefined && request.method === 'GET' && isWatch(url)) {
    store.watch(target, url.searchParams.get('resourceVersion') ?? '', response);
    return 200;
  }
  let status = 200;
  let answer: unknown;
  try {
    const document = discoveryDocument(url.pathname);
    if (document !== undefined) answer = document;
    else if (target === undefined) throw resourceNotFound();
    else ({ status, answer } = perform(store, request, target, body));
  } catch (error) {
    const refusal = error instanceof StatusError ? error : plainError(String(error));
    status = refusal.code;
    answer = refusal.toStatus();
  }
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(answer)}\n`);
  return status;
}

/** @throws {StatusError} */
function perform(
  store: FlunderStore,
  { method = '', headers }: IncomingMessage,
  target: Target,
  body: Buffer,
): { readonly status: number; readonly answer: unknown } {
  const object = (): JsonRecord => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(body.toString());
    } catch (error) {
      throw badRequest(String(error));
    }
    if (!isRecord(parsed)) throw badRequest('the body is no object');
    return parsed;
  };
  const isOne = target.name !== undefined;
  if (method === 'GET') return { status: 200, answer: isOne ? store.get(target) : store.list(target) };
  if (method === 'POST' && !isOne) return { status: 201, answer: store.create(target, object()) };
  if (method === 'PUT' && isOne) return { status: 200, answer: store.update(target, object()) };
  if (method === 'PATCH' && isOne) {
    // A strategic merge of kinds without keys of lists is a merge.
    const known = ['application/merge-patch+json', 'application/strategic-merge-patch+json'];
    if (!known.includes(headers['content-type'] ?? '')) {
      throw new StatusError(
        415,
        'UnsupportedMediaType',
        `the body of the request was in an unknown format - accepted media types include: ${known.join(', ')}`,
      );
    }
    return { status: 200, answer: store.patch(target, object()) };
  }
  if (method === 'DELETE') {
    return { status: 200, answer: isOne ? store.delete(target) : store.deleteCollection(target) };
  }
  throw new StatusError(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
  );
}

/** Below `/apis/wardle.example.com/v1alpha1`; undefined for others. */
function targetOf({ pathname, searchParams }: URL): Target | undefined {
  const root = `/apis/${groupVersion}/`;
  if (!pathname.startsWith(root)) return undefined;
  const parts = pathname.slice(root.length).split('/').filter(Boolean).map(decodeURIComponent);
  const isNamespaced = parts[0] === 'namespaces' && parts.length > 2;
  const [plural = '', name, ...more] = isNamespaced ? parts.slice(2) : parts;
  const resource = sampleResources.find((each) => each.plural === plural);
  if (resource === undefined || more.length > 0) return undefined;
  return {
    resource,
    plural,
    kind: resource.kind,
    namespace: isNamespaced ? (parts[1] ?? '') : '',
    name,
    labelSelector: searchParams.get('labelSelector') ?? '',
    fieldSelector: searchParams.get('fieldSelector') ?? '',
  };
}

function isWatch({ searchParams }: URL): boolean {
  return ['1', 'true'].includes(searchParams.get('watch') ?? '');
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > maxBodyBytes) throw new Error('request entity too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
