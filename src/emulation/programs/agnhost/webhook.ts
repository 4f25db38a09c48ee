/** `agnhost webhook` and `agnhost crd-conversion-webhook` (test/images/agnhost/webhook, crd-conversion-webhook). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { isRecord, type JsonRecord } from '../../../objects/json.ts';
import { admit } from './admission-answers.ts';
import type { AgnhostRun } from './context.ts';
import { recordAt } from '../../../objects/read.ts';

/** Serves the webhooks of Kubernetes' tests with TLS. @throws the system's error. */
export async function webhook(run: AgnhostRun): Promise<void> {
  const { args } = run;
  await serve(run, args.number('port', 443), async (path, review) => {
    const request = recordAt(review, 'request');
    const response = await admit(path, request, { sidecarImage: args.text('sidecar-image') });
    if (response === undefined) return undefined;
    return { ...review, request: undefined, response: { uid: request['uid'], ...response } };
  });
}

/** Converts between `v1`, with `hostPort`, and `v2`, with `host` and `port`. @throws the system's error. */
export async function conversionWebhook(run: AgnhostRun): Promise<void> {
  await serve(run, run.args.number('port', 443), (path, review) => {
    if (path !== '/crdconvert') return Promise.resolve(undefined);
    const request = recordAt(review, 'request');
    const wanted = String(request['desiredAPIVersion']);
    const objects: readonly unknown[] = Array.isArray(request['objects']) ? request['objects'] : [];
    const converted = objects.map((object) => convert(isRecord(object) ? object : {}, wanted));
    const response = { uid: request['uid'], convertedObjects: converted, result: { status: 'Success' } };
    return Promise.resolve({ ...review, request: undefined, response });
  });
}

function convert(object: JsonRecord, wanted: string): JsonRecord {
  const { hostPort, host, port, ...rest } = object;
  const version = wanted.slice(wanted.indexOf('/') + 1);
  if (object['apiVersion'] === wanted) return object;
  if (version === 'v2' && typeof hostPort === 'string') {
    const [first = '', second = ''] = hostPort.split(':');
    return { ...rest, apiVersion: wanted, host: first, port: second };
  }
  if (version === 'v1' && typeof host === 'string' && typeof port === 'string') {
    return { ...rest, apiVersion: wanted, hostPort: `${host}:${port}` };
  }
  return { ...object, apiVersion: wanted };
}

type Answer = (path: string, review: JsonRecord) => Promise<JsonRecord | undefined>;

async function serve(run: AgnhostRun, port: number, answer: Answer): Promise<void> {
  const { args, place } = run;
  const cert = await place.readFile(args.text('tls-cert-file'));
  const key = await place.readFile(args.text('tls-private-key-file'));
  await run.listen(port, () =>
    createServer({ cert, key }, (request, response) => {
      handle(request, response, answer).catch((error: unknown) => {
        place.write('stderr', `${String(error)}\n`);
        response.writeHead(500).end();
      });
    }),
  );
}

async function handle(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const path = new URL(request.url ?? '/', 'https://webhook').pathname;
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  if (path === '/readyz') {
    response.end('ok');
    return;
  }
  const review: unknown = JSON.parse(Buffer.concat(chunks).toString());
  const said = isRecord(review) ? await answer(path, review) : undefined;
  if (said === undefined) response.writeHead(404).end('404 page not found\n');
  else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
}
